//! `saturation`: moves colours towards their gray or away from it.
//!
//! Owns the factor.
//! Does not touch alpha or luma.
//!
//! Always: a matrix with the same fraction bits in both spaces.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `saturation` declares.
pub static ENTRY: Entry = Entry {
    name: "saturation",
    about: "makes colours stronger (above 1) or grayer (below 1)",
    example: "pattern ! saturation amount=0.7 ! null",
    settings: &[defaults(
        "amount",
        number(-16.0, 16.0),
        "1",
        Liveness::Live,
        "how much colour; 0 is gray, 1 changes nothing",
    )],
    bare: Some("amount"),
    ..Entry::FILTER
};
