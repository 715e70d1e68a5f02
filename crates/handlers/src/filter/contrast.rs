//! `contrast`: spreads colour values away from a fixed one.
//!
//! Owns the factor and the value that stays in place.
//! Does not touch alpha.
//!
//! Always: a function of one channel, so it becomes a table of 256 values.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `contrast` declares.
pub static ENTRY: Entry = Entry {
    name: "contrast",
    about: "multiplies red, green and blue around a pivot",
    example: "pattern ! contrast amount=1.2 pivot=0.5 ! null",
    settings: &[
        defaults("amount", number(-100.0, 100.0), "1", Liveness::Live, "the factor; 1 changes nothing"),
        defaults("pivot", number(0.0, 1.0), "0", Liveness::Live, "the value that stays as it is; 1 is full"),
    ],
    bare: Some("amount"),
    ..Entry::FILTER
};
