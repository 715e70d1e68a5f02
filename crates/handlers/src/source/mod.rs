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
