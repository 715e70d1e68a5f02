//! Text blocks: lines of text in one colour, with the values of each frame in their places.
//!
//! A block holds its lines, the masks of their glyphs, and the parameters and small data of the kernel `glyphs`. Laying
//! out a frame allocates nothing, however long the values get, except when a note has a character for the first time.
//!
//! A line without values is shaped as a whole. In a line with values (`{fps}`) each piece of text is shaped alone, and
//! values are composed of characters that were shaped one by one: there is no kerning inside a value, and a value does
//! not join its neighbours in scripts whose letters join. Pieces and values follow each other in the order of the text:
//! to the right, or to the left if the first letter of the line belongs to a right-to-left script.
//!
//! Fixed text that is too long is refused; values that do not fit are cut off.

use vramp_kernels::Pixel;
use vramp_kernels::pixel::glyphs::{self, Glyph};
use vramp_plan::Size;

use super::LettersError;
use super::MOST_GLYPHS;
use super::fonts::{Fonts, ShapedRun};
use super::sheet::{GlyphMask, GlyphSheet};
use super::template::{Template, TemplatePiece};
use super::value_glyphs::ValueGlyphs;
use super::values::{TextValue, TextValues};

/// Invisible marks that set the direction of the following text.
const TO_THE_RIGHT: char = '\u{200e}';
const TO_THE_LEFT: char = '\u{200f}';

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextPlacement {
    /// Column of the left end of the first baseline.
    pub(crate) x: i32,
    /// Row of the first baseline.
    pub(crate) y: i32,
    pub(crate) size_px: u32,
}

/// Lines of text in one colour.
pub(crate) struct TextBlock {
    color: Pixel,
    sheet: GlyphSheet,
    lines: Vec<TextLine>,
    /// The characters of values, once for each font size in which values occur.
    figures: Vec<ValueGlyphs>,
    /// For the characters of notes; `None` if the text has no notes.
    fonts: Option<Fonts>,
    /// Maximum number of glyphs of all values together.
    room: usize,
    /// The values of the current layout, each followed by a line break.
    values: String,
    /// The values of the next frame, in the same form.
    next: String,
    set: Vec<Vec<Glyph>>,
    words: [u32; 8],
    small: Vec<u32>,
    /// The frame size of the current layout.
    laid_for: Option<Size>,
}

struct TextLine {
    x: i32,
    y: i32,
    /// The texts and values of the line, from left to right.
    items: Vec<LineItem>,
    size_px: u32,
}

enum LineItem {
    Text(PlacedGlyphs),
    Value(TextValue),
}

/// Masks with the positions of their origins, and the distance that the pen moves over all masks.
#[derive(Clone)]
pub(super) struct PlacedGlyphs {
    pub(super) marks: Vec<(GlyphMask, f64, f64)>,
    advance: f64,
}

impl TextBlock {
    /// Lays out these texts.
    pub(crate) fn of(
        fonts: &mut Fonts,
        color: Pixel,
        texts: &[(Template, TextPlacement)],
    ) -> Result<TextBlock, LettersError> {
        let (mut sheet, mut lines, mut figures) = (GlyphSheet::default(), Vec::new(), Vec::<ValueGlyphs>::new());
        let has_notes = texts.iter().any(|(template, _)| template.has_notes());
        for (template, place) in texts {
            let size_px = place.size_px;
            for (at, pieces) in template.lines.iter().enumerate() {
                let down = (at as f64 * fonts.line_px(size_px)).round() as i32;
                let items = items(fonts, &mut sheet, pieces, size_px)?;
                lines.push(TextLine { x: place.x, y: place.y.saturating_add(down), items, size_px });
            }
            if template.changes() && figures.iter().all(|figures| figures.size_px != size_px) {
                figures.push(ValueGlyphs::of(fonts, &mut sheet, size_px, has_notes)?);
            }
        }
        // Lines without glyphs are removed, so that they cost nothing.
        lines.retain(|line| line.most_glyphs() > 0);
        let fixed: usize = lines.iter().map(TextLine::fixed_glyphs).sum();
        let count = fixed + lines.len();
        let room = MOST_GLYPHS.checked_sub(count).ok_or(LettersError::TooMany { count })?;
        let values = lines.iter().flat_map(TextLine::values).map(|value| value.most_bytes() + 1).sum();
        Ok(TextBlock {
            color,
            sheet,
            set: lines.iter().map(|line| Vec::with_capacity(line.most_glyphs())).collect(),
            lines,
            figures,
            fonts: None,
            room,
            values: String::with_capacity(values),
            next: String::with_capacity(values),
            words: [0; 8],
            small: Vec::new(),
            laid_for: None,
        })
    }

    /// Keeps the fonts if the text has notes, whose characters are not known before they occur.
    pub(crate) fn keeping(mut self, fonts: Fonts) -> TextBlock {
        let has_notes = self.lines.iter().flat_map(TextLine::values).any(|value| matches!(value, TextValue::Note(_)));
        self.fonts = has_notes.then_some(fonts);
        self
    }

    /// Sets the values of a frame of this size; returns the parameters and the small data of `glyphs`.
    pub(crate) fn set(&mut self, values: &TextValues<'_>, size: Size) -> Result<(&[u32], &[u32]), LettersError> {
        self.next.clear();
        for value in self.lines.iter().flat_map(TextLine::values) {
            values.write(value, &mut self.next);
            self.next.push('\n');
        }
        if self.next != self.values || self.laid_for != Some(size) {
            std::mem::swap(&mut self.next, &mut self.values);
            self.shape_values();
            self.lay(size)?;
            self.laid_for = Some(size);
        }
        Ok((&self.words, &self.small))
    }

    /// Shapes the characters of notes that occur for the first time.
    fn shape_values(&mut self) {
        let Some(fonts) = &mut self.fonts else { return };
        for c in self.values.lines().flat_map(str::chars) {
            self.figures.iter_mut().for_each(|figures| figures.add(c, fonts, &mut self.sheet));
        }
    }

    /// Places the masks of all lines.
    fn lay(&mut self, size: Size) -> Result<(), LettersError> {
        let (mut values, mut room) = (self.values.lines(), self.room);
        for (line, set) in self.lines.iter().zip(&mut self.set) {
            set.clear();
            let mut pen = 0.0;
            // `None` only for lines without values, which do not use `figures`.
            let figures = self.figures.iter().find(|figures| figures.size_px == line.size_px);
            for item in &line.items {
                match item {
                    LineItem::Text(laid) => laid.put(line, &mut pen, laid.marks.len(), set),
                    LineItem::Value(_) => {
                        let characters = values.next().unwrap_or_default().chars();
                        let laid = characters.filter_map(|c| figures?.get(c));
                        for laid in laid {
                            laid.put(line, &mut pen, room, set);
                            room = room.saturating_sub(laid.marks.len());
                        }
                    }
                }
            }
        }
        let most = self.small.len();
        let words = glyphs::pack(self.color, self.sheet.coverage(), &self.set, size, &mut self.small);
        self.words = words.ok_or(LettersError::TooFar)?;
        // The small data never shrinks and grows in powers of two, so that its copies need not grow with every digit.
        self.small.resize(self.small.len().next_power_of_two().max(most), 0);
        Ok(())
    }
}

impl TextLine {
    fn values(&self) -> impl Iterator<Item = &TextValue> {
        self.items.iter().filter_map(|item| match item {
            LineItem::Value(value) => Some(value),
            LineItem::Text(_) => None,
        })
    }

    fn fixed_glyphs(&self) -> usize {
        let texts = self.items.iter().map(|item| match item {
            LineItem::Text(laid) => laid.marks.len(),
            LineItem::Value(_) => 0,
        });
        texts.sum()
    }

    fn most_glyphs(&self) -> usize {
        self.fixed_glyphs() + self.values().map(TextValue::most_characters).sum::<usize>()
    }
}

impl PlacedGlyphs {
    /// The masks of a run, without the empty masks.
    pub(super) fn of(fonts: &mut Fonts, sheet: &mut GlyphSheet, run: ShapedRun) -> Result<PlacedGlyphs, LettersError> {
        let mut marks = Vec::with_capacity(run.glyphs.len());
        for glyph in run.glyphs {
            let mark = sheet.mark(fonts, glyph.key)?;
            if mark.has_pixels() {
                marks.push((mark, glyph.x, glyph.y));
            }
        }
        Ok(PlacedGlyphs { marks, advance: run.advance })
    }

    /// Places as many of the glyphs as there is room for, starting at the pen, and moves the pen.
    fn put(&self, line: &TextLine, pen: &mut f64, room: usize, set: &mut Vec<Glyph>) {
        for (mark, x, y) in self.marks.iter().take(room) {
            let origin = ((*pen + x).round() as i32, y.round() as i32);
            set.push(Glyph {
                x: line.x.saturating_add(origin.0).saturating_add(mark.left),
                y: line.y.saturating_add(origin.1).saturating_sub(mark.up),
                width: mark.width,
                height: mark.height,
                at: mark.at,
            });
        }
        *pen += self.advance;
    }
}

/// The items of a line, from left to right.
fn items(
    fonts: &mut Fonts,
    sheet: &mut GlyphSheet,
    pieces: &[TemplatePiece],
    size_px: u32,
) -> Result<Vec<LineItem>, LettersError> {
    if let [TemplatePiece::Fixed(text)] = pieces {
        let run = fonts.shape(text, size_px);
        return Ok(vec![LineItem::Text(PlacedGlyphs::of(fonts, sheet, run)?)]);
    }
    let texts = pieces.iter().filter_map(|piece| match piece {
        TemplatePiece::Fixed(text) => Some(text.as_str()),
        TemplatePiece::Value(_) => None,
    });
    let leftward = fonts.shape(&texts.collect::<String>(), size_px).right_to_left;
    let direction = if leftward { TO_THE_LEFT } else { TO_THE_RIGHT };
    let items = pieces.iter().map(|piece| match piece {
        TemplatePiece::Fixed(text) => {
            let run = fonts.shape(&format!("{direction}{text}"), size_px);
            Ok(LineItem::Text(PlacedGlyphs::of(fonts, sheet, run)?))
        }
        TemplatePiece::Value(value) => Ok(LineItem::Value(value.clone())),
    });
    let mut items = items.collect::<Result<Vec<_>, LettersError>>()?;
    if leftward {
        items.reverse();
    }
    Ok(items)
}
