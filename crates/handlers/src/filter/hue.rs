//! `hue`: turns the colour circle.
//!
//! Owns the angle.
//! Does not touch alpha or the brightness signal.
//!
//! Always: one 3x3 matrix, worked out from the angle on the host.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `hue` declares.
pub static ENTRY: Entry = Entry {
    name: "hue",
    about: "turns all colours around the colour circle",
    example: "pattern ! hue degrees=120 ! null",
    settings: &[defaults("degrees", number(-3600.0, 3600.0), "0", Liveness::Live, "how far to turn")],
    bare: Some("degrees"),
    ..Entry::FILTER
};
