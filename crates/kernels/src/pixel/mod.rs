//! Pixel functions, one file each with its WGSL beside it.
//!
//! Owns the list, the arithmetic that several of them share (`over`) and the tables and matrices of colour adjustments
//! (`color`).
//! Does not loop over frames: the composer does.

pub mod channels;
pub mod chromakey;
pub mod color;
pub mod cube;
pub mod curve;
pub mod glyphs;
pub mod gray;
pub mod markers;
pub mod matrix;
pub mod mix;
mod over;
pub mod overlay;
pub mod table;
pub mod threshold;

use crate::function::PixelFn;

/// Every pixel function.
pub static ALL: &[&PixelFn] = &[
    &channels::CHANNELS,
    &chromakey::CHROMAKEY,
    &cube::CUBE,
    &curve::CURVE,
    &glyphs::GLYPHS,
    &gray::GRAY,
    &markers::MARKERS,
    &matrix::MATRIX,
    &mix::MIX,
    &overlay::OVERLAY,
    &table::TABLE,
    &threshold::THRESHOLD,
];
