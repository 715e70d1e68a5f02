//! `sharpen`: strengthens the difference of a pixel from its four neighbours, with a convolution of five taps.
//!
//! Alpha is kept. Pixels beyond the border repeat the outermost pixels.

use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, Setting, Units, Work};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::convolve;

pub static ENTRY: Entry = Entry {
    name: "sharpen",
    about: "strengthens the difference between neighbouring pixels",
    example: "pattern size=64x64 ! sharpen amount=0.5 ! null",
    settings: &[Setting::number("amount", -16.0..=16.0, "strength; 0 changes nothing, below 0 softens")
        .default("1")
        .live()],
    bare: Some("amount"),
    kernel: KernelRule::Always(KernelDesc::stencil(5)),
    work: Work { class: Class::Tap, units: Units::PerPixel(5.0) },
    small: Some(|_, _, _| 8 * 5),
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
    let Settings { amount } = Settings::of(setup)?;
    let (side, middle) = (-amount, 1.0 + 4.0 * amount);
    convolve::weighing(&[0.0, side, 0.0, side, middle, side, 0.0, side, 0.0], 0.0)
}
