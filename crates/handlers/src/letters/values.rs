//! Values that change in a text from frame to frame, and their formatting.
//!
//! The values come with the frame. Formatting does not allocate. A formatted value has at most [`MOST_CHARACTERS`]
//! characters, all of them from [`CHARACTERS`]. Notes are the exception: they can have any character, and are cut to
//! [`MOST_NOTE_CHARACTERS`] characters, the last of which is then `…`.
//!
//! A note has the form that `probe` prints, with rounded numbers: at most 6 decimals; from 10^15 on and below 10^-6 as
//! `1.5e-9`, also with at most 6 decimals. The numbers of a list are separated by commas. Line breaks and other control
//! characters are spaces. A note that the frame does not have is `-`.

use std::fmt::{self, Write};

use vramp_plan::Size;
use vramp_runtime::{Note, Notes, PixelInfo};

/// Every character that a value other than a note can contain.
pub(super) const CHARACTERS: &str = "0123456789.:-x";

/// Further characters that a number or list in a note can contain, and that a note is cut or completed with.
pub(super) const NOTE_CHARACTERS: &str = ",eNainf…?";

/// Maximum length of a value other than a note. A frame number of 64 bits has up to 20 digits, and a size with sides of 32 bits has up to
/// 21 characters.
pub(super) const MOST_CHARACTERS: usize = 24;

/// Maximum length of a note in a text: what a 1920 pixels wide frame has room for at 40 pixels.
pub(crate) const MOST_NOTE_CHARACTERS: usize = 80;

/// Maximum number of bytes of a note before it is cut: 16 numbers of up to 23 characters and their commas, or 255 bytes
/// of text.
const MOST_NOTE_BYTES: usize = 512;

/// Stands for a note that the frame does not have.
const NO_NOTE: &str = "-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextValue {
    /// Frames per second, with one decimal.
    Fps,
    Frame,
    /// Stream time, as hours, minutes, seconds and milliseconds.
    Time,
    Size,
    /// Milliseconds since the previous frame of the source, with one decimal.
    Delta,
    /// The note with this key.
    Note(String),
}

impl TextValue {
    /// The values with a fixed placeholder.
    pub(super) const PLACED: [TextValue; 4] = [TextValue::Fps, TextValue::Frame, TextValue::Time, TextValue::Size];

    /// The placeholder in a text. [`TextValue::Delta`] has no placeholder, and that of a note contains the key.
    pub(super) fn placeholder(&self) -> Option<&'static str> {
        match self {
            TextValue::Fps => Some("{fps}"),
            TextValue::Frame => Some("{frame}"),
            TextValue::Time => Some("{time}"),
            TextValue::Size => Some("{size}"),
            TextValue::Delta | TextValue::Note(_) => None,
        }
    }

    pub(super) fn most_characters(&self) -> usize {
        if let TextValue::Note(_) = self { MOST_NOTE_CHARACTERS } else { MOST_CHARACTERS }
    }

    /// Maximum number of bytes while the value is written.
    pub(super) fn most_bytes(&self) -> usize {
        if let TextValue::Note(_) = self { MOST_NOTE_BYTES } else { MOST_CHARACTERS }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextValues<'a> {
    fps: f64,
    frame: u64,
    time_ns: i64,
    size: Size,
    delta_ns: u64,
    notes: Option<&'a Notes>,
}

impl<'a> TextValues<'a> {
    pub(crate) fn of(info: &PixelInfo<'a>) -> TextValues<'a> {
        let now = &info.now;
        let (fps, delta_ns) = (now.birth.fps, now.birth.delta_ns);
        TextValues { fps, frame: now.number, time_ns: now.pts_ns, size: info.size, delta_ns, notes: info.notes }
    }

    /// Appends one of the values to `text`.
    pub(super) fn write(&self, value: &TextValue, text: &mut String) {
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
            TextValue::Note(key) => {
                let written = self.notes.and_then(|notes| notes.with(key, |note| write_note(note, text)));
                written.unwrap_or_else(|| text.write_str(NO_NOTE))
            }
        };
        written.expect("writing to a String cannot fail");
    }
}

/// Replaces NaN and infinities by 0, and limits extreme values, so that the length of the text is bounded.
fn bounded(v: f64) -> f64 {
    if v.is_finite() { v.clamp(0.0, 1e15) } else { 0.0 }
}

/// Appends a note, cut to [`MOST_NOTE_CHARACTERS`].
fn write_note(note: Note<'_>, text: &mut String) -> fmt::Result {
    let start = text.len();
    match note {
        Note::Number(number) => write_number(number, text)?,
        Note::Text(words) => text.extend(words.chars().map(|c| if breaks(c) { ' ' } else { c })),
        Note::List(list) => {
            for (at, number) in list.values().iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                write_number(*number, text)?;
            }
        }
    }
    let mut ends = text[start..].char_indices().skip(MOST_NOTE_CHARACTERS - 1).map(|(at, _)| start + at);
    if let (Some(end), Some(_)) = (ends.next(), ends.next()) {
        text.truncate(end);
        text.push('…');
    }
    Ok(())
}

/// Whether a character ends a line or has no glyph.
fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Appends a number with at most 6 decimals, without zeros at their end.
fn write_number(number: f64, text: &mut String) -> fmt::Result {
    let start = text.len();
    let size = number.abs();
    if number == 0.0 || !number.is_finite() {
        // Not `-0`.
        return write!(text, "{}", if number == 0.0 { 0.0 } else { number });
    }
    let plain = (1e-6..1e15).contains(&size);
    if plain {
        write!(text, "{number:.6}")?;
    } else {
        write!(text, "{number:.6e}")?;
    }
    let end = text[start..].find('e').map_or(text.len(), |at| start + at);
    let kept = start + text[start..end].trim_end_matches('0').trim_end_matches('.').len();
    text.drain(kept..end);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: TextValues<'_> =
        TextValues { fps: 0.0, frame: 0, time_ns: 0, size: Size { width: 1, height: 1 }, delta_ns: 0, notes: None };

    fn shown(values: TextValues<'_>, value: &TextValue) -> String {
        let mut text = String::new();
        values.write(value, &mut text);
        assert!(text.len() <= MOST_CHARACTERS && text.chars().all(|c| CHARACTERS.contains(c)), "{text}");
        text
    }

    #[test]
    fn values_are_written_as_the_catalogue_says() {
        assert_eq!(shown(TextValues { fps: 59.94, ..NONE }, &TextValue::Fps), "59.9");
        assert_eq!(shown(TextValues { fps: f64::NAN, ..NONE }, &TextValue::Fps), "0.0");
        assert_eq!(shown(TextValues { fps: f64::MAX, ..NONE }, &TextValue::Fps), "1000000000000000.0");
        assert_eq!(shown(TextValues { frame: u64::MAX, ..NONE }, &TextValue::Frame), "18446744073709551615");
        assert_eq!(shown(NONE, &TextValue::Time), "0:00:00.000");
        assert_eq!(shown(TextValues { time_ns: 3_723_004_999_999, ..NONE }, &TextValue::Time), "1:02:03.004");
        assert_eq!(shown(TextValues { time_ns: -1_500_000_000, ..NONE }, &TextValue::Time), "-0:00:01.500");
        assert_eq!(shown(TextValues { time_ns: i64::MIN, ..NONE }, &TextValue::Time), "-2562047:47:16.854");
        assert_eq!(
            shown(TextValues { size: Size { width: 1920, height: 1080 }, ..NONE }, &TextValue::Size),
            "1920x1080"
        );
        assert_eq!(shown(TextValues { delta_ns: 16_683_350, ..NONE }, &TextValue::Delta), "16.7");
        assert_eq!(shown(TextValues { delta_ns: u64::MAX, ..NONE }, &TextValue::Delta), "18446744073709.6");
    }
    fn noted(note: Note<'_>) -> String {
        let mut text = String::with_capacity(MOST_NOTE_BYTES);
        let capacity = text.capacity();
        write_note(note, &mut text).expect("writing to a String cannot fail");
        assert!(text.chars().count() <= MOST_NOTE_CHARACTERS && text.capacity() == capacity, "{text}");
        text
    }

    #[test]
    fn numbers_in_notes_are_short_and_mostly_as_probe_prints_them() {
        for (number, shown) in [
            (0.0, "0"),
            (-0.0, "0"),
            (42.0, "42"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (1.0 / 3.0, "0.333333"),
            (f64::from(0.1_f32), "0.1"),
            (999_999_999_999_999.0, "999999999999999"),
            (1e15, "1e15"),
            (-1.23e300, "-1.23e300"),
            (0.000_001, "0.000001"),
            (0.000_000_5, "5e-7"),
            (f64::MIN_POSITIVE, "2.225074e-308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(noted(number.into()), shown, "{number:e}");
            assert!(shown.chars().all(|c| CHARACTERS.contains(c) || NOTE_CHARACTERS.contains(c)), "{shown}");
        }
    }

    #[test]
    fn notes_are_cut_after_80_characters() {
        assert_eq!(noted("two\nlines\u{2028}\t!".into()), "two lines  !");
        assert_eq!(noted("ä".repeat(80).as_str().into()), "ä".repeat(80));
        assert_eq!(noted("ä".repeat(81).as_str().into()), "ä".repeat(79) + "…");
        let list = vramp_runtime::NoteList::try_from(&[1.0, 2.5, 1e-9][..]).expect("a short list");
        assert_eq!(noted(list.into()), "1,2.5,1e-9");
        let longest = vramp_runtime::NoteList::try_from(&[-123_456_789_012_345.6; 16][..]).expect("a short list");
        assert!(noted(longest.into()).ends_with('…'));
        assert_eq!(noted("".into()), "");
        let mut text = String::new();
        NONE.write(&TextValue::Note("n".into()), &mut text);
        assert_eq!(text, "-", "a frame without this note");
    }
}
