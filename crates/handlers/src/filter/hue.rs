//! `hue`: turns the colour circle.
//!
//! Owns the angle.
//! Does not touch alpha or the brightness signal.
//!
//! Always: one 3x3 matrix, worked out from the angle on the host.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::colormatrix::packed;
use super::fixed;

/// What `hue` declares.
pub static ENTRY: Entry = Entry {
    name: "hue",
    about: "turns all colours around the colour circle",
    example: "pattern ! hue degrees=120 ! null",
    settings: &[Setting::number("degrees", -3600.0..=3600.0, "how far to turn").default("0").live()],
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
