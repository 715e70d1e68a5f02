//! `brightness`: adds a constant to red, green and blue, with a table of 256 values. Alpha is kept.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "brightness",
    about: "adds a constant to red, green and blue",
    example: "pattern ! brightness amount=0.1 ! null",
    settings: &[Setting::number("amount", -8.0..=8.0, "value to add; 0 changes nothing, 1 is the full range")
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
