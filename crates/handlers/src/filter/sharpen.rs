//! `sharpen`: lifts a pixel away from its four neighbours.
//!
//! Owns how far.
//! Does not touch alpha.
//!
//! Always: pixels beyond the border repeat the outermost ones.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Units, Work};

use crate::declare::{defaults, number};

/// What `sharpen` declares.
pub static ENTRY: Entry = Entry {
    name: "sharpen",
    about: "strengthens the difference between neighbouring pixels",
    example: "pattern ! sharpen amount=0.5 ! null",
    settings: &[defaults("amount", number(-16.0, 16.0), "1", Liveness::Live, "how strongly; 0 changes nothing")],
    bare: Some("amount"),
    kernel: KernelRule::Always(Kernel::stencil(5)),
    work: Work { class: Class::Tap, units: Units::PerPixel(5.0) },
    ..Entry::FILTER
};
