//! `glyphs`: text in one colour, as coverage masks.
//!
//! The function receives masks and their positions. It neither shapes text nor draws outlines. The colour is composited
//! over the pixel by the formula of `over.rs`, with an opacity of coverage times the colour's alpha. If glyphs overlap,
//! the greatest coverage counts, so the order of glyphs does not matter and rounding happens once. Pixels without
//! coverage keep their value. A row is visited from its first to its last word with coverage, in steps of four pixels.
//!
//! Masks are merged into one coverage image on the CPU when the text changes, not per pixel. On a software driver, a
//! loop over glyphs in the shader would run for every pixel of the frame, inside or outside the text. Such a loop took
//! 8 of the 25 ms of CPU time of a 640x480 demo frame.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs, Spans};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

use super::over;

/// Small data: the coverage of a rectangle, row by row, with four pixels per word. Parameters: colour, the colour's
/// alpha as a factor of the coverage, the rectangle, words per row, one unused word.
pub static GLYPHS: PixelFn = PixelFn {
    name: "glyphs",
    wgsl: concat!(include_str!("over.wgsl"), include_str!("glyphs.wgsl")),
    words: 8,
    small: true,
    row,
    spans,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// A coverage mask and its position in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyph {
    pub x: i32,
    pub y: i32,
    pub width: u16,
    pub height: u16,
    /// Index in the atlas of the first of the glyph's `width * height` coverages, which are stored row by row.
    pub at: u32,
}

/// The parameter words of glyphs in one colour on a frame of this size. Writes the glyphs' coverage to `small`, whose
/// memory is reused. Glyphs are clipped to the frame. Returns `None` if a mask extends beyond the end of the atlas.
pub fn pack(
    color: Pixel,
    atlas: &[u8],
    lines: &[impl AsRef<[Glyph]>],
    size: Size,
    small: &mut Vec<u32>,
) -> Option<[u32; 8]> {
    small.clear();
    let glyphs = || lines.iter().flat_map(AsRef::as_ref);
    let masked = |glyph: &Glyph| u64::from(glyph.at) + u64::from(glyph.width) * u64::from(glyph.height);
    if glyphs().any(|glyph| masked(glyph) > atlas.len() as u64) {
        return None;
    }
    let around = glyphs().filter_map(|glyph| ClipRect::of(glyph, size)).reduce(ClipRect::with).unwrap_or_default();
    let row_words = (around.right - around.left).div_ceil(4);
    small.resize(row_words as usize * (around.bottom - around.top) as usize, 0);
    for glyph in glyphs() {
        let Some(seen) = ClipRect::of(glyph, size) else { continue };
        for y in seen.top..seen.bottom {
            let down = (i64::from(y) - i64::from(glyph.y)) as usize;
            let across = (i64::from(seen.left) - i64::from(glyph.x)) as usize;
            let from = glyph.at as usize + down * usize::from(glyph.width) + across;
            let coverage = &atlas[from..from + (seen.right - seen.left) as usize];
            let row = &mut small[((y - around.top) * row_words) as usize..][..row_words as usize];
            put(coverage, row, seen.left - around.left);
        }
    }
    let amount = over::amount(f64::from(color[3]) / 255.0);
    let ClipRect { left, right, top, bottom } = around;
    Some([u32::from_le_bytes(color), amount, left, right, top, bottom, row_words, 0])
}

/// Writes a row of coverage into a row of the rectangle, and keeps the greater value of each pixel.
fn put(coverage: &[u8], row: &mut [u32], first: u32) {
    for (x, cover) in (first..).zip(coverage) {
        let (word, shift) = (&mut row[(x / 4) as usize], x % 4 * 8);
        if u32::from(*cover) > (*word >> shift) & 255 {
            *word = (*word & !(255 << shift)) | (u32::from(*cover) << shift);
        }
    }
}

/// Columns and rows of a frame, as half-open ranges.
#[derive(Debug, Clone, Copy, Default)]
struct ClipRect {
    left: u32,
    right: u32,
    top: u32,
    bottom: u32,
}

impl ClipRect {
    /// The part of a glyph inside the frame.
    fn of(glyph: &Glyph, size: Size) -> Option<ClipRect> {
        let inside = |from: i32, extent: u16, side: u32| {
            let clip = |at: i64| at.clamp(0, i64::from(side)) as u32;
            (clip(from.into()), clip(i64::from(from) + i64::from(extent)))
        };
        let (left, right) = inside(glyph.x, glyph.width, size.width);
        let (top, bottom) = inside(glyph.y, glyph.height, size.height);
        (left < right && top < bottom).then_some(ClipRect { left, right, top, bottom })
    }

    fn with(self, other: ClipRect) -> ClipRect {
        ClipRect {
            left: self.left.min(other.left),
            right: self.right.max(other.right),
            top: self.top.min(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }
}

/// The coverage of a row: the first column of the rectangle, and the row's words. There are no words if the row is
/// above or below the rectangle.
fn coverage<'a>(args: &FnArgs<'a>, y: u32) -> (u32, &'a [u32]) {
    let (left, top, bottom, row_words) = (args.words[2], args.words[4], args.words[5], args.words[6] as usize);
    if y < top || y >= bottom {
        return (left, &[]);
    }
    (left, &args.small[(y - top) as usize * row_words..][..row_words])
}

fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    let (left, words) = coverage(args, y);
    let (Some(first), Some(last)) = (words.iter().position(|w| *w != 0), words.iter().rposition(|w| *w != 0)) else {
        return Spans::NONE;
    };
    let column = |word: usize| i64::from(left) + i64::from(4 * word as u32);
    Spans::NONE.and(column(first), column(last + 1).min(i64::from(args.words[3])), args.size)
}

/// Pixels whose coverage is unpacked together.
const AT_ONCE: usize = 1024;

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let frame = &args.frame;
    let (color, amount) = (frame.words[0].to_le_bytes(), frame.int(1));
    let (left, words) = coverage(frame, args.y);
    if words.is_empty() {
        return;
    }
    // The composer passes only pixels within the spans. Other callers may pass whole rows, of which only the pixels
    // inside the rectangle are changed.
    let skipped = (left.saturating_sub(args.x) as usize).min(pixels.len());
    let (mut pixels, mut x) = (&mut pixels[skipped..], args.x.max(left) - left);
    let width = (frame.words[3] - left).saturating_sub(x) as usize;
    let inside = width.min(pixels.len());
    pixels = &mut pixels[..inside];
    let mut cover = [0; AT_ONCE];
    for pixels in pixels.chunks_mut(AT_ONCE) {
        let bytes = words[(x / 4) as usize..].iter().flat_map(|word| word.to_le_bytes()).skip((x % 4) as usize);
        let cover = &mut cover[..pixels.len()];
        cover.iter_mut().zip(bytes).for_each(|(cover, byte)| *cover = byte);
        x += pixels.len() as u32;
        frame.level.run(Covered { pixels, color, cover, amount });
    }
}

struct Covered<'a> {
    pixels: &'a mut [Pixel],
    color: Pixel,
    cover: &'a [u8],
    amount: i32,
}

impl Loop for Covered<'_> {
    #[inline(always)]
    fn run(self) {
        over::over_covered(self.pixels, self.color, self.cover, self.amount);
    }
}

/// Up to eight masks, some of them empty, in lines of three, inside and outside of the frame.
fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let drawn = [[10, 200, 30, 200], chance.color()].map(|color| {
        let atlas = chance.bytes(256);
        let glyphs: Vec<Glyph> = (0..chance.below(9))
            .map(|_| Glyph {
                x: chance.near(size.width),
                y: chance.near(size.height),
                width: chance.below(11) as u16,
                height: chance.below(11) as u16,
                at: chance.below(100),
            })
            .collect();
        let (lines, mut small) = (glyphs.chunks(3).collect::<Vec<_>>(), Vec::new());
        let words = pack(color, &atlas, &lines, size, &mut small).expect("no mask reaches beyond the atlas");
        KernelSample::new(size, &words).small(small)
    });
    drawn.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOT: Glyph = Glyph { x: 3, y: 5, width: 2, height: 1, at: 1 };
    const SIZE: Size = Size { width: 20, height: 10 };

    #[test]
    fn masks_become_one_picture_of_coverage_where_the_greater_counts() {
        let mut small = vec![77];
        let line = [DOT, Glyph { width: 0, ..DOT }, Glyph { x: 4, at: 0, ..DOT }, Glyph { x: 30, ..DOT }];
        let words = pack([1, 2, 3, 255], &[9, 8, 7, 6, 5], &[&line[..], &[]], SIZE, &mut small);
        assert_eq!(words, Some([0xff03_0201, 32768, 3, 6, 5, 6, 1, 0]));
        // Coverages 8 and 7 come from the first glyph, 9 and 8 from the second glyph, one column further.
        assert_eq!(small, [0x0008_0908]);
    }

    #[test]
    fn what_lies_outside_the_frame_is_left_out() {
        let mut small = Vec::new();
        let far = |x: i32, y: i32| Glyph { x, y, width: 65_535, height: 1, at: 0 };
        let lines = [[far(-65_534, 0), far(19, 9), far(i32::MAX, 3), far(0, i32::MIN)]];
        let words = pack([0; 4], &vec![3; 65_535], &lines, SIZE, &mut small).expect("inside the atlas");
        assert_eq!(words[2..7], [0, 20, 0, 10, 5]);
        assert_eq!((small[0], small[49], small.iter().filter(|word| **word != 0).count()), (3, 3 << 24, 2));
        let nothing = pack([0; 4], &[3; 9], &[[far(99, 99)]], SIZE, &mut small);
        assert_eq!(nothing, None, "a mask beyond the atlas is refused, even if the glyph is outside of the frame");
        assert_eq!(pack([0; 4], &[], &[[]], SIZE, &mut small).map(|words| words[2..7].to_vec()), Some(vec![0; 5]));
    }
}
