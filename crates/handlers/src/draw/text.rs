//! `text`: draws text on frames.
//!
//! The handler replaces `{fps}`, `{frame}`, `{time}`, `{size}` and `{meta.KEY}` by the values of each frame. `{{` stands
//! for `{`, and other words in braces are plain text. `{meta.KEY}` is the note KEY of the frame, in the form that
//! `letters/values.rs` describes, or `-` if the frame has no such note. Lines are not wrapped. `letters` shapes the text; `letters/writing.rs`
//! explains lines with values and right-to-left scripts.

use vramp_kernels::Pixel;
use vramp_kernels::pixel::glyphs::GLYPHS;
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, Family, PathUse, Setting, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::letters::{
    Fonts, MOST_NOTE_CHARACTERS, Template, TextBlock, TextPlacement, TextValues, coverage_bytes, guarded,
};

use super::OFFSET;
use super::{color, line, whole};

pub static ENTRY: Entry = Entry {
    name: "text",
    family: Family::Draw,
    about: "draws text; {fps}, {frame}, {time}, {size} and {meta.KEY} are replaced by their values",
    example: "pattern ! text \"{fps} fps\" size=32 ! null",
    settings: &[
        Setting::text(
            "text",
            "text of one or several lines; {meta.KEY} is the note KEY of the frame, with at most 6 decimals and 80 \
             characters, or - if there is none",
        )
        .live(),
        Setting::int("x", OFFSET, "left end of the first baseline in pixels").default("20").live(),
        Setting::int("y", OFFSET, "distance of the first baseline from the top in pixels").default("40").live(),
        Setting::int("size", 1..=1024, "font size in pixels").default("24").live(),
        Setting::color("color", "text colour").default("ffffff").live(),
        Setting::path("font", PathUse::Read, "font file; defaults to the embedded font").optional().live(),
    ],
    bare: Some("text"),
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    // The coverage of the glyphs.
    small: Some(|settings, _, frame| coverage(settings, frame)),
    ..Entry::FILTER
};

/// Assumes that a placeholder is about as long as its value.
fn touched(settings: &catalog::SettingValues, _: Size, frame: Size) -> f64 {
    let size_px = settings.int("size").unwrap_or(24) as f64;
    let lines = settings.text("text").unwrap_or_default().lines();
    lines.map(|l| line(l.chars().count(), size_px, frame)).sum::<f64>().min(frame.pixels() as f64)
}

/// Assumes that a placeholder is about as long as its value, and that a note is as long as it may be.
fn coverage(settings: &catalog::SettingValues, frame: Size) -> u64 {
    let size_px = settings.int("size").and_then(|size| u32::try_from(size).ok()).unwrap_or(24);
    let lines = settings.text("text").unwrap_or_default().lines();
    let letters = |line: &str| line.chars().count() + MOST_NOTE_CHARACTERS * line.matches("{meta.").count();
    coverage_bytes(lines.map(|line| (letters(line), size_px)), frame)
}

struct TextHandler {
    state: State,
}

#[derive(Debug)]
struct Settings<'a> {
    text: &'a str,
    place: TextPlacement,
    color: Pixel,
    font: Option<&'a str>,
}

impl<'a> Settings<'a> {
    fn of(setup: &Setup<'a>) -> Settings<'a> {
        let size_px = whole(setup, "size", 24).cast_unsigned();
        Settings {
            text: setup.settings.text("text").unwrap_or_default(),
            place: TextPlacement { x: whole(setup, "x", 20), y: whole(setup, "y", 40), size_px },
            color: color(setup, "color", [255; 4]),
            font: setup.settings.text("font"),
        }
    }
}

struct State {
    writing: TextBlock,
}

impl PixelHandler for TextHandler {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&GLYPHS)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let (words, small) = self.state.writing.set(&TextValues::of(info), info.size).map_err(HandlerError::failed)?;
        give.part(words, small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let Settings { text, place, color, font } = Settings::of(setup);
    let set = || {
        let template = Template::read(text)?;
        let mut fonts = Fonts::of_file(font)?;
        Ok(TextBlock::of(&mut fonts, color, &[(template, place)])?.keeping(fonts))
    };
    let writing = guarded(font, set).map_err(HandlerError::failed)?;
    Ok(Worker::pixels(TextHandler { state: State { writing } }))
}

#[cfg(test)]
mod tests {
    use vramp_plan::catalog::{SettingValues, Value};

    use super::touched;
    use vramp_plan::Size;

    fn at(text: &str, size: i64, frame: Size) -> f64 {
        let mut settings = SettingValues::default();
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
