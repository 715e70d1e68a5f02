//! `hue`: turns the colour circle.
//!
//! Owns the angle.
//! Does not touch alpha or the brightness signal.
//!
//! Always: one 3x3 matrix, worked out from the angle on the host.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Liveness, Status};
use vramp_runtime::{HandlerError, Setup, Worker};

use crate::declare::{defaults, number};

use super::colormatrix::packed;
use super::fixed;
use super::number_of;

/// What `hue` declares.
pub static ENTRY: Entry = Entry {
    name: "hue",
    about: "turns all colours around the colour circle",
    example: "pattern ! hue degrees=120 ! null",
    settings: &[defaults("degrees", number(-3600.0, 3600.0), "0", Liveness::Live, "how far to turn")],
    bare: Some("degrees"),
    status: Status::Runs,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    degrees: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { degrees: number_of(setup, "degrees")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&matrix::MATRIX, &packed(&color::hue(settings.degrees))?))
}
