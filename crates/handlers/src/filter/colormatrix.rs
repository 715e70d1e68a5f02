//! `colormatrix`: any linear mix of the four channels.
//!
//! Owns the twenty coefficients.
//! Does not spare alpha: it is a row like the others.
//!
//! Always: fixed point with the same fraction bits in both spaces.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Setting, ValueType};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `colormatrix` declares.
pub static ENTRY: Entry = Entry {
    name: "colormatrix",
    about: "makes each channel a sum of all channels and a constant",
    example: "pattern ! colormatrix m=0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,1,0 ! null",
    settings: &[Setting::of(
        "m",
        ValueType::Numbers { counts: &[20] },
        "four rows (r, g, b, a) of five factors (of r, g, b, a and of full)",
    )
    .live()],
    bare: Some("m"),
    // What may be left out is found out by the parser; what is there has to fit.
    check: |settings| settings.numbers("m").map_or(Ok(()), |m| words(m).map(drop)),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings<'a> {
    m: &'a [f64],
}

impl<'a> Settings<'a> {
    fn of(setup: &'a Setup<'_>) -> Result<Settings<'a>, HandlerError> {
        let missing = || HandlerError::failed("its setting m has no value");
        Ok(Settings { m: setup.settings.numbers("m").ok_or_else(missing)? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&matrix::MATRIX, &packed(settings.m)?))
}

/// The parameter words of a matrix: of this filter's own, or of one that is a matrix by its nature.
pub(super) fn packed(m: &[f64]) -> Result<[u32; 20], HandlerError> {
    words(m).map_err(HandlerError::failed)
}

/// The parameter words of twenty numbers, or which row is too large.
fn words(m: &[f64]) -> Result<[u32; 20], String> {
    let m = color::colormatrix(m).ok_or_else(|| format!("m has to be 20 finite numbers and is {} of them", m.len()))?;
    matrix::pack(&m).ok_or_else(|| {
        let fits = |row: &[f64]| {
            let mut alone = [0.0; 20];
            alone[..5].copy_from_slice(row);
            matrix::pack(&alone).is_some()
        };
        let sum = |row: &[f64]| row.iter().map(|factor| factor.abs()).sum::<f64>();
        let row = m.chunks_exact(5).position(|row| !fits(row)).unwrap_or(0);
        format!(
            "row {} of m is too large for 32-bit fixed point: its factors add up to {}, without signs, and may to {}",
            row + 1,
            sum(&m[5 * row..5 * row + 5]),
            (f64::from(i32::MAX) / (255.0 * matrix::ONE)).floor()
        )
    })
}
