//! `warp`: an affine map of the plane.
//!
//! Owns the six numbers of the map, from source to destination.
//! Does not change size: what the map moves out of the picture is lost.
//!
//! Always: what no source pixel reaches is transparent black.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Units, ValueType, Work};

use crate::declare::required;

/// What `warp` declares.
pub static ENTRY: Entry = Entry {
    name: "warp",
    about: "moves, turns, scales and shears the picture by a 2x3 matrix",
    example: "pattern ! warp m=0.9,-0.2,40,0.2,0.9,-20 ! null",
    settings: &[required(
        "m",
        ValueType::Numbers { counts: &[6] },
        Liveness::Live,
        "two rows of three: factor of x, factor of y, offset in pixels",
    )],
    bare: Some("m"),
    check: |settings| match settings.numbers("m") {
        Some([a, b, _, c, d, _]) if (a * d - b * c).abs() < f64::MIN_POSITIVE => {
            Err("m maps the whole picture onto a line, so it cannot be turned round".to_owned())
        }
        _ => Ok(()),
    },
    kernel: KernelRule::Always(Kernel::GATHER),
    work: Work { class: Class::Sample, units: Units::PerPixel(1.0) },
    ..Entry::FILTER
};
