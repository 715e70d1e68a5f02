//! `flip`: mirrors the picture.
//!
//! Owns along which axis.
//! Does not change size.
//!
//! Always: pixels are copied as they are; twice along one axis gives the picture back.

use vramp_plan::catalog::{Entry, Kernel, KernelRule, Liveness, ValueType};

use crate::declare::defaults;

/// What `flip` declares.
pub static ENTRY: Entry = Entry {
    name: "flip",
    about: "mirrors the picture",
    example: "pattern ! flip axis=h ! null",
    settings: &[defaults(
        "axis",
        ValueType::Choice(&["h", "v", "both"]),
        "h",
        Liveness::Rebuild,
        "h swaps left and right, v top and bottom",
    )],
    bare: Some("axis"),
    kernel: KernelRule::Always(Kernel::GATHER),
    ..Entry::FILTER
};
