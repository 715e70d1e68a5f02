//! `colormatrix`: computes each channel, alpha included, as a linear combination of all four channels and a constant.
//!
//! The filter uses fixed point with the same number of fraction bits on CPU and GPU.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Setting, ValueType};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "colormatrix",
    about: "computes each channel as a weighted sum of all channels and a constant",
    example: "pattern ! colormatrix m=0,0,1,0,0,0,1,0,0,0,1,0,0,0,0,0,0,0,1,0 ! null",
    settings: &[Setting::of(
        "m",
        ValueType::Numbers { counts: &[20] },
        "a row for each output r, g, b, a, with factors of the inputs r, g, b, a and of full scale",
    )
    .live()],
    bare: Some("m"),
    // The parser reports a missing `m`, so only a given `m` is checked.
    check: |settings| settings.numbers("m").map_or(Ok(()), |m| words(m).map(drop)),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings<'a> {
    m: &'a [f64],
}

impl<'a> Settings<'a> {
    fn of(setup: &'a Setup<'_>) -> Result<Settings<'a>, HandlerError> {
        let missing = || HandlerError::failed("the setting `m` has no value");
        Ok(Settings { m: setup.settings.numbers("m").ok_or_else(missing)? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&matrix::MATRIX, &packed(settings.m)?))
}

/// The parameter words of a matrix. Other filters that apply a matrix use this function too.
pub(super) fn packed(m: &[f64]) -> Result<[u32; 20], HandlerError> {
    words(m).map_err(HandlerError::failed)
}

/// The parameter words of twenty numbers, or an error that names the row that is too large.
fn words(m: &[f64]) -> Result<[u32; 20], String> {
    let m = color::colormatrix(m).ok_or_else(|| format!("m must be 20 finite numbers, but has {}", m.len()))?;
    matrix::pack(&m).ok_or_else(|| {
        let fits = |row: &[f64]| {
            let mut alone = [0.0; 20];
            alone[..5].copy_from_slice(row);
            matrix::pack(&alone).is_some()
        };
        let sum = |row: &[f64]| row.iter().map(|factor| factor.abs()).sum::<f64>();
        let row = m.chunks_exact(5).position(|row| !fits(row)).unwrap_or(0);
        format!(
            "row {} of m is too large for 32-bit fixed point: the absolute values of its factors add up to {}; \
             the limit is {}",
            row + 1,
            sum(&m[5 * row..5 * row + 5]),
            (f64::from(i32::MAX) / (255.0 * matrix::ONE)).floor()
        )
    })
}
