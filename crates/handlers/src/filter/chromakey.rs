//! `chromakey`: makes a colour transparent.
//!
//! Owns the key colour, how near to it is near, and how soft the edge.
//! Does not touch red, green or blue.
//!
//! Always: alpha never grows.

use vramp_plan::catalog::{Class, Entry, Liveness, Units, ValueType, Work};

use crate::declare::{defaults, number};

/// What `chromakey` declares.
pub static ENTRY: Entry = Entry {
    name: "chromakey",
    about: "makes pixels transparent whose colour is near the key",
    example: "pattern ! chromakey color=00ff00 similarity=0.25 ! null",
    settings: &[
        defaults("color", ValueType::Color, "00ff00", Liveness::Live, "the key colour"),
        // Two chroma pairs are at most the diagonal of a unit square apart, 1.42.
        defaults("similarity", number(0.0, 1.5), "0.3", Liveness::Live, "the chroma distance up to which all is gone"),
        defaults("smooth", number(0.0, 1.5), "0.1", Liveness::Live, "how much further until nothing is gone"),
    ],
    bare: Some("color"),
    work: Work { class: Class::Pixel, units: Units::PerPixel(2.0) },
    ..Entry::FILTER
};
