//! Text layout: shaped text, ready to be drawn by the kernel `glyphs`.
//!
//! `fonts` shapes text, `sheet` holds coverage masks, `template` finds placeholders, `values` formats the values of
//! placeholders, `value_glyphs` has the characters of values, and `writing` lays out whole text blocks in one colour.
//! `painter` paints lines into an image, for the overlays of windows. `strips` has single lines as coverage.
//!
//! Shaping allocates, so it happens once, when a handler is created; a character that only a note has is shaped when it
//! first occurs. For a frame, existing masks are only placed next to each other, without allocating. When the text changes, the CPU combines the masks into one coverage image, which
//! reaches the device as small data, so that the kernel needs only one load per pixel. A loop over glyphs for every
//! pixel took 8 of the 25 ms of CPU time of a 640x480 demo frame on Mesa's software driver.
//!
//! The pen moves by the font's own advances, and every mask is placed at the nearest whole pixel.

mod fonts;
mod painter;
mod sheet;
mod strips;
mod template;
mod value_glyphs;
mod values;
mod writing;

pub(crate) use fonts::Fonts;
pub use painter::{PaintedLine, PaintedText, TextPainter};
pub(crate) use strips::{strip, strip_height};
pub(crate) use template::{Template, TemplatePiece};
pub(crate) use values::{MOST_NOTE_CHARACTERS, TextValue, TextValues};
pub(crate) use writing::{TextBlock, TextPlacement};

use std::panic::{AssertUnwindSafe, catch_unwind};

use vramp_plan::Size;

/// Runs a layout function, and reports a panic of the font libraries as a damaged font. In a test, about one in
/// five hundred fonts with randomly changed bytes made these libraries panic.
pub(crate) fn guarded<R>(font: Option<&str>, set: impl FnOnce() -> Result<R, LettersError>) -> Result<R, LettersError> {
    // The panic drops all half-built state.
    catch_unwind(AssertUnwindSafe(set)).unwrap_or_else(|_| {
        Err(match font {
            Some(path) => LettersError::NoFont { path: path.to_owned(), problem: "damaged".to_owned() },
            None => LettersError::Damaged,
        })
    })
}

/// An estimate of the coverage bytes for lines of these lengths and font sizes, one line below the other. The estimate
/// is seldom too low: it assumes letters as wide as three quarters of the font size, which few letters exceed, and a
/// distance of 5/4 of the font size between two lines. A text block allocates powers of two.
pub(crate) fn coverage_bytes(lines: impl Iterator<Item = (usize, u32)>, frame: Size) -> u64 {
    let (mut width, mut height) = (0, 0);
    for (letters, size_px) in lines {
        width = width.max(letters as u64 * u64::from(size_px) * 3 / 4);
        height += u64::from(size_px) * 5 / 4;
    }
    let words = (width.min(frame.width.into()) / 4 + 2) * height.min(frame.height.into());
    4 * words.next_power_of_two()
}

/// Limit for the sum of the glyphs and lines of one text. A larger text is probably a mistake, and would make every
/// change of the text slow.
pub(crate) const MOST_GLYPHS: usize = 8000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LettersError {
    #[error("font `{path}` cannot be read: {error}; check the path, or leave out `font` for the embedded font")]
    Unreadable { path: String, error: std::io::Error },
    #[error(
        "font `{path}` is {problem}; give a TrueType or OpenType file (.ttf, .otf, .ttc), or leave out `font` for the \
         embedded font"
    )]
    NoFont { path: String, problem: String },
    #[error("a system font that the text needs is damaged; give a `font` that has all characters")]
    Damaged,
    #[error(
        "the text has {count} characters, expected at most {most}; shorten the text, or use several `text` handlers"
    )]
    TooLong { count: usize, most: usize },
    #[error(
        "the text has {count} glyphs and lines in all, expected at most {}; shorten the text, or use several \
         `text` handlers",
        MOST_GLYPHS
    )]
    TooMany { count: usize },
    #[error(
        "the glyphs of the text take {bytes} bytes at this size, expected at most {most}; use a smaller `size` or \
         fewer different letters"
    )]
    TooLarge { bytes: usize, most: usize },
    #[error(
        "`{placeholder}` does not name a note; write `{{meta.KEY}}` with 1 to 64 letters, digits, `-`, `_` or `.`, or \
         `{{{{meta.` for plain text"
    )]
    NoKey { placeholder: String },
    #[error("the text reaches beyond the 32 bits of a coordinate; use a smaller `x`, `y` or `size`")]
    TooFar,
}
