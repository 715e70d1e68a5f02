//! `boxblur`: the plain mean of a square.
//!
//! Owns the side of the square.
//! Does not weigh: every pixel in it counts alike.
//!
//! Always: the side is odd; pixels beyond the border repeat the outermost ones.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Units, ValueType, Work};

use crate::declare::defaults;

/// What `boxblur` declares.
pub static ENTRY: Entry = Entry {
    name: "boxblur",
    about: "blurs with the mean of a square",
    example: "pattern ! boxblur size=9 ! null",
    settings: &[defaults(
        "size",
        ValueType::Odd { max: 1023, zero: false },
        "9",
        Liveness::Rebuild,
        "side of the square in pixels",
    )],
    bare: Some("size"),
    kernel: KernelRule::Reading(Kernel::separable(9), |settings| settings.int("size").unwrap_or(9) as u32),
    work: Work {
        class: Class::Tap,
        units: Units::PerPixelBy(|settings| 2.0 * settings.int("size").unwrap_or(9) as f64),
    },
    ..Entry::FILTER
};
