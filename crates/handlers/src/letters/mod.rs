//! Letters: text that has been set, ready to be drawn.
//!
//! Owns fonts and how text is shaped (`fonts`), coverage masks (`sheet`), what is written and which parts of it change
//! (`template`), the values of those (`values`), and whole writings in one colour (`writing`).
//! Does not draw: the kernel `glyphs` does, from what a writing hands over.
//!
//! Always: shaping happens once, when a handler is made; a frame only puts masks that are there side by side, without
//! allocating. Pens move by the font's own advances and every mask lies at the nearest whole pixel.

mod fonts;
mod sheet;
mod template;
mod values;
mod writing;

pub(crate) use fonts::Fonts;
pub(crate) use template::{Template, TemplatePiece};
pub(crate) use values::{TextValue, TextValues};
pub(crate) use writing::{TextBlock, TextPlacement};

use std::panic::{AssertUnwindSafe, catch_unwind};

use vramp_plan::Size;

/// Sets text, and takes a panic of the font libraries for what it is: a damaged font. About one in five hundred that
/// had bytes changed at random made them panic.
pub(crate) fn guarded<R>(font: Option<&str>, set: impl FnOnce() -> Result<R, LettersError>) -> Result<R, LettersError> {
    // Whatever was half-made is gone with the panic.
    catch_unwind(AssertUnwindSafe(set)).unwrap_or_else(|_| {
        Err(match font {
            Some(path) => LettersError::NoFont { path: path.to_owned(), problem: "damaged".to_owned() },
            None => LettersError::Damaged,
        })
    })
}

/// The most bytes of coverage for lines of so many letters and these sizes, one below the other: letters are seldom wider
/// than three quarters of their size, and lines are a quarter further apart. A writing takes powers of two.
pub(crate) fn coverage_bytes(lines: impl Iterator<Item = (usize, u32)>, frame: Size) -> u64 {
    let (mut width, mut height) = (0, 0);
    for (letters, size_px) in lines {
        width = width.max(letters as u64 * u64::from(size_px) * 3 / 4);
        height += u64::from(size_px) * 5 / 4;
    }
    let words = (width.min(frame.width.into()) / 4 + 2) * height.min(frame.height.into());
    4 * words.next_power_of_two()
}

/// Glyphs and lines of one text together: more is a mistake, and would make every change of the text slow.
pub(crate) const MOST_GLYPHS: usize = 8000;

/// Why text cannot be set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LettersError {
    #[error("font `{path}` cannot be read: {error}; check the path, or leave `font` out for the embedded one")]
    Unreadable { path: String, error: std::io::Error },
    #[error(
        "font `{path}` is {problem}, expected a TrueType or OpenType file (.ttf, .otf, .ttc); convert it, or leave \
         `font` out for the embedded one"
    )]
    NoFont { path: String, problem: String },
    #[error("a font of the system that the text needs is damaged; give a `font` that has all of its characters")]
    Damaged,
    #[error("the text has {count} characters, at most {most} can be set; write less, or use several `text`")]
    TooLong { count: usize, most: usize },
    #[error(
        "the text has {count} letters and lines to draw, at most {} fit into one drawing; write less, or use several \
         `text`",
        MOST_GLYPHS
    )]
    TooMany { count: usize },
    #[error(
        "the letters of the text take {bytes} bytes at this size, at most {most} are kept; use a smaller `size` or \
         fewer different letters"
    )]
    TooLarge { bytes: usize, most: usize },
    #[error("the text reaches beyond the 32 bits of a coordinate; use a smaller `x`, `y` or `size`")]
    TooFar,
}
