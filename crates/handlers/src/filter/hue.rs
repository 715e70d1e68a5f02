//! `hue`: rotates colours around the gray axis by a 3x3 matrix that the CPU computes. Alpha and luma are kept.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::colormatrix::packed;
use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "hue",
    about: "rotates all colours around the colour circle",
    example: "pattern ! hue degrees=120 ! null",
    settings: &[Setting::number("degrees", -3600.0..=3600.0, "angle in degrees").default("0").live()],
    bare: Some("degrees"),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    degrees: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { degrees: setup.number("degrees")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&matrix::MATRIX, &packed(&color::hue(settings.degrees))?))
}
