//! Drawing: puts something on top of a picture, or pictures together.
//!
//! Owns one declaration per drawing handler, and the estimate of how many pixels each touches.
//! Does not draw: kernels are another room.

pub mod compositor;
pub mod fps;
pub mod markers;
pub mod mix;
pub mod overlay;
pub mod text;
pub mod waveform;

use vramp_plan::Size;

/// Pixels of a box, as far as it fits into the frame.
fn boxed(width: f64, height: f64, frame: Size) -> f64 {
    width.min(f64::from(frame.width)) * height.min(f64::from(frame.height))
}

/// Pixels of a line of text: a glyph is about 0.6 of its size wide, a line 1.2 high.
fn line(characters: usize, size_px: f64, frame: Size) -> f64 {
    boxed(characters as f64 * 0.6 * size_px, 1.2 * size_px, frame)
}
