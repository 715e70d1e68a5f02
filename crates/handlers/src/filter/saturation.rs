//! `saturation`: multiplies the distance of colours from the gray of the same luma. Alpha and luma are kept.
//!
//! The filter uses a matrix in fixed point with the same number of fraction bits on CPU and GPU.

use vramp_kernels::pixel::{color, matrix};
use vramp_plan::catalog::{Entry, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::colormatrix::packed;
use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "saturation",
    about: "makes colours stronger (above 1), grayer (0 to 1) or complementary (below 0)",
    example: "pattern ! saturation amount=0.7 ! null",
    settings: &[Setting::number(
        "amount",
        -16.0..=16.0,
        "factor; 0 gives gray, 1 changes nothing, below 0 inverts hues",
    )
    .default("1")
    .live()],
    bare: Some("amount"),
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
    Ok(fixed::function(&matrix::MATRIX, &packed(&color::saturation(settings.amount))?))
}
