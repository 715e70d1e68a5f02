//! Pixel functions. Each has its own file, beside a WGSL file of the same name.
//!
//! Two modules are not functions: `over` is arithmetic that several functions share, and `color` computes the tables
//! and matrices of colour adjustments.

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
