//! Paints lines of text into an image, for views that lie over a picture.

use vramp_plan::Size;

use super::{Fonts, guarded};

/// A line of text in one colour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaintedLine {
    pub text: String,
    /// Red, green and blue.
    pub color: [u8; 3],
}

/// An image of the format rgba8, with straight alpha.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaintedText {
    pub size: Size,
    pub pixels: Vec<u8>,
}

/// Paints text with the embedded font. Characters that it lacks come from the fonts of the system.
pub struct TextPainter {
    fonts: Fonts,
}

impl std::fmt::Debug for TextPainter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextPainter").finish_non_exhaustive()
    }
}

impl Default for TextPainter {
    fn default() -> TextPainter {
        TextPainter { fonts: Fonts::embedded() }
    }
}

impl TextPainter {
    /// Paints lines below each other, on a ground of this colour with a margin around the text. What does not fit into
    /// `most` is cut off at the right and at the bottom.
    pub fn paint(&mut self, lines: &[PaintedLine], size_px: u32, ground: [u8; 4], most: Size) -> PaintedText {
        let margin = size_px / 2;
        let line_px = self.fonts.line_px(size_px);
        let fonts = &mut self.fonts;
        // A damaged font of the system costs only the line that needs the font.
        let mut shaped = Vec::with_capacity(lines.len());
        for line in lines {
            shaped.push(guarded(None, || Ok(fonts.shape(&line.text, size_px))).unwrap_or_default());
        }
        let widest = shaped.iter().map(|run| run.advance.ceil() as u32).max().unwrap_or(0);
        let tallest = (line_px * lines.len() as f64).ceil() as u32;
        let size = Size {
            width: (widest + 2 * margin).clamp(1, most.width.max(1)),
            height: (tallest + 2 * margin).clamp(1, most.height.max(1)),
        };
        let pixels = ground.repeat(size.width as usize * size.height as usize);
        let mut painted = PaintedText { size, pixels };
        for (at, (line, run)) in lines.iter().zip(&shaped).enumerate() {
            // The baseline is where it leaves room for descenders, about a fifth of the size.
            let baseline = f64::from(margin) + line_px * at as f64 + f64::from(size_px);
            for glyph in &run.glyphs {
                let mask = guarded(None, || Ok(fonts.mask(glyph.key))).unwrap_or_default();
                let left = (f64::from(margin) + glyph.x).round() as i64 + i64::from(mask.left);
                let top = (baseline + glyph.y).round() as i64 - i64::from(mask.up);
                for (y, coverage) in (top..).zip(mask.coverage.chunks_exact(mask.width.max(1) as usize)) {
                    for (x, coverage) in (left..).zip(coverage) {
                        painted.blend(x, y, line.color, *coverage);
                    }
                }
            }
        }
        painted
    }
}

impl PaintedText {
    fn blend(&mut self, x: i64, y: i64, color: [u8; 3], coverage: u8) {
        let inside = |at: i64, length: u32| usize::try_from(at).ok().filter(|at| *at < length as usize);
        let (Some(x), Some(y)) = (inside(x, self.size.width), inside(y, self.size.height)) else { return };
        let at = 4 * (y * self.size.width as usize + x);
        let mix = |from: u8, to: u8| {
            let (from, to, part) = (u32::from(from), u32::from(to), u32::from(coverage));
            ((from * (255 - part) + to * part + 127) / 255) as u8
        };
        let pixel = &mut self.pixels[at..at + 4];
        for (channel, color) in pixel.iter_mut().zip(color) {
            *channel = mix(*channel, color);
        }
        pixel[3] = mix(pixel[3], 255);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUND: [u8; 4] = [0, 0, 0, 160];

    fn line(text: &str) -> PaintedLine {
        PaintedLine { text: text.to_owned(), color: [255, 200, 100] }
    }

    #[test]
    fn text_has_its_colour_on_the_ground_and_a_margin_around_it() {
        let most = Size { width: 1000, height: 1000 };
        let painted = TextPainter::default().paint(&[line("vramp"), line("x")], 16, GROUND, most);
        let Size { width, height } = painted.size;
        assert!(width > 40 && width < 100 && height > 40 && height < 70, "{:?}", painted.size);
        let pixel = |x: u32, y: u32| &painted.pixels[4 * (y * width + x) as usize..][..4];
        assert!((0..width).all(|x| pixel(x, 0) == GROUND && pixel(x, height - 1) == GROUND));
        assert!((0..height).all(|y| pixel(0, y) == GROUND && pixel(width - 1, y) == GROUND));
        assert!(painted.pixels.chunks(4).any(|pixel| pixel == [255, 200, 100, 255]));
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let most = Size { width: 20, height: 10 };
        let lines: Vec<_> = (0..50).map(|_| line("a long line of text")).collect();
        let painted = TextPainter::default().paint(&lines, 16, GROUND, most);
        assert_eq!((painted.size, painted.pixels.len()), (most, 800));
        let none = TextPainter::default().paint(&[], 16, GROUND, Size { width: 0, height: 0 });
        assert_eq!(none.size, Size { width: 1, height: 1 });
    }
}
