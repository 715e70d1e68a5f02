//! `bilinear`: scales the source to another size by bilinear interpolation, always with two taps per axis.
//!
//! Source pixels are not filtered before shrinking. The CPU computes the positions, which have 12 fraction bits and are
//! within the source. Rows are mixed horizontally first and keep 7 fraction bits, 15 bits in total, so that the
//! horizontal and the vertical mix are 16-bit multiplications. A result is rounded half up, and is within one level of
//! the exact result.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::bilinear::BilinearColumns;
use crate::simd::{self, Level, Loop};

/// Small data: the source position of each column, then of each row, with [`FRACTION_BITS`] fraction bits.
pub static BILINEAR: Head = Head {
    name: "bilinear",
    wgsl: include_str!("bilinear.wgsl"),
    small: true,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// Fraction bits of positions.
pub const FRACTION_BITS: u32 = 12;
const ONE: u32 = 1 << FRACTION_BITS;
/// Pixels that the scalar loop mixes at once.
const AT_ONCE: usize = 16;
/// Horizontally mixed rows are padded to a multiple of this number of pixels.
const MOST_AT_ONCE: usize = 16;

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// The small data for scaling `source` to `size`.
pub fn small(source: Size, size: Size) -> Vec<u32> {
    let columns = axis(source.width, size.width);
    columns.chain(axis(source.height, size.height)).collect()
}

/// The source position of each pixel along an axis, from pixel centre to pixel centre: (x + 1/2) from/to - 1/2, clamped
/// to the source, rounded half up.
pub fn axis(from: u32, to: u32) -> impl Iterator<Item = u32> {
    let (from, to) = (u64::from(from), u64::from(to));
    let last = (from - 1) << FRACTION_BITS;
    (0..to).map(move |at| {
        let twice = ((2 * at + 1) * from).saturating_sub(to);
        (((twice << FRACTION_BITS) + to) / (2 * to)).min(last) as u32
    })
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let (columns, rows) = args.frame.small.split_at(pixels.len());
    let scaled = Scaled { number: 0, from: args.source, to: args.frame.size, columns, rows };
    kept.sums.resize(scaled.kept_sums(), 0);
    kept.wide.resize(scaled.kept_words(), 0);
    scaled.row(args.frame.level, source, (&mut kept.rows, &mut kept.sums, &mut kept.wide), y, pixels);
}

/// Scales one image to another size, row by row.
pub(super) struct Scaled<'a> {
    /// Index of the image among the images that the head reads.
    pub(super) number: usize,
    pub(super) from: Size,
    pub(super) to: Size,
    /// The source position of each column.
    pub(super) columns: &'a [u32],
    /// The source position of each row.
    pub(super) rows: &'a [u32],
}

impl Scaled<'_> {
    /// Number of sums that are kept from row to row.
    pub(super) fn kept_sums(&self) -> usize {
        8 * self.columns.len().next_multiple_of(MOST_AT_ONCE)
    }

    /// Number of words that [`prepare`] writes.
    pub(super) fn kept_words(&self) -> usize {
        1 + 5 * self.columns.len().next_multiple_of(MOST_AT_ONCE)
    }

    /// Computes one row. Each source row is mixed horizontally once, even if several output rows need it. The mixed
    /// source rows that the previous output row needed are kept: `kept` is the range of their numbers, and `sums` holds
    /// the even row in its first half and the odd row in its second half. `words` holds the description of the columns,
    /// which is the same for all rows.
    pub(super) fn row(
        &self,
        level: Level,
        source: &mut SourceRows<'_>,
        (kept, sums, words): (&mut (i64, i64), &mut [u16], &mut [u32]),
        y: u32,
        pixels: &mut [Pixel],
    ) {
        // An unchanged size and half the size need no positions: a copy and means of four pixels give the same result.
        if self.from == self.to {
            return pixels.copy_from_slice(source.row_of(self.number, i64::from(y)));
        }
        if self.from.width == 2 * self.to.width && self.from.height == 2 * self.to.height {
            return halve(level, source.pair_of(self.number, 2 * y), pixels);
        }
        let place = self.rows[y as usize];
        let fraction = place & (ONE - 1);
        let first = i64::from(place >> FRACTION_BITS);
        let end = first + 1 + i64::from(fraction > 0);
        if kept.1 == 0 {
            prepare(level, self.columns, self.from.width, words);
        }
        let (even, odd) = sums.split_at_mut(sums.len() / 2);
        for at in first..end {
            if !(kept.0..kept.1).contains(&at) {
                let mixed = if at % 2 == 0 { &mut *even } else { &mut *odd };
                mix_along(level, source.row_of(self.number, at), self.columns, words, mixed);
            }
        }
        *kept = (first, end);
        let (top, bottom) = if first % 2 == 0 { (even, odd) } else { (odd, even) };
        let levels = pixels.as_flattened_mut();
        let done = simd::bilinear::down(level, top, bottom, weights(fraction), levels);
        level.run(BilinearVerticalPass {
            top: &top[done..],
            bottom: &bottom[done..],
            fraction,
            levels: &mut levels[done..],
        });
    }
}

/// Means of four pixels, two neighbours in each of two rows, rounded half up.
pub(super) fn halve(level: Level, [top, bottom]: [&[Pixel]; 2], pixels: &mut [Pixel]) {
    let done = simd::bilinear::halve(level, top, bottom, pixels);
    level.run(Halved { top: &top[2 * done..], bottom: &bottom[2 * done..], pixels: &mut pixels[done..] });
}

/// The scalar loop for pixels that vectors leave over.
struct Halved<'a> {
    top: &'a [Pixel],
    bottom: &'a [Pixel],
    pixels: &'a mut [Pixel],
}

impl Loop for Halved<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.top.chunks(2 * AT_ONCE).zip(self.bottom.chunks(2 * AT_ONCE));
        let mut sums = [0u16; 8 * AT_ONCE];
        for ((top, bottom), pixels) in rows.zip(self.pixels.chunks_mut(AT_ONCE)) {
            for ((sum, top), bottom) in sums.iter_mut().zip(top.as_flattened()).zip(bottom.as_flattened()) {
                *sum = u16::from(*top) + u16::from(*bottom) + 1;
            }
            for (pair, pixel) in sums.as_chunks::<8>().0.iter().zip(pixels) {
                *pixel = std::array::from_fn(|c| ((pair[c] + pair[c + 4]) >> 2) as u8);
            }
        }
    }
}

/// The weights of two neighbours in one word.
fn weights(fraction: u32) -> u32 {
    (ONE - fraction) | (fraction << 16)
}

/// Describes the columns for vectors, in groups. The first word is 1. The next words are the start of each group's
/// window, then the positions of each column's two neighbours in the window, then a word with the weights of each
/// column, twice. The last group is padded by repeating its last column. If neighbours are too far apart for a window,
/// or the row is shorter than a window, the first word is 0 and nothing follows it.
fn prepare(level: Level, places: &[u32], width: u32, words: &mut [u32]) {
    words[0] = 0;
    let Some(group) = simd::bilinear::group(level).filter(|group| width as usize >= 2 * group) else { return };
    // A left neighbour is at most the last pixel but one of the row, so that there is always a right neighbour.
    let left = |place: u32| (place >> FRACTION_BITS).min(width - 2);
    let window = |of: &[u32]| left(of[0]).min(width - 2 * group as u32);
    if !places.chunks(group).all(|of| left(of[of.len() - 1]) + 1 - window(of) < 2 * group as u32) {
        return;
    }
    words[0] = 1;
    let (windows, rest) = words[1..].split_at_mut(places.len().div_ceil(group));
    let (neighbours, rest) = rest.as_chunks_mut::<2>().0.split_at_mut(windows.len() * group);
    for (at, of) in places.chunks(group).enumerate() {
        windows[at] = window(of);
        for i in 0..group {
            let place = *of.get(i).unwrap_or(&of[of.len() - 1]);
            let from_window = left(place) - windows[at];
            neighbours[at * group + i] = [from_window, from_window + 1];
            rest[at * group + i] = [weights(place - (left(place) << FRACTION_BITS)); 2];
        }
    }
}

/// Mixes a row horizontally at each column's position.
fn mix_along(level: Level, row: &[Pixel], places: &[u32], words: &[u32], mixed: &mut [u16]) {
    let Some(group) = simd::bilinear::group(level).filter(|_| words[0] == 1) else {
        return level.run(BilinearHorizontalPass { row, places, mixed });
    };
    let groups = places.len().div_ceil(group);
    let (windows, rest) = words[1..].split_at(groups);
    let (neighbours, weights) = rest.as_chunks().0.split_at(groups * group);
    let weights = &weights[..groups * group];
    simd::bilinear::along(level, row.as_flattened(), BilinearColumns { windows, neighbours, weights }, mixed);
}

/// Mixes two horizontally mixed rows.
struct BilinearVerticalPass<'a> {
    top: &'a [u16],
    bottom: &'a [u16],
    fraction: u32,
    levels: &'a mut [u8],
}

impl Loop for BilinearVerticalPass<'_> {
    #[inline(always)]
    fn run(self) {
        for ((top, bottom), out) in self.top.iter().zip(self.bottom).zip(self.levels) {
            let sum = u32::from(*top) * (ONE - self.fraction) + u32::from(*bottom) * self.fraction;
            *out = ((sum + (1 << 18)) >> 19) as u8;
        }
    }
}

/// Mixes neighbours horizontally. Pixels are fetched one by one, and many are then mixed at once.
struct BilinearHorizontalPass<'a> {
    row: &'a [Pixel],
    places: &'a [u32],
    mixed: &'a mut [u16],
}

impl Loop for BilinearHorizontalPass<'_> {
    #[inline(always)]
    fn run(self) {
        let (row, last) = (self.row, self.row.len() - 1);
        let (mut one, mut other, mut fractions) = ([[0; 4]; AT_ONCE], [[0; 4]; AT_ONCE], [[0_i16; 4]; AT_ONCE]);
        for (places, mixed) in self.places.chunks(AT_ONCE).zip(self.mixed.chunks_mut(4 * AT_ONCE)) {
            for (i, place) in places.iter().enumerate() {
                let at = (place >> FRACTION_BITS) as usize;
                one[i] = row[at];
                other[i] = row[(at + 1).min(last)];
                fractions[i] = [(place & (ONE - 1)) as i16; 4];
            }
            let (one, other, fractions) = (one.as_flattened(), other.as_flattened(), fractions.as_flattened());
            for (((one, other), fraction), mixed) in one.iter().zip(other).zip(fractions).zip(mixed) {
                let difference = i16::from(*other) - i16::from(*one);
                let sum = (i32::from(*one) << FRACTION_BITS) + i32::from(difference) * i32::from(*fraction);
                *mixed = ((sum + 16) >> 5) as u16;
            }
        }
    }
}

/// Another size, half the size, and twice the size.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let half = Size { width: source.width.div_ceil(2), height: source.height.div_ceil(2) };
    let twice = Size { width: 2 * source.width, height: 2 * source.height };
    [chance.size(), half, twice].map(|size| KernelSample::new(size, &pack()).small(small(source, size))).to_vec()
}
