//! `brightness`: the same step up or down for every colour value.
//!
//! Owns the step, in parts of the whole range.
//! Does not touch alpha.
//!
//! Always: a function of one channel, so it becomes a table of 256 values.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `brightness` declares.
pub static ENTRY: Entry = Entry {
    name: "brightness",
    about: "adds a constant to red, green and blue",
    example: "pattern ! brightness amount=0.1 ! null",
    settings: &[defaults(
        "amount",
        number(-8.0, 8.0),
        "0",
        Liveness::Live,
        "what to add; 1 is the whole range, 0 changes nothing",
    )],
    bare: Some("amount"),
    ..Entry::FILTER
};
