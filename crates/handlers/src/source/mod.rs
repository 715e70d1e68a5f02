//! Sources: bring frames in, from files, devices or formulas.
//!
//! Owns one declaration per source.
//! Does not look into files: probing is a room of its own.

pub mod camera;
pub mod image;
pub mod pattern;
pub mod raw;
pub mod video;
pub mod y4m;

mod frame_reader;

use vramp_runtime::Kind;

use crate::probe;

/// Every handler of this family: a line each.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&pattern::ENTRY, pattern::make),
        Kind::new(&image::ENTRY, image::make).probed(probe::image),
        Kind::new(&y4m::ENTRY, y4m::make).probed(probe::y4m),
        Kind::new(&raw::ENTRY, raw::make).probed(probe::raw),
        Kind::planned(&camera::ENTRY),
        Kind::planned(&video::ENTRY).probed(probe::video),
    ]
}
