//! `colormatrix`: any linear mix of the four channels.
//!
//! Owns the twenty coefficients.
//! Does not spare alpha: it is a row like the others.
//!
//! Always: fixed point with the same fraction bits in both spaces.

use vramp_plan::catalog::{Entry, Liveness, ValueType};

use crate::declare::required;

/// What `colormatrix` declares.
pub static ENTRY: Entry = Entry {
    name: "colormatrix",
    about: "makes each channel a sum of all channels and a constant",
    example: "pattern ! colormatrix m=0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,1,0 ! null",
    settings: &[required(
        "m",
        ValueType::Numbers { counts: &[20] },
        Liveness::Live,
        "four rows (r, g, b, a) of five factors (of r, g, b, a and of full)",
    )],
    bare: Some("m"),
    ..Entry::FILTER
};
