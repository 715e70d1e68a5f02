//! `text`: words on the picture.
//!
//! Owns the words, their place, size, colour and font.
//! Does not wrap lines.
//!
//! Always: `{fps}`, `{frame}`, `{time}` and `{size}` are filled in once per frame and stay with it.

use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Family, Liveness, Settings, Units, ValueType, Work};

use crate::declare::{OFFSET, defaults, int, optional, required};

use super::line;

/// What `text` declares.
pub static ENTRY: Entry = Entry {
    name: "text",
    family: Family::Draw,
    about: "writes text; {fps}, {frame}, {time} and {size} are filled in",
    example: "pattern ! text \"{fps} fps\" size=32 ! null",
    settings: &[
        required("text", ValueType::Text, Liveness::Live, "the text, in one or several lines"),
        defaults("x", OFFSET, "20", Liveness::Live, "left end of the first baseline"),
        defaults("y", OFFSET, "40", Liveness::Live, "height of the first baseline, from the top"),
        defaults("size", int(1, 1024), "24", Liveness::Rebuild, "size of the letters in pixels"),
        defaults("color", ValueType::Color, "ffffff", Liveness::Live, "colour of the letters"),
        optional("font", ValueType::Path, Liveness::Fixed, "a font file; the embedded font if not given"),
    ],
    bare: Some("text"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    // The glyph atlas.
    small: true,
    ..Entry::FILTER
};

/// A placeholder is about as long as what replaces it.
fn touched(settings: &Settings, _: Size, frame: Size) -> f64 {
    let size_px = settings.int("size").unwrap_or(24) as f64;
    let lines = settings.text("text").unwrap_or_default().lines();
    lines.map(|l| line(l.chars().count(), size_px, frame)).sum::<f64>().min(frame.pixels() as f64)
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::Value;

    use super::*;

    fn at(text: &str, size: i64, frame: Size) -> f64 {
        let mut settings = Settings::default();
        settings.set("text", Value::Text(text.to_owned()));
        settings.set("size", Value::Int(size));
        touched(&settings, frame, frame)
    }

    #[test]
    fn text_touches_its_lines_and_never_more_than_the_frame() {
        let frame = Size { width: 640, height: 480 };
        assert!((at("äbc\nd", 10, frame) - 4.0 * 6.0 * 12.0).abs() < 1e-9);
        assert!(at("", 10, frame).abs() < 1e-9);
        let page = "x".repeat(10_000) + "\n";
        assert!((at(&page.repeat(100), 1024, frame) - 640.0 * 480.0).abs() < 1e-9);
    }
}
