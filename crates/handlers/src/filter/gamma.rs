//! `gamma`: applies a gamma curve to red, green and blue, with a table of 256 values. Black, white and alpha are kept.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "gamma",
    about: "brightens or darkens the middle tones",
    example: "pattern ! gamma value=2.2 ! null",
    settings: &[Setting::number("value", 0.01..=100.0, "gamma; above 1 brightens, below 1 darkens, 1 changes nothing")
        .default("1")
        .live()],
    bare: Some("value"),
    folds: true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    value: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { value: setup.number("value")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&table::TABLE, &table::pack(&color::gamma(settings.value))))
}
