//! Single lines of text as coverage, all of one height, for kernels that choose among them.

use super::{Fonts, guarded};

/// The coverage of one line, row by row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Strip {
    pub(crate) width: usize,
    pub(crate) coverage: Vec<u8>,
}

/// The height of strips of this font size.
pub(crate) fn strip_height(fonts: &Fonts, size_px: u32) -> usize {
    fonts.line_px(size_px).ceil() as usize
}

/// One line of text, cut at `most` pixels. A damaged font of the system leaves the strip empty.
pub(crate) fn strip(fonts: &mut Fonts, text: &str, size_px: u32, most: usize) -> Strip {
    let height = strip_height(fonts, size_px);
    let run = guarded(None, || Ok(fonts.shape(text, size_px))).unwrap_or_default();
    let width = (run.advance.ceil() as usize).min(most);
    let mut coverage = vec![0; width * height];
    for glyph in &run.glyphs {
        let mask = guarded(None, || Ok(fonts.mask(glyph.key))).unwrap_or_default();
        let left = glyph.x.round() as i64 + i64::from(mask.left);
        let top = (f64::from(size_px) + glyph.y).round() as i64 - i64::from(mask.up);
        for (y, row) in (top..).zip(mask.coverage.chunks_exact(mask.width.max(1) as usize)) {
            for (x, value) in (left..).zip(row) {
                let inside = |at: i64, length: usize| usize::try_from(at).ok().filter(|at| *at < length);
                if let (Some(x), Some(y)) = (inside(x, width), inside(y, height)) {
                    coverage[y * width + x] = coverage[y * width + x].max(*value);
                }
            }
        }
    }
    Strip { width, coverage }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_have_the_width_of_their_text_and_are_cut() {
        let mut fonts = Fonts::embedded();
        let height = strip_height(&fonts, 14);
        let [short, long] = ["cat", "Egyptian cat"].map(|text| strip(&mut fonts, text, 14, 1000));
        assert!(short.width > 10 && long.width > 2 * short.width, "{} {}", short.width, long.width);
        assert!(short.coverage.len() == short.width * height && short.coverage.iter().any(|value| *value > 200));
        assert_eq!(strip(&mut fonts, "Egyptian cat", 14, 20).width, 20);
        assert_eq!(strip(&mut fonts, "", 14, 20), Strip::default());
    }
}
