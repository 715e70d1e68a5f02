//! `hue`: turns the colour circle.
//!
//! Owns the angle.
//! Does not touch alpha or the brightness signal.
//!
//! Always: one 3x3 matrix, worked out from the angle on the host.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Liveness, Status};
use vramp_runtime::{Flow, Given, HandlerError, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::declare::{defaults, number};

use super::colormatrix::packed;
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
struct Hue {
    state: State,
}

#[derive(Debug)]
struct Settings {
    degrees: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { degrees: number_of(setup, "degrees")? })
    }
}

/// The matrix in fixed point, made once.
#[derive(Debug)]
struct State {
    words: [u32; 20],
}

impl PixelHandler for Hue {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&matrix::MATRIX)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    let state = State { words: packed(&color::hue(settings.degrees))? };
    Ok(Worker::pixels(Hue { state }))
}
