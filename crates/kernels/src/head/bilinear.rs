//! `bilinear`: another size by mixing two source pixels along each axis.
//!
//! Owns which pixels are mixed and by how much, and the mixing.
//! Does not filter before shrinking: always two taps, whatever the scale.
//!
//! Always: places have 12 fraction bits, decided on the host, and lie within the source; a result is rounded once, half
//! up. 12 is the most with which two mixes of 255 and the half still fit into 32 bits.

use vramp_plan::Size;

use crate::head::{Head, HeadArgs, Kept, SourceRows};
use crate::picture::Pixel;
use crate::simd::bilinear::{along, halve};
use crate::simd::{Level, Loop};

/// Another size. Small data: the source's place for each column, then for each row, with [`FRACTION_BITS`].
pub static BILINEAR: Head =
    Head { name: "bilinear", wgsl: include_str!("bilinear.wgsl"), words: 0, source: true, small: true, passes: 1, row };

/// Fraction bits of places.
pub const FRACTION_BITS: u32 = 12;
pub(crate) const ONE: u32 = 1 << FRACTION_BITS;
/// Pixels that are mixed at once.
const AT_ONCE: usize = 16;
const HALF: u32 = 1 << (2 * FRACTION_BITS - 1);

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// The small data for making `size` from `source`.
pub fn small(source: Size, size: Size) -> Vec<u32> {
    let columns = axis(source.width, size.width);
    columns.chain(axis(source.height, size.height)).collect()
}

/// Pixel centres onto pixel centres: (x + 1/2) from/to - 1/2, clamped to the source, rounded half up.
pub(super) fn axis(from: u32, to: u32) -> impl Iterator<Item = u32> {
    let (from, to) = (u64::from(from), u64::from(to));
    let last = (from - 1) << FRACTION_BITS;
    (0..to).map(move |at| {
        let twice = ((2 * at + 1) * from).saturating_sub(to);
        (((twice << FRACTION_BITS) + to) / (2 * to)).min(last) as u32
    })
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut Kept, y: u32, pixels: &mut [Pixel]) {
    let (columns, rows) = args.frame.small.split_at(pixels.len());
    let scaled = Scaled { number: 0, from: args.source, to: args.frame.size, columns, rows };
    kept.wide.resize(scaled.kept_values(), 0);
    scaled.row(args.frame.level, source, (&mut kept.rows, &mut kept.wide), y, pixels);
}

/// One picture made into another size, row by row.
pub(super) struct Scaled<'a> {
    /// Which picture of the head.
    pub(super) number: usize,
    pub(super) from: Size,
    pub(super) to: Size,
    /// The picture's place for each column.
    pub(super) columns: &'a [u32],
    /// And for each row.
    pub(super) rows: &'a [u32],
}

impl Scaled<'_> {
    /// How many values it keeps from row to row.
    pub(super) fn kept_values(&self) -> usize {
        8 * self.to.width as usize
    }

    /// Writes one row. Rows of the picture are mixed along themselves first, each once where a row is needed by
    /// several: the two that the last row needed are kept, even rows in the first half of `wide`, odd ones in the
    /// second, and `rows` says which.
    pub(super) fn row(
        &self,
        level: Level,
        source: &mut SourceRows<'_>,
        (kept, wide): (&mut (i64, i64), &mut [u32]),
        y: u32,
        pixels: &mut [Pixel],
    ) {
        // What changes no size, or halves both sides, gives the same without places.
        if self.from == self.to {
            return pixels.copy_from_slice(source.row_of(self.number, i64::from(y)));
        }
        if self.from.width == 2 * self.to.width && self.from.height == 2 * self.to.height {
            let [top, bottom] = source.pair_of(self.number, 2 * y);
            let done = halve(level, top, bottom, pixels);
            let (top, bottom) = (&top[2 * done..], &bottom[2 * done..]);
            return level.run(Halved { top, bottom, pixels: &mut pixels[done..] });
        }
        let place = self.rows[y as usize];
        let fraction = place & (ONE - 1);
        let first = i64::from(place >> FRACTION_BITS);
        let end = first + 1 + i64::from(fraction > 0);
        let (even, odd) = wide.split_at_mut(4 * pixels.len());
        for at in first..end {
            if !(kept.0..kept.1).contains(&at) {
                let mixed = if at % 2 == 0 { &mut *even } else { &mut *odd };
                let row = source.row_of(self.number, at);
                let done = along(level, row, self.columns, mixed);
                level.run(Along { row, columns: &self.columns[done..], mixed: &mut mixed[4 * done..] });
            }
        }
        *kept = (first, end);
        let (top, bottom) = if first % 2 == 0 { (even, odd) } else { (odd, even) };
        level.run(Down { top, bottom, fraction, values: pixels.as_flattened_mut() });
    }
}

/// The mean of two pixels in each of two rows, rounded half up.
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

/// Mixes two rows that have been mixed along themselves.
struct Down<'a> {
    top: &'a [u32],
    bottom: &'a [u32],
    fraction: u32,
    values: &'a mut [u8],
}

impl Loop for Down<'_> {
    #[inline(always)]
    fn run(self) {
        for ((top, bottom), out) in self.top.iter().zip(self.bottom).zip(self.values) {
            // One multiplication instead of two: the difference may wrap around, the sum comes out right.
            let difference = bottom.wrapping_sub(*top).wrapping_mul(self.fraction);
            let sum = (top << FRACTION_BITS).wrapping_add(difference);
            *out = (sum.wrapping_add(HALF) >> (2 * FRACTION_BITS)) as u8;
        }
    }
}

/// Mixes a row along itself, for each column's place in it: pixels are fetched one by one, then mixed many at once.
struct Along<'a> {
    row: &'a [Pixel],
    columns: &'a [u32],
    mixed: &'a mut [u32],
}

impl Loop for Along<'_> {
    #[inline(always)]
    fn run(self) {
        let row = self.row;
        let last = row.len() - 1;
        let (mut one, mut other, mut fractions) = ([[0; 4]; AT_ONCE], [[0; 4]; AT_ONCE], [[0i16; 4]; AT_ONCE]);
        for (places, mixed) in self.columns.chunks(AT_ONCE).zip(self.mixed.chunks_mut(4 * AT_ONCE)) {
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
                *mixed = sum.cast_unsigned();
            }
        }
    }
}
