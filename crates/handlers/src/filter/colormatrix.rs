//! `colormatrix`: any linear mix of the four channels.
//!
//! Owns the twenty coefficients.
//! Does not spare alpha: it is a row like the others.
//!
//! Always: fixed point with the same fraction bits in both spaces.

use vramp_plan::catalog::{Entry, Liveness, ValueType};

use crate::declare::required;

/// What a factor of one is in fixed point.
const FRACTION: f64 = 4096.0;

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
    check: |settings| {
        let row_sum = |row: &[f64]| row.iter().map(|c| c.abs()).sum::<f64>() * 255.0 * FRACTION;
        let rows = settings.numbers("m").unwrap_or_default();
        match rows.chunks(5).position(|row| row_sum(row) > f64::from(i32::MAX)) {
            Some(row) => Err(format!(
                "row {} of m is too large for 32-bit fixed point; its factors may add up to {}",
                row + 1,
                (f64::from(i32::MAX) / (255.0 * FRACTION)).floor()
            )),
            None => Ok(()),
        }
    },
    ..Entry::FILTER
};
