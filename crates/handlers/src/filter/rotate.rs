//! `rotate`: quarter turns, clockwise.
//!
//! Owns how many.
//! Does not turn by other angles: that is `warp`.
//!
//! Always: pixels are copied as they are; sides are swapped by an odd number of quarter turns.

use vramp_plan::catalog::{Entry, Kernel, KernelRule, Liveness, Output, SizeRule, ValueType};

use crate::declare::defaults;

/// What `rotate` declares.
pub static ENTRY: Entry = Entry {
    name: "rotate",
    about: "turns the picture clockwise by quarter turns",
    example: "pattern ! rotate degrees=90 ! null",
    outputs: &[Output { size: SizeRule::Turned("degrees"), ..Output::VIDEO }],
    settings: &[defaults(
        "degrees",
        ValueType::Choice(&["90", "180", "270"]),
        "90",
        Liveness::Fixed,
        "how far to turn, clockwise",
    )],
    bare: Some("degrees"),
    kernel: KernelRule::Always(Kernel::GATHER),
    ..Entry::FILTER
};
