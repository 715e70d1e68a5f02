//! `convolve`: a weighted sum of the square around each pixel.
//!
//! Owns the weights, what they are divided by and what is added.
//! Does not touch alpha and does not flip the kernel: the first weight belongs to the top left.
//!
//! Always: the square is 3, 5 or 7 wide; pixels beyond the border repeat the outermost ones.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Units, ValueType, Work};

use crate::declare::{defaults, number, optional, required};

/// What `convolve` declares.
pub static ENTRY: Entry = Entry {
    name: "convolve",
    about: "weighs the pixels of a square with a kernel of your own",
    example: "pattern ! convolve kernel=-2,-1,0,-1,1,1,0,1,2 ! null",
    settings: &[
        required(
            "kernel",
            ValueType::Numbers { counts: &[9, 25, 49] },
            Liveness::Rebuild,
            "the weights, row by row: 3x3, 5x5 or 7x7",
        ),
        optional(
            "divisor",
            number(-1e9, 1e9),
            Liveness::Live,
            "what the sum is divided by; the sum of the weights if not given, or 1 where that is 0",
        ),
        defaults("bias", number(-65_536.0, 65_536.0), "0", Liveness::Live, "added at the end, in levels of 255"),
    ],
    bare: Some("kernel"),
    kernel: KernelRule::Reading(Kernel::stencil(9), |settings| {
        settings.numbers("kernel").map_or(9, |k| k.len() as u32)
    }),
    work: Work {
        class: Class::Tap,
        units: Units::PerPixelBy(|settings| settings.numbers("kernel").map_or(9.0, |kernel| kernel.len() as f64)),
    },
    check: |settings| match settings.number("divisor") {
        Some(0.0) => Err("a divisor of 0 divides nothing; leave it out for the sum of the weights".to_owned()),
        _ => Ok(()),
    },
    ..Entry::FILTER
};
