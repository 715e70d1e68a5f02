//! Drawing: handlers that draw on frames or combine them.
//!
//! This module also estimates how many pixels each handler touches. The kernels are in `vramp_kernels`.

pub mod compositor;
pub mod fps;
pub mod markers;
pub mod mix;
pub mod overlay;
pub mod text;
pub mod waveform;

use std::ops::RangeInclusive;

use vramp_kernels::Pixel;
use vramp_plan::Size;
use vramp_plan::catalog::Value;
use vramp_runtime::{Clock, Kind, PixelInfo, Setup};

use crate::probe;

/// Range of coordinates. A position may be inside the frame, or beyond an edge of the frame.
const OFFSET: RangeInclusive<i64> = -65_536..=65_536;

/// Number of pixels of a box. A box that is larger than the frame is cut off at the size of the frame.
fn boxed(width: f64, height: f64, frame: Size) -> f64 {
    width.min(f64::from(frame.width)) * height.min(f64::from(frame.height))
}

/// Number of pixels of a line of text. A glyph is about 0.6 times as wide as the font size, and a line is 1.2 times as
/// high as the font size.
fn line(characters: usize, size_px: f64, frame: Size) -> f64 {
    boxed(characters as f64 * 0.6 * size_px, 1.2 * size_px, frame)
}

/// Seconds since the stream began. If the time of a frame follows from the frame rate, the seconds are computed from
/// the frame number, because the frame's own time is rounded to nanoseconds.
fn seconds(info: &PixelInfo<'_>) -> f64 {
    let now = &info.now;
    match info.rate {
        Some(rate) if Clock::pts_ns(rate, now.number) == now.pts_ns => {
            now.number as f64 * f64::from(rate.den()) / f64::from(rate.num())
        }
        _ => now.pts_ns as f64 / 1e9,
    }
}

/// An integer setting, whose declared range is within 32 bits.
fn whole(setup: &Setup<'_>, key: &str, otherwise: i32) -> i32 {
    setup.settings.int(key).and_then(|n| i32::try_from(n).ok()).unwrap_or(otherwise)
}

fn flag(setup: &Setup<'_>, key: &str, otherwise: bool) -> bool {
    match setup.settings.get(key) {
        Some(Value::Bool(flag)) => *flag,
        _ => otherwise,
    }
}

fn color(setup: &Setup<'_>, key: &str, otherwise: Pixel) -> Pixel {
    match setup.settings.get(key) {
        Some(Value::Color(color)) => *color,
        _ => otherwise,
    }
}

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&compositor::ENTRY, compositor::make),
        Kind::new(&fps::ENTRY, fps::make),
        Kind::new(&markers::ENTRY, markers::make),
        Kind::new(&mix::ENTRY, mix::make),
        Kind::new(&overlay::ENTRY, overlay::make).small_bytes(probe::overlay_bytes),
        Kind::new(&text::ENTRY, text::make),
        Kind::new(&waveform::ENTRY, waveform::make),
    ]
}
