//! `brightness`: the same step up or down for every colour value.
//!
//! Owns the step, in parts of the whole range.
//! Does not touch alpha.
//!
//! Always: a function of one channel, so it becomes a table of 256 values.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `brightness` declares.
pub static ENTRY: Entry = Entry {
    name: "brightness",
    about: "adds a constant to red, green and blue",
    example: "pattern ! brightness amount=0.1 ! null",
    settings: &[Setting::number("amount", -8.0..=8.0, "what to add; 1 is the whole range, 0 changes nothing")
        .default("0")
        .live()],
    bare: Some("amount"),
    folds: true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    amount: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { amount: setup.number("amount")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&table::TABLE, &table::pack(&color::brightness(settings.amount))))
}
