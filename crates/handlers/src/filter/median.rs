//! `median`: replaces each value by the median of the square around it, channel by channel.
//!
//! Pixels beyond the border repeat the outermost pixels.

use vramp_kernels::head::{median3, median5};
use vramp_plan::catalog::{self, Class, Entry, KernelDesc, KernelRule, Setting, Units, Work};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "median",
    about: "replaces each value by the median of its neighbours; removes specks",
    example: "pattern size=64x64 ! median size=3 ! null",
    settings: &[Setting::choice("size", &["3", "5"], "side of the square in pixels").default("3").rebuild()],
    bare: Some("size"),
    kernel: KernelRule::By {
        setting: "size",
        cases: &[("3", KernelDesc::stencil(9))],
        otherwise: KernelDesc::stencil(25),
    },
    work: Work { class: Class::Sort, units: Units::PerPixelBy(exchanges) },
    ..Entry::FILTER
};

/// Number of compare-exchange steps in the shortest known median network for 9 or 25 values.
fn exchanges(settings: &catalog::SettingValues) -> f64 {
    if settings.text("size") == Some("5") { 99.0 } else { 19.0 }
}

#[derive(Debug)]
struct Settings {
    five: bool,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        Ok(Settings { five: setup.word("size")? == "5" })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(match Settings::of(setup)? {
        Settings { five: true } => fixed::head(&median5::MEDIAN5, &median5::pack()),
        Settings { five: false } => fixed::head(&median3::MEDIAN3, &median3::pack()),
    })
}
