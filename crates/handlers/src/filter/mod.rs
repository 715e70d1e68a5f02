//! Filters: one picture in, one picture out.
//!
//! Owns one file per filter: its declaration and, where it runs, which kernel it is and with which parameters.
//! Does not compute pixels: kernels are another room.
//!
//! Always: parameters that depend on settings alone are made once; those that depend on sizes, when sizes change.

pub mod blur;
pub mod boxblur;
pub mod brightness;
pub mod chromakey;
pub mod colormatrix;
pub mod contrast;
pub mod convolve;
pub mod crop;
pub mod edges;
mod fixed;
pub mod flip;
pub mod gamma;
pub mod grayscale;
pub mod hue;
pub mod invert;
pub mod lut;
pub mod median;
pub mod resize;
pub mod rotate;
pub mod saturation;
pub mod sharpen;
pub mod threshold;
pub mod warp;
pub mod wgsl;

use vramp_runtime::{HandlerError, Kinds, Setup};

/// Says how the handlers of this family are made.
pub(crate) fn register(kinds: &mut Kinds) {
    kinds.makes(&brightness::ENTRY, brightness::make);
    kinds.makes(&contrast::ENTRY, contrast::make);
    kinds.makes(&gamma::ENTRY, gamma::make);
    kinds.makes(&saturation::ENTRY, saturation::make);
    kinds.makes(&hue::ENTRY, hue::make);
    kinds.makes(&invert::ENTRY, invert::make);
    kinds.makes(&grayscale::ENTRY, grayscale::make);
    kinds.makes(&threshold::ENTRY, threshold::make);
    kinds.makes(&colormatrix::ENTRY, colormatrix::make);
    kinds.makes(&lut::ENTRY, lut::make);
    kinds.makes(&chromakey::ENTRY, chromakey::make);
    kinds.makes(&blur::ENTRY, blur::make);
    kinds.makes(&boxblur::ENTRY, boxblur::make);
    kinds.makes(&median::ENTRY, median::make);
    kinds.makes(&sharpen::ENTRY, sharpen::make);
    kinds.makes(&convolve::ENTRY, convolve::make);
    kinds.makes(&edges::ENTRY, edges::make);
    kinds.makes(&resize::ENTRY, resize::make);
    kinds.makes(&crop::ENTRY, crop::make);
    kinds.makes(&flip::ENTRY, flip::make);
    kinds.makes(&rotate::ENTRY, rotate::make);
    kinds.makes(&warp::ENTRY, warp::make);
    kinds.makes(&wgsl::ENTRY, wgsl::make);
}

/// A number that the entry gives a default.
fn number_of(setup: &Setup<'_>, key: &str) -> Result<f64, HandlerError> {
    setup.settings.number(key).ok_or_else(|| missing(key))
}

/// A word that the entry gives a default.
fn word_of<'a>(setup: &'a Setup<'_>, key: &str) -> Result<&'a str, HandlerError> {
    setup.settings.word(key).ok_or_else(|| missing(key))
}

fn missing(key: &str) -> HandlerError {
    HandlerError::failed(format!("its setting {key} has no value; settings are to be checked by a graph"))
}
