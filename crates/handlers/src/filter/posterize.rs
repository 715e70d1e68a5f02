//! `posterize`: rounds red, green and blue to the nearest of equally spaced levels, with a table of 256 values. Alpha
//! is kept.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "posterize",
    about: "rounds red, green and blue to a few equally spaced levels",
    example: "pattern kind=gradient ! posterize levels=6 ! null",
    settings: &[Setting::int("levels", 2..=256, "number of levels, including 0 and 255; 256 changes nothing")
        .default("4")
        .live()],
    bare: Some("levels"),
    folds: true,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    levels: u16,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { levels: setup.int("levels")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    Ok(fixed::function(&table::TABLE, &table::pack(&color::posterize(settings.levels))))
}
