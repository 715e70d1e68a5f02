//! `markers`: squares in the corners and a border, to see that all of the picture arrives.
//!
//! Owns their size and whether their colour pulses.
//! Does not fill the picture.
//!
//! Always: the border lies on top of the squares.

use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Family, Liveness, Settings, Units, ValueType, Work};

use crate::declare::{defaults, int};

use super::boxed;

/// Rows and columns of the border on each side.
const BORDER: u32 = 5;

/// What `markers` declares.
pub static ENTRY: Entry = Entry {
    name: "markers",
    family: Family::Draw,
    about: "draws squares in the corners and a border around the picture",
    example: "pattern ! markers size=40 ! null",
    settings: &[
        defaults("size", int(0, 65_536), "30", Liveness::Live, "side of the squares in pixels"),
        defaults("pulse", ValueType::Bool, "true", Liveness::Live, "whether the colours change with time"),
    ],
    bare: Some("size"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    ..Entry::FILTER
};

/// The frame without its inner rectangle, and what of the squares reaches into that.
fn touched(settings: &Settings, _: Size, frame: Size) -> f64 {
    let all = frame.pixels() as f64;
    let inner = |side: u32| f64::from(side.saturating_sub(2 * BORDER));
    let inside = inner(frame.width) * inner(frame.height);
    let square = (settings.int("size").unwrap_or(30) as f64 - f64::from(BORDER)).max(0.0);
    (all - inside + 4.0 * boxed(square, square, frame)).min(all)
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::Value;

    use super::*;

    fn at(size: i64, width: u32, height: u32) -> f64 {
        let mut settings = Settings::default();
        settings.set("size", Value::Int(size));
        touched(&settings, Size { width, height }, Size { width, height })
    }

    #[test]
    fn markers_touch_their_squares_and_border_and_never_more_than_the_frame() {
        // Border: 100*100 - 90*90; squares reach 25 pixels further in each corner.
        assert!((at(30, 100, 100) - f64::from(1900 + 4 * 625)).abs() < 1e-9);
        assert!((at(0, 100, 100) - 1900.0).abs() < 1e-9);
        assert!((at(65_536, 100, 100) - 10_000.0).abs() < 1e-9);
        assert!((at(30, 1, 1) - 1.0).abs() < 1e-9);
    }
}
