//! `chromakey`: reduces the alpha of pixels with a colour close to the key colour. Red, green and blue are kept.
//!
//! Alpha never grows. Without a soft edge, the filter compares integers only, so that CPU and GPU agree.

use vramp_kernels::pixel::chromakey;
use vramp_plan::catalog::{Class, Entry, Setting, Units, Work};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "chromakey",
    about: "makes pixels with a colour close to the key colour transparent",
    example: "pattern size=64x64 ! chromakey color=00ff00 similarity=0.25 ! null",
    settings: &[
        Setting::color("color", "key colour").default("00ff00").live(),
        // The distance between two chroma pairs is at most 1.42, the diagonal of a unit square.
        Setting::number(
            "similarity",
            0.0..=1.5,
            "chroma distance from the key colour up to which pixels become fully transparent",
        )
        .default("0.3")
        .live(),
        Setting::number(
            "smooth",
            0.0..=1.5,
            "width of the soft edge, as a chroma distance; pixels beyond the edge keep their alpha",
        )
        .default("0.1")
        .live(),
    ],
    bare: Some("color"),
    work: Work { class: Class::Pixel, units: Units::PerPixel(2.0) },
    ..Entry::FILTER
};

#[derive(Debug)]
struct Settings {
    key: [u8; 3],
    similarity: f64,
    smooth: f64,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let [r, g, b, _] = setup.color("color")?;
        let key = [r, g, b];
        Ok(Settings { key, similarity: setup.number("similarity")?, smooth: setup.number("smooth")? })
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { key, similarity, smooth } = Settings::of(setup)?;
    Ok(fixed::function(&chromakey::CHROMAKEY, &chromakey::pack(key, similarity, smooth)))
}
