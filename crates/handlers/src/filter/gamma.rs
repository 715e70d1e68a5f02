//! `gamma`: bends the middle of the range, leaving its ends.
//!
//! Owns the exponent.
//! Does not touch alpha.
//!
//! Always: a function of one channel, so it becomes a table of 256 values.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `gamma` declares.
pub static ENTRY: Entry = Entry {
    name: "gamma",
    about: "brightens (above 1) or darkens (below 1) the middle tones",
    example: "pattern ! gamma value=2.2 ! null",
    settings: &[defaults("value", number(0.01, 100.0), "1", Liveness::Live, "the gamma; 1 changes nothing")],
    bare: Some("value"),
    ..Entry::FILTER
};
