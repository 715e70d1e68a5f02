//! A glyph sheet: the coverage masks of all glyphs that a text block may use, one after another.
//!
//! Each glyph is rasterised once. A sheet never grows beyond its limit.

use std::collections::BTreeMap;

use super::LettersError;
use super::fonts::{Fonts, GlyphKey};

/// Maximum size of a sheet: half of what every device can bind at once.
const MOST_BYTES: usize = 64 << 20;

/// A mask on a sheet, and the offset of the upper left corner of the mask from the origin of the glyph.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GlyphMask {
    pub(super) left: i32,
    pub(super) up: i32,
    pub(super) width: u16,
    pub(super) height: u16,
    pub(super) at: u32,
}

impl GlyphMask {
    pub(super) fn has_pixels(&self) -> bool {
        self.width > 0 && self.height > 0
    }
}

#[derive(Default)]
pub(super) struct GlyphSheet {
    coverage: Vec<u8>,
    marks: BTreeMap<GlyphKey, GlyphMask>,
}

impl GlyphSheet {
    /// The mask of a glyph, rasterised on first use. Masks whose width or height does not fit into 16 bits are left
    /// out.
    pub(super) fn mark(&mut self, fonts: &mut Fonts, key: GlyphKey) -> Result<GlyphMask, LettersError> {
        if let Some(mark) = self.marks.get(&key) {
            return Ok(*mark);
        }
        let mask = fonts.mask(key);
        let mark = match (u16::try_from(mask.width), u16::try_from(mask.height)) {
            (Ok(width), Ok(height)) => {
                let bytes = self.coverage.len() + mask.coverage.len();
                if bytes > MOST_BYTES {
                    return Err(LettersError::TooLarge { bytes, most: MOST_BYTES });
                }
                let at = self.coverage.len() as u32;
                self.coverage.extend(mask.coverage);
                GlyphMask { left: mask.left, up: mask.up, width, height, at }
            }
            _ => GlyphMask::default(),
        };
        self.marks.insert(key, mark);
        Ok(mark)
    }

    pub(super) fn coverage(&self) -> &[u8] {
        &self.coverage
    }
}
