//! `threshold`: black or white.
//!
//! Owns the level between the two.
//! Does not touch alpha.
//!
//! Always: decided in integers, so equally in both spaces.

use vramp_plan::catalog::{Entry, Liveness};

use crate::declare::{defaults, number};

/// What `threshold` declares.
pub static ENTRY: Entry = Entry {
    name: "threshold",
    about: "makes what is brighter than a level white, the rest black",
    example: "pattern ! threshold level=0.4 ! null",
    settings: &[defaults("level", number(0.0, 1.0), "0.5", Liveness::Live, "the level; 1 is full brightness")],
    bare: Some("level"),
    ..Entry::FILTER
};
