//! `crop`: cuts a rectangle out.
//!
//! Owns the rectangle.
//! Does not pad: a rectangle that reaches beyond the picture is refused.
//!
//! Always: pixels are copied as they are.

use vramp_plan::catalog::{Entry, Kernel, KernelRule, Liveness, Output, SizeRule, ValueType};

use crate::declare::{defaults, int, required};

/// What `crop` declares.
pub static ENTRY: Entry = Entry {
    name: "crop",
    about: "cuts a rectangle out of the picture",
    example: "pattern ! crop x=100 y=50 size=320x240 ! null",
    outputs: &[Output { size: SizeRule::Cut("x", "y", "size"), ..Output::VIDEO }],
    settings: &[
        defaults("x", int(0, 65_535), "0", Liveness::Live, "left edge of the rectangle"),
        defaults("y", int(0, 65_535), "0", Liveness::Live, "top edge of the rectangle"),
        required("size", ValueType::Size, Liveness::Fixed, "width and height of the rectangle"),
    ],
    bare: Some("size"),
    kernel: KernelRule::Always(Kernel::GATHER),
    ..Entry::FILTER
};
