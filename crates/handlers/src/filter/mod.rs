//! Filters: one picture in, one picture out.
//!
//! Owns one declaration per filter.
//! Does not compute: kernels are another room.

pub mod blur;
pub mod boxblur;
pub mod brightness;
pub mod chromakey;
pub mod colormatrix;
pub mod contrast;
pub mod convolve;
pub mod crop;
pub mod edges;
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
