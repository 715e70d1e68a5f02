//! `contrast`: multiplies the distance of red, green and blue from a pivot, with a table of 256 values. Alpha is kept.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "contrast",
    about: "multiplies the distance of red, green and blue from a pivot",
    example: "pattern ! contrast amount=1.2 pivot=0.5 ! null",
    settings: &[
        Setting::number("amount", -100.0..=100.0, "factor; 1 changes nothing").default("1").live(),
        Setting::number("pivot", 0.0..=1.0, "value that does not change; 1 is full scale").default("0").live(),
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
