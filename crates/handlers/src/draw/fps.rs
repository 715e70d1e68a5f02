//! `fps`: how fast the pipeline runs, written onto its frames.
//!
//! Owns four lines of text in the top left corner.
//! Does not measure: it shows what the monitor says.
//!
//! Always: the figures were sampled once for the frame they stand on.

use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Family, Settings, Units, Work};

use super::line;

/// What `fps` declares.
pub static ENTRY: Entry = Entry {
    name: "fps",
    family: Family::Draw,
    about: "writes frame rate, frame time and number of handlers",
    example: "pattern ! fps ! null",
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    // The glyph atlas.
    small: true,
    ..Entry::FILTER
};

/// One large line ("FPS: 123.4") and three small ones ("dt: 12.3ms" and two of about twenty letters).
fn touched(_: &Settings, _: Size, frame: Size) -> f64 {
    let lines = line(10, 36.0, frame) + line(10, 18.0, frame) + 2.0 * line(20, 18.0, frame);
    lines.min(frame.pixels() as f64)
}
