//! `markers`: draws squares in the corners and a border over the squares, to show that the whole frame arrives.

use vramp_kernels::pixel::markers::{self, MARKERS};
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, Family, Setting, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use super::{boxed, flag, seconds, whole};

/// Width of the border in pixels.
const BORDER: u32 = 5;

pub static ENTRY: Entry = Entry {
    name: "markers",
    family: Family::Draw,
    about: "draws squares in the corners and a border around the frame",
    example: "pattern ! markers size=40 ! null",
    settings: &[
        Setting::int("size", 0..=65_536, "side of the squares in pixels").default("30").live(),
        Setting::bool("pulse", "change the colours with time").default("true").live(),
    ],
    bare: Some("size"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    ..Entry::FILTER
};

/// The border, and the parts of the squares that the border does not cover.
fn touched(settings: &catalog::SettingValues, _: Size, frame: Size) -> f64 {
    let all = frame.pixels() as f64;
    let inner = |side: u32| f64::from(side.saturating_sub(2 * BORDER));
    let inside = inner(frame.width) * inner(frame.height);
    let square = (settings.int("size").unwrap_or(30) as f64 - f64::from(BORDER)).max(0.0);
    (all - inside + 4.0 * boxed(square, square, frame)).min(all)
}

#[derive(Debug)]
struct Markers {
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    side: u32,
    pulse: bool,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Settings {
        Settings { side: whole(setup, "size", 30).cast_unsigned(), pulse: flag(setup, "pulse", true) }
    }
}

impl PixelHandler for Markers {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&MARKERS)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let pulse = if self.settings.pulse { pulse(seconds(info)) } else { 128 };
        give.part(&markers::pack(self.settings.side, pulse), &[]);
        Ok(Flow::Produced)
    }
}

/// The phase of the colours at a time, 1 to 255.
fn pulse(seconds: f64) -> u8 {
    (128.0 + 127.0 * (3.0 * seconds).sin()).floor() as u8
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Markers { settings: Settings::of(setup) }))
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::{SettingValues, Value};

    use super::touched;
    use vramp_plan::Size;

    fn at(size: i64, width: u32, height: u32) -> f64 {
        let mut settings = SettingValues::default();
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
