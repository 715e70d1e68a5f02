//! The characters of values, shaped one by one.
//!
//! The characters of numbers are shaped when a text block is created. A note can have any other character, which is
//! shaped when it first occurs; this allocates. A character that is not available is shown as `?`: if the sheet has no
//! room for it, if a font is damaged, or if there are [`MOST_SHAPED`] characters already.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::LettersError;
use super::fonts::Fonts;
use super::sheet::GlyphSheet;
use super::values::{CHARACTERS, NOTE_CHARACTERS};
use super::writing::PlacedGlyphs;

/// Limit for the number of characters, so that notes with ever new characters do not take ever more memory.
const MOST_SHAPED: usize = 1024;

const NOT_AVAILABLE: char = '?';

/// The characters of values at one font size.
pub(super) struct ValueGlyphs {
    pub(super) size_px: u32,
    of: BTreeMap<char, PlacedGlyphs>,
}

impl ValueGlyphs {
    /// Shapes the characters of numbers, with those of notes if there are notes.
    pub(super) fn of(
        fonts: &mut Fonts,
        sheet: &mut GlyphSheet,
        size_px: u32,
        notes: bool,
    ) -> Result<ValueGlyphs, LettersError> {
        let also = if notes { NOTE_CHARACTERS } else { "" };
        let shaped = CHARACTERS.chars().chain(also.chars()).map(|c| Ok((c, shape(fonts, sheet, c, size_px)?)));
        Ok(ValueGlyphs { size_px, of: shaped.collect::<Result<_, LettersError>>()? })
    }

    /// A character, or what stands for a character that is not available.
    pub(super) fn get(&self, c: char) -> Option<&PlacedGlyphs> {
        self.of.get(&c).or_else(|| self.of.get(&NOT_AVAILABLE))
    }

    /// Shapes a character that occurs for the first time.
    pub(super) fn add(&mut self, c: char, fonts: &mut Fonts, sheet: &mut GlyphSheet) {
        if self.of.contains_key(&c) || self.of.len() >= MOST_SHAPED {
            return;
        }
        // The font libraries can panic on a damaged font.
        let shaped = catch_unwind(AssertUnwindSafe(|| shape(fonts, sheet, c, self.size_px)));
        let instead = || self.of.get(&NOT_AVAILABLE).cloned();
        if let Some(glyphs) = shaped.ok().and_then(Result::ok).or_else(instead) {
            self.of.insert(c, glyphs);
        }
    }
}

fn shape(fonts: &mut Fonts, sheet: &mut GlyphSheet, c: char, size_px: u32) -> Result<PlacedGlyphs, LettersError> {
    let run = fonts.shape(c.encode_utf8(&mut [0; 4]), size_px);
    let mut laid = PlacedGlyphs::of(fonts, sheet, run)?;
    // One glyph per character, as the limits of the lengths of values assume.
    laid.marks.truncate(1);
    Ok(laid)
}
