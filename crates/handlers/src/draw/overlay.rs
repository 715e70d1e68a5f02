//! `overlay`: a picture from a file on top of every frame.
//!
//! Owns the picture, its place and its opacity.
//! Does not scale it.
//!
//! Always: frames keep their size; what of the picture lies outside is not drawn.

use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Family, Liveness, Settings, Units, ValueType, Work};

use crate::declare::{OFFSET, defaults, number, required};

use super::boxed;

/// What `overlay` declares.
pub static ENTRY: Entry = Entry {
    name: "overlay",
    family: Family::Draw,
    about: "draws a picture file over every frame",
    example: "pattern ! overlay path=logo.png x=-20 y=20 alpha=0.8 ! null",
    settings: &[
        required("path", ValueType::Path, Liveness::Fixed, "the picture file"),
        defaults("x", OFFSET, "0", Liveness::Live, "left edge; negative counts from the right"),
        defaults("y", OFFSET, "0", Liveness::Live, "top edge; negative counts from the bottom"),
        defaults("alpha", number(0.0, 1.0), "1", Liveness::Live, "opacity, on top of the picture's own"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    small: true,
    ..Entry::FILTER
};

/// The picture is not opened for planning: a logo is taken to be 256 pixels square.
fn touched(_: &Settings, _: Size, frame: Size) -> f64 {
    boxed(256.0, 256.0, frame)
}
