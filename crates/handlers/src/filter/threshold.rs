//! `threshold`: black or white.
//!
//! Owns the level between the two.
//! Does not touch alpha.
//!
//! Always: decided in integers, so equally in both spaces.

use vramp_kernels::pixel::threshold;
use vramp_plan::catalog::{Entry, Liveness, Status};
use vramp_runtime::{Flow, Given, HandlerError, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::declare::{defaults, number};

use super::number_of;

/// What `threshold` declares.
pub static ENTRY: Entry = Entry {
    name: "threshold",
    about: "makes what is brighter than a level white, the rest black",
    example: "pattern ! threshold level=0.4 ! null",
    settings: &[defaults("level", number(0.0, 1.0), "0.5", Liveness::Live, "the level; 1 is full brightness")],
    bare: Some("level"),
    status: Status::Runs,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Threshold {
    state: State,
}

#[derive(Debug)]
struct Settings {
    level: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { level: number_of(setup, "level")? })
    }
}

/// The brightest that is black, as a whole number.
#[derive(Debug)]
struct State {
    words: [u32; 1],
}

impl PixelHandler for Threshold {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&threshold::THRESHOLD)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    let state = State { words: threshold::pack(settings.level) };
    Ok(Worker::pixels(Threshold { state }))
}
