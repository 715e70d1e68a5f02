//! `waveform`: draws a running sine, or the mean brightness of each column, over the frame.
//!
//! The rows that the curve covers in a column are computed in integers for the brightness, and always by the CPU for
//! the sine, so that CPU and GPU agree. The curve is opaque; the darkened pixels around the curve keep their alpha.
//! There is no history: each frame has its own curve.

use vramp_kernels::head::luma::LUMA;
use vramp_kernels::pixel::curve::{self, CURVE};
use vramp_plan::catalog::{Class, Entry, Family, KernelDesc, KernelRule, Setting, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use super::{boxed, seconds};

pub static ENTRY: Entry = Entry {
    name: "waveform",
    family: Family::Draw,
    about: "draws a sine wave, or the mean brightness of each column",
    example: "pattern size=64x64 ! waveform kind=luma ! null",
    settings: &[Setting::choice("kind", &["sine", "luma"], "curve: a running sine, or the brightness of the frame")
        .default("sine")
        .rebuild()],
    bare: Some("kind"),
    small: Some(|_, _, size| 4 * u64::from(size.width)),
    kernel: KernelRule::By {
        setting: "kind",
        cases: &[("luma", KernelDesc::REDUCTION)],
        otherwise: KernelDesc::POINTWISE,
    },
    work: Work {
        class: Class::Draw,
        units: Units::PerFrameBy(|_, _, frame| boxed(f64::from(frame.width), 3.0, frame)),
    },
    // All pixels are read for the means, and a quarter of the pixels is drawn on. Drawing on a pixel costs less than
    // reading a pixel, so this number of units is an upper bound.
    work_when: &[("kind", "luma", Work { class: Class::Reduce, units: Units::PerPixel(1.25) })],
    ..Entry::FILTER
};

/// Amplitude of the sine in pixels.
const REACH: f64 = 50.0;
/// Increase of the angle per column.
const PER_COLUMN: f64 = 0.02;
/// Speed of the sine in columns per second.
const SPEED: f64 = 100.0;
const YELLOW: [u8; 4] = [255, 255, 0, 255];

#[derive(Debug)]
struct Sine {
    state: State,
}

#[derive(Debug)]
struct Settings {
    luma: bool,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Settings {
        Settings { luma: setup.settings.text("kind") == Some("luma") }
    }
}

/// Memory that is reused from frame to frame.
#[derive(Debug, Default)]
struct State {
    /// Sine and cosine of each column's angle at time 0. The sines at other times follow from the angle sum formula.
    /// That takes a fraction of the 45 us in which 1920 sines are computed.
    angles: Vec<(f64, f64)>,
    rows: Vec<i32>,
    small: Vec<u32>,
}

impl PixelHandler for Sine {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&CURVE)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let State { angles, rows, small } = &mut self.state;
        if angles.len() != info.size.width as usize {
            angles.clear();
            angles.extend((0..info.size.width).map(|x| (f64::from(x) * PER_COLUMN).sin_cos()));
        }
        let (turn_sin, turn_cos) = (SPEED * seconds(info) * PER_COLUMN).sin_cos();
        let (across, along) = (REACH * turn_cos, REACH * turn_sin);
        let middle = f64::from(info.size.height) / 2.0 + 0.5;
        rows.clear();
        rows.extend(angles.iter().map(|(sin, cos)| floor(middle + (sin * across + cos * along))));
        small.clear();
        small.extend(rows.iter().map(|row| row.cast_unsigned()));
        give.part(&curve::pack(YELLOW, rows), small);
        Ok(Flow::Produced)
    }
}

/// The brightness curve. It has no parameters, because all its data is in the frame.
#[derive(Debug)]
struct LumaCurve;

impl PixelHandler for LumaCurve {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&LUMA)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&[], &[]);
        Ok(Flow::Produced)
    }
}

/// Rounds down like `f64::floor`, which would be a function call in code for the baseline processor.
fn floor(v: f64) -> i32 {
    let whole = v as i32;
    whole - i32::from(v < f64::from(whole))
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { luma } = Settings::of(setup);
    Ok(if luma { Worker::pixels(LumaCurve) } else { Worker::pixels(Sine { state: State::default() }) })
}

#[cfg(test)]
mod tests {
    use super::floor;

    #[test]
    fn floor_goes_down_on_both_sides_of_zero() {
        for (v, expected) in [(0.0, 0), (0.99, 0), (-0.01, -1), (-1.0, -1), (-49.5, -50), (7.0, 7)] {
            assert_eq!(floor(v), expected, "{v}");
        }
    }
}
