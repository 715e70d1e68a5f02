//! `threshold`: turns pixels above a brightness level white, and all other pixels black. Alpha is kept.
//!
//! The filter compares integers, so that CPU and GPU agree.

use vramp_kernels::pixel::threshold;
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "threshold",
    about: "turns pixels above a brightness level white, and all other pixels black",
    example: "pattern ! threshold level=0.4 ! null",
    settings: &[Setting::number("level", 0.0..=1.0, "brightness level from 0 to 1").default("0.5").live()],
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
