//! `glyphs`: text that has been set, as coverage masks in one colour.
//!
//! Owns how coverage becomes pixels, and the form in which atlas, lines and glyphs are handed over.
//! Does not shape text or draw outlines: it is given masks and their places.
//!
//! Always: the colour lies over the pixel, as opaque as coverage times its alpha, so alpha and colour follow the rule
//! of `over.rs`. Where glyphs overlap the greater coverage counts, so their order does not matter and rounding happens
//! once. Pixels without coverage stay as they are. A row is visited from the first to the last line box that it
//! crosses.

use crate::function::{FnArgs, PixelFn, RowArgs, Spans};
use crate::picture::Pixel;
use crate::simd::Loop;

use super::over;

/// Coverage masks in one colour. Small data: atlas, lines, glyphs. Parameters: colour, amount, the box around
/// everything, first line, number of lines.
pub static GLYPHS: PixelFn = PixelFn {
    name: "glyphs",
    wgsl: concat!(include_str!("over.wgsl"), include_str!("glyphs.wgsl")),
    words: 8,
    side: false,
    small: true,
    row,
    spans,
};

/// A mask and its place in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Glyph {
    /// Its left column.
    pub x: i32,
    /// Its top row.
    pub y: i32,
    /// Its columns.
    pub width: u16,
    /// Its rows.
    pub height: u16,
    /// The first of its `width * height` coverages in the atlas, row by row.
    pub at: u32,
}

/// Lines and glyphs together are at most this many: a device runs a bounded number of steps per pixel.
pub const MOST: usize = 8000;

/// The words of a line and of a glyph among the small data.
const LINE: usize = 6;
const GLYPH: usize = 4;

/// The parameter words of lines of glyphs in one colour, with everything that they need in `small`, whose memory is
/// used again. Glyphs without pixels are left out. None where there are more than [`MOST`], where one reaches beyond
/// the atlas, or where its far edges leave 32 bits.
pub fn pack(color: Pixel, atlas: &[u8], lines: &[impl AsRef<[Glyph]>], small: &mut Vec<u32>) -> Option<[u32; 8]> {
    small.clear();
    small.extend(atlas.chunks(4).map(|four| four.iter().rev().fold(0, |word, v| (word << 8) | u32::from(*v))));
    let first = small.len();
    let lines_drawn = || lines.iter().map(AsRef::as_ref).filter(|line| drawn(line).next().is_some());
    let (mut count, mut next) = (0, first + LINE * lines_drawn().count());
    let mut around = Bounds::EMPTY;
    for line in lines_drawn() {
        let mut bounds = Bounds::EMPTY;
        let start = next;
        for glyph in drawn(line) {
            let masked = u64::from(glyph.at) + u64::from(glyph.width) * u64::from(glyph.height);
            if masked > atlas.len() as u64 {
                return None;
            }
            bounds = bounds.with(Bounds::of(glyph)?);
            next += GLYPH;
        }
        around = around.with(bounds);
        small.extend(bounds.words());
        small.extend([start as u32, next as u32]);
        count += 1;
    }
    if count + (next - first - LINE * count) / GLYPH > MOST {
        return None;
    }
    for glyph in lines_drawn().flat_map(drawn) {
        let sides = u32::from(glyph.width) | (u32::from(glyph.height) << 16);
        small.extend([glyph.x.cast_unsigned(), glyph.y.cast_unsigned(), sides, glyph.at]);
    }
    let [left, right, top, bottom] = around.words();
    let amount = over::amount(f64::from(color[3]) / 255.0);
    Some([u32::from_le_bytes(color), amount, left, right, top, bottom, first as u32, count as u32])
}

/// The glyphs of a line that have pixels.
fn drawn(line: &[Glyph]) -> impl Iterator<Item = &Glyph> {
    line.iter().filter(|glyph| glyph.width > 0 && glyph.height > 0)
}

/// Columns and rows, each from and up to.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    x: (i32, i32),
    y: (i32, i32),
}

impl Bounds {
    const EMPTY: Bounds = Bounds { x: (i32::MAX, i32::MIN), y: (i32::MAX, i32::MIN) };

    fn of(glyph: &Glyph) -> Option<Bounds> {
        let right = glyph.x.checked_add(i32::from(glyph.width))?;
        let bottom = glyph.y.checked_add(i32::from(glyph.height))?;
        Some(Bounds { x: (glyph.x, right), y: (glyph.y, bottom) })
    }

    fn with(self, other: Bounds) -> Bounds {
        let both = |a: (i32, i32), b: (i32, i32)| (a.0.min(b.0), a.1.max(b.1));
        Bounds { x: both(self.x, other.x), y: both(self.y, other.y) }
    }

    fn words(self) -> [u32; 4] {
        [self.x.0, self.x.1, self.y.0, self.y.1].map(i32::cast_unsigned)
    }

    fn from_words(words: &[u32]) -> Bounds {
        let int = |i: usize| words[i].cast_signed();
        Bounds { x: (int(0), int(1)), y: (int(2), int(3)) }
    }

    fn has_row(self, y: i32) -> bool {
        self.y.0 <= y && y < self.y.1
    }
}

/// The lines that cross a row: their boxes, and their glyphs.
fn lines_at<'a>(args: &FnArgs<'a>, y: i32) -> impl Iterator<Item = (Bounds, &'a [u32])> {
    let (first, count, small) = (args.words[6] as usize, args.words[7] as usize, args.small);
    let lines = small[first..].chunks_exact(LINE).take(count);
    let lines = lines.map(move |line| (Bounds::from_words(line), &small[line[4] as usize..line[5] as usize]));
    lines.filter(move |(bounds, _)| bounds.has_row(y))
}

fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    let y = y.cast_signed();
    if !Bounds::from_words(&args.words[2..]).has_row(y) {
        return Spans::NONE;
    }
    let row = lines_at(args, y).fold(Bounds::EMPTY, |row, (bounds, _)| row.with(bounds));
    Spans::NONE.and(i64::from(row.x.0), i64::from(row.x.1), args.size)
}

/// Pixels whose coverage is gathered together.
const AT_ONCE: usize = 1024;

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let (y, frame) = (args.y.cast_signed(), &args.frame);
    let (color, amount) = (frame.words[0].to_le_bytes(), frame.int(1));
    let mut cover = [0; AT_ONCE];
    for (x, pixels) in (args.x.cast_signed()..).step_by(AT_ONCE).zip(pixels.chunks_mut(AT_ONCE)) {
        let cover = &mut cover[..pixels.len()];
        cover.fill(0);
        let end = x + (pixels.len() as u32).cast_signed();
        for (bounds, glyphs) in lines_at(frame, y) {
            if bounds.x.0 < end && x < bounds.x.1 {
                glyphs.chunks_exact(GLYPH).for_each(|glyph| gather(glyph, frame.small, y, x..end, cover));
            }
        }
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

/// The coverage that a glyph has in some columns of a row, where it is greater than what is there.
fn gather(glyph: &[u32], atlas: &[u32], y: i32, columns: std::ops::Range<i32>, cover: &mut [u8]) {
    let (left, width) = (glyph[0].cast_signed(), (glyph[2] & 0xffff).cast_signed());
    let down = i64::from(y) - i64::from(glyph[1].cast_signed());
    if down < 0 || down >= i64::from(glyph[2] >> 16) || left >= columns.end || left + width <= columns.start {
        return;
    }
    let (start, end) = (left.max(columns.start), (left + width).min(columns.end));
    let first = glyph[3] as usize + down as usize * width as usize + (start - left) as usize;
    let cover = &mut cover[(start - columns.start) as usize..(end - columns.start) as usize];
    // Word by word: the one that the first coverage stands in may begin in front of it.
    let mut words = atlas[first / 4..].iter().map(|word| word.to_le_bytes());
    let (head, rest) = cover.split_at_mut(((4 - first % 4) % 4).min(cover.len()));
    if !head.is_empty() {
        let word = words.next().unwrap_or_default();
        head.iter_mut().zip(&word[first % 4..]).for_each(|(cover, v)| *cover = (*v).max(*cover));
    }
    for (four, word) in rest.chunks_mut(4).zip(words) {
        four.iter_mut().zip(word).for_each(|(cover, v)| *cover = v.max(*cover));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOT: Glyph = Glyph { x: 3, y: 5, width: 2, height: 1, at: 1 };

    #[test]
    fn atlas_lines_and_glyphs_follow_each_other_in_the_small_data() {
        let mut small = vec![77];
        let line = [DOT, Glyph { width: 0, ..DOT }, Glyph { x: -1, ..DOT }];
        let words = pack([1, 2, 3, 255], &[9, 8, 7, 6, 5], &[&line[..], &[]], &mut small);
        let minus_one = u32::MAX;
        assert_eq!(words, Some([0xff03_0201, 32768, minus_one, 5, 5, 6, 2, 1]));
        assert_eq!(small, [0x0607_0809, 5, minus_one, 5, 5, 6, 8, 16, 3, 5, 0x1_0002, 1, minus_one, 5, 0x1_0002, 1]);
    }

    #[test]
    fn what_cannot_be_drawn_safely_is_refused() {
        let pack = |glyph: Glyph, many: usize| super::pack([0; 4], &[0; 3], &[vec![glyph; many]], &mut Vec::new());
        assert!(pack(DOT, MOST - 1).is_some());
        assert!(pack(DOT, MOST).is_none());
        assert!(pack(Glyph { at: 2, ..DOT }, 1).is_none());
        assert!(pack(Glyph { x: i32::MAX, ..DOT }, 1).is_none());
        assert!(super::pack([0; 4], &[], &[[]], &mut Vec::new()).is_some());
    }
}
