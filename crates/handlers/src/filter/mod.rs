//! Filters: one image in, one image out. Each file declares a filter, and chooses the kernel and the parameters of the
//! filter. The kernels are in `vramp_kernels`.
//!
//! Parameters that depend only on settings are computed once. Parameters that depend on sizes are computed again when a
//! size changes, or for every frame if that costs next to nothing.

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
pub mod posterize;
pub mod resize;
pub mod rotate;
pub mod saturation;
pub mod sharpen;
pub mod threshold;
pub mod warp;
pub mod wgsl;

use vramp_runtime::Kind;

use crate::probe;

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&brightness::ENTRY, brightness::make),
        Kind::new(&contrast::ENTRY, contrast::make),
        Kind::new(&gamma::ENTRY, gamma::make),
        Kind::new(&saturation::ENTRY, saturation::make),
        Kind::new(&hue::ENTRY, hue::make),
        Kind::new(&invert::ENTRY, invert::make),
        Kind::new(&grayscale::ENTRY, grayscale::make),
        Kind::new(&threshold::ENTRY, threshold::make),
        Kind::new(&posterize::ENTRY, posterize::make),
        Kind::new(&colormatrix::ENTRY, colormatrix::make),
        Kind::new(&lut::ENTRY, lut::make).small_bytes(probe::lut_bytes),
        Kind::new(&chromakey::ENTRY, chromakey::make),
        Kind::new(&blur::ENTRY, blur::make),
        Kind::new(&boxblur::ENTRY, boxblur::make),
        Kind::new(&median::ENTRY, median::make),
        Kind::new(&sharpen::ENTRY, sharpen::make),
        Kind::new(&convolve::ENTRY, convolve::make),
        Kind::new(&edges::ENTRY, edges::make),
        Kind::new(&resize::ENTRY, resize::make),
        Kind::new(&crop::ENTRY, crop::make),
        Kind::new(&flip::ENTRY, flip::make),
        Kind::new(&rotate::ENTRY, rotate::make),
        Kind::new(&warp::ENTRY, warp::make),
        Kind::new(&wgsl::ENTRY, wgsl::make).declared(wgsl::declared),
    ]
}
