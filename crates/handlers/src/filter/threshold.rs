//! `threshold`: black or white.
//!
//! Owns the level between the two.
//! Does not touch alpha.
//!
//! Always: decided in integers, so equally in both spaces.

use vramp_kernels::pixel::threshold;
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `threshold` declares.
pub static ENTRY: Entry = Entry {
    name: "threshold",
    about: "makes what is brighter than a level white, the rest black",
    example: "pattern ! threshold level=0.4 ! null",
    settings: &[Setting::number("level", 0.0..=1.0, "the level; 1 is full brightness").default("0.5").live()],
    bare: Some("level"),
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    level: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { level: setup.number("level")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&threshold::THRESHOLD, &threshold::pack(settings.level)))
}
