//! `contrast`: spreads colour values away from a fixed one.
//!
//! Owns the factor and the value that stays in place.
//! Does not touch alpha.
//!
//! Always: a function of one channel, so it becomes a table of 256 values.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `contrast` declares.
pub static ENTRY: Entry = Entry {
    name: "contrast",
    about: "multiplies red, green and blue around a pivot",
    example: "pattern ! contrast amount=1.2 pivot=0.5 ! null",
    settings: &[
        Setting::number("amount", -100.0..=100.0, "the factor; 1 changes nothing").default("1").live(),
        Setting::number("pivot", 0.0..=1.0, "the value that stays as it is; 1 is full").default("0").live(),
    ],
    bare: Some("amount"),
    folds: true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    amount: f64,
    pivot: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { amount: setup.number("amount")?, pivot: setup.number("pivot")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&table::TABLE, &table::pack(&color::contrast(settings.amount, settings.pivot))))
}
