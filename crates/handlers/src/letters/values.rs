//! Values that change in a text from frame to frame, and their formatting.
//!
//! The values come with the frame. Formatting does not allocate. A formatted value has at most [`MOST_CHARACTERS`]
//! characters, all of them from [`CHARACTERS`].

use std::fmt::Write;

use vramp_plan::Size;
use vramp_runtime::PixelInfo;

/// Every character that a value can contain.
pub(super) const CHARACTERS: &str = "0123456789.:-x";

/// Maximum length of a value. A frame number of 64 bits has up to 20 digits, and a size with sides of 32 bits has up to
/// 21 characters.
pub(super) const MOST_CHARACTERS: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextValue {
    /// Frames per second, with one decimal.
    Fps,
    Frame,
    /// Stream time, as hours, minutes, seconds and milliseconds.
    Time,
    Size,
    /// Milliseconds since the previous frame of the source, with one decimal.
    Delta,
}

impl TextValue {
    pub(super) const ALL: [TextValue; 5] =
        [TextValue::Fps, TextValue::Frame, TextValue::Time, TextValue::Size, TextValue::Delta];

    /// The placeholder in a text; [`TextValue::Delta`] has no placeholder.
    pub(super) fn placeholder(self) -> Option<&'static str> {
        match self {
            TextValue::Fps => Some("{fps}"),
            TextValue::Frame => Some("{frame}"),
            TextValue::Time => Some("{time}"),
            TextValue::Size => Some("{size}"),
            TextValue::Delta => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextValues {
    fps: f64,
    frame: u64,
    time_ns: i64,
    size: Size,
    delta_ns: u64,
}

impl TextValues {
    pub(crate) fn of(info: &PixelInfo) -> TextValues {
        let now = &info.now;
        let (fps, delta_ns) = (now.birth.fps, now.birth.delta_ns);
        TextValues { fps, frame: now.number, time_ns: now.pts_ns, size: info.size, delta_ns }
    }

    /// Appends one of the values to `text`.
    pub(super) fn write(&self, value: TextValue, text: &mut String) {
        let written = match value {
            TextValue::Fps => write!(text, "{:.1}", bounded(self.fps)),
            TextValue::Frame => write!(text, "{}", self.frame),
            TextValue::Time => {
                let sign = if self.time_ns < 0 { "-" } else { "" };
                let ms = self.time_ns.unsigned_abs() / 1_000_000;
                let (s, m, h) = (ms / 1000 % 60, ms / 60_000 % 60, ms / 3_600_000);
                write!(text, "{sign}{h}:{m:02}:{s:02}.{:03}", ms % 1000)
            }
            TextValue::Size => write!(text, "{}x{}", self.size.width, self.size.height),
            TextValue::Delta => write!(text, "{:.1}", bounded(self.delta_ns as f64 / 1e6)),
        };
        written.expect("writing to a String cannot fail");
    }
}

/// Replaces NaN and infinities by 0, and limits extreme values, so that the length of the text is bounded.
fn bounded(v: f64) -> f64 {
    if v.is_finite() { v.clamp(0.0, 1e15) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: TextValues =
        TextValues { fps: 0.0, frame: 0, time_ns: 0, size: Size { width: 1, height: 1 }, delta_ns: 0 };

    fn shown(values: TextValues, value: TextValue) -> String {
        let mut text = String::new();
        values.write(value, &mut text);
        assert!(text.len() <= MOST_CHARACTERS && text.chars().all(|c| CHARACTERS.contains(c)), "{text}");
        text
    }

    #[test]
    fn values_are_written_as_the_catalogue_says() {
        assert_eq!(shown(TextValues { fps: 59.94, ..NONE }, TextValue::Fps), "59.9");
        assert_eq!(shown(TextValues { fps: f64::NAN, ..NONE }, TextValue::Fps), "0.0");
        assert_eq!(shown(TextValues { fps: f64::MAX, ..NONE }, TextValue::Fps), "1000000000000000.0");
        assert_eq!(shown(TextValues { frame: u64::MAX, ..NONE }, TextValue::Frame), "18446744073709551615");
        assert_eq!(shown(NONE, TextValue::Time), "0:00:00.000");
        assert_eq!(shown(TextValues { time_ns: 3_723_004_999_999, ..NONE }, TextValue::Time), "1:02:03.004");
        assert_eq!(shown(TextValues { time_ns: -1_500_000_000, ..NONE }, TextValue::Time), "-0:00:01.500");
        assert_eq!(shown(TextValues { time_ns: i64::MIN, ..NONE }, TextValue::Time), "-2562047:47:16.854");
        assert_eq!(
            shown(TextValues { size: Size { width: 1920, height: 1080 }, ..NONE }, TextValue::Size),
            "1920x1080"
        );
        assert_eq!(shown(TextValues { delta_ns: 16_683_350, ..NONE }, TextValue::Delta), "16.7");
        assert_eq!(shown(TextValues { delta_ns: u64::MAX, ..NONE }, TextValue::Delta), "18446744073709.6");
    }
}
