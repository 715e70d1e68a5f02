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
use crate::simd::Loop;

/// Another size. Small data: the source's place for each column, then for each row, with [`FRACTION_BITS`].
pub static BILINEAR: Head = Head {
    name: "bilinear",
    wgsl: include_str!("bilinear.wgsl"),
    words: 0,
    source: true,
    small: true,
    first: None,
    row,
};

/// Fraction bits of places.
pub const FRACTION_BITS: u32 = 12;
const ONE: u32 = 1 << FRACTION_BITS;
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
fn axis(from: u32, to: u32) -> impl Iterator<Item = u32> {
    let (from, to) = (u64::from(from), u64::from(to));
    let last = (from - 1) << FRACTION_BITS;
    (0..to).map(move |at| {
        let twice = ((2 * at + 1) * from).saturating_sub(to);
        (((twice << FRACTION_BITS) + to) / (2 * to)).min(last) as u32
    })
}

/// Source rows are mixed along themselves first, each once where a row is needed by several: the two that the last row
/// needed are kept, even rows in the first half of `kept.wide`, odd ones in the second.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut Kept, y: u32, pixels: &mut [Pixel]) {
    let (columns, rows) = args.frame.small.split_at(pixels.len());
    let place = rows[y as usize];
    let fraction = place & (ONE - 1);
    let first = i64::from(place >> FRACTION_BITS);
    let end = first + 1 + i64::from(fraction > 0);
    let values = 4 * pixels.len();
    kept.wide.resize(2 * values, 0);
    let (even, odd) = kept.wide.split_at_mut(values);
    for at in first..end {
        if !(kept.rows.0..kept.rows.1).contains(&at) {
            let mixed = if at % 2 == 0 { &mut *even } else { &mut *odd };
            args.frame.level.run(Along { row: source.row(at), columns, mixed });
        }
    }
    kept.rows = (first, end);
    let (top, bottom) = if first % 2 == 0 { (even, odd) } else { (odd, even) };
    args.frame.level.run(Down { top, bottom, fraction, values: pixels.as_flattened_mut() });
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
