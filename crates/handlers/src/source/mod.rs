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
mod picture_file;

use vramp_runtime::Kinds;

/// Says how the handlers of this family are made.
pub(crate) fn register(kinds: &mut Kinds) {
    kinds.makes(&pattern::ENTRY, pattern::make);
    kinds.makes(&image::ENTRY, image::make);
    kinds.makes(&y4m::ENTRY, y4m::make);
    kinds.makes(&raw::ENTRY, raw::make);
}
