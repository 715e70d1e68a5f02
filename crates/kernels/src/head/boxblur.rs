//! `boxblur`: the mean of the square of pixels around each pixel, from running sums.
//!
//! The mean is exact and rounded half up. A source row is added to the running sums when it enters the square, and
//! subtracted when it leaves the square. Pixels beyond the border repeat the border.

mod along;
mod divide;
mod down;

use vramp_plan::Size;

use crate::head::lines::Lines;
use crate::head::{BandState, First, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::ask_for;

use along::BoxHorizontalPass;
use down::Sum;

/// Parameters: reach along a row, reach down a column, number of pixels in the square, and three numbers with which the
/// GPU divides by the number of pixels: bits dropped from the sum, a factor, bits dropped from the product.
pub static BOXBLUR: Head = Head {
    name: "boxblur",
    wgsl: include_str!("boxblur.wgsl"),
    words: 6,
    first: Some(First::STENCIL),
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The maximum side of a square.
pub const MOST_SIDE: u32 = 1023;

/// The parameter words of a square of this side on images of this size. Returns `None` if the side is even or greater
/// than [`MOST_SIDE`].
pub fn pack(side: u32, source: Size) -> Option<[u32; 6]> {
    if side.is_multiple_of(2) || side > MOST_SIDE {
        return None;
    }
    // If an image has only one column, all columns of the square are equal, so one column has the same mean as the
    // square. The same applies to rows.
    let [along, down] = [source.width, source.height].map(|length| if length == 1 { 1 } else { side });
    let pixels = along * down;
    let (dropped, factor, shift) = estimate(pixels);
    Some([along / 2, down / 2, pixels, dropped, factor, shift])
}

/// The numbers with which the GPU divides sums of this many pixels in 32 bits: `((sum >> dropped) * factor) >> shift`
/// is the quotient or one less, which the shader then corrects.
fn estimate(pixels: u32) -> (u32, u32, u32) {
    let most = 255 * pixels + pixels / 2;
    let dropped = most.ilog2().saturating_sub(15);
    // The maximum shift with which the factor fits 16 bits.
    let shift = (16 + pixels.ilog2() - dropped).min(15 + pixels.ilog2());
    let factor = (1_u64 << (dropped + shift)) / u64::from(pixels);
    (dropped, factor as u32, shift)
}

/// The maximum number of rows whose column sums fit 16 bits.
const MOST_NARROW: i64 = 257;

/// `kept` holds the sums of the columns, with the sums at the borders repeated, and memory for the pass along a row.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let [along, down, count, ..] = *args.frame.words else { return };
    if count == 1 {
        return source.copy(y, pixels);
    }
    let (level, down, taps) = (args.frame.level, i64::from(down), 2 * along as usize + 1);
    let BandState { rows, sums, wide, bytes, .. } = kept;
    let mut lines = Lines::of(source, args.source, 2 * down as usize + 2, bytes);
    let (y, last) = (i64::from(y), i64::from(args.source.height) - 1);
    let values = pixels.as_flattened_mut();
    let (fours, filled) = (along::fours(values.len(), taps), along::filled(values.len(), taps));
    let length = values.len();
    ask_for(values);
    if 2 * down < MOST_NARROW {
        sums.resize(filled, 0);
        down::slide(level, down, source, (rows, &mut lines), (y, last), &mut sums[4 * (taps / 2)..][..length]);
        border(sums, taps / 2, length);
        let mut along = BoxHorizontalPass { taps, count, sums, values, soon: lines.soon(y + down + 1) };
        if !along::few(level, &mut along) {
            wide.resize(fours, 0);
            along::many(level, along, wide);
        }
    } else {
        wide.resize(filled + fours, 0);
        let (sums, fours) = wide.split_at_mut(filled);
        down::slide(level, down, source, (rows, &mut lines), (y, last), &mut sums[4 * (taps / 2)..][..length]);
        border(sums, taps / 2, length);
        along::many(level, BoxHorizontalPass { taps, count, sums, values, soon: lines.soon(y + down + 1) }, fours);
    }
}

/// Repeats the outermost sums of a row, for `reach` pixels beyond both ends.
fn border<S: Sum>(sums: &mut [S], reach: usize, length: usize) {
    let (left, rest) = sums.split_at_mut(4 * reach);
    let (middle, right) = rest.split_at_mut(length);
    if let (Some(first), Some(last)) = (middle.first_chunk::<4>(), middle.last_chunk::<4>()) {
        left.as_chunks_mut().0.fill(*first);
        right[..4 * reach].as_chunks_mut().0.fill(*last);
    }
}

/// A small side, and a side of 257, 259 or the maximum. With sides above 257, a sum along a row takes two elements of
/// the GPU's intermediate.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let sides = [chance.one_of(&[1, 3, 5, 9, 31]), chance.one_of(&[257, 259, MOST_SIDE])];
    sides.map(|side| KernelSample::new(source, &pack(side, source).expect("an odd side within the limit"))).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of pixels that a square can have, including squares on images of one row or column.
    fn areas() -> impl Iterator<Item = u32> {
        (1..=MOST_SIDE).step_by(2).flat_map(|side| [side, side * side])
    }

    #[test]
    fn what_a_device_estimates_is_the_quotient_or_one_less_for_every_sum() {
        for pixels in areas() {
            let (dropped, factor, shift) = estimate(pixels);
            let most = 255 * pixels + pixels / 2;
            assert!((most >> dropped).checked_mul(factor).is_some(), "{pixels} pixels");
            // The estimate never decreases when the sum increases, so it suffices to check the first and last sum of
            // each quotient.
            let guess = |sum: u32| ((sum >> dropped) * factor) >> shift;
            for level in 0..=255 {
                let (first, last) = (level * pixels, (level * pixels + pixels - 1).min(most));
                assert!(guess(first) + 1 >= level && guess(last) <= level, "{level} of {pixels} pixels");
            }
        }
    }

    #[test]
    fn sides_are_odd_and_a_line_is_summed_along_itself_only() {
        let size = |width, height| Size { width, height };
        for side in [0, 2, 256, 1022, 1024, 1025, u32::MAX] {
            assert_eq!(pack(side, size(9, 9)), None, "{side}");
        }
        for (side, width, height, expected) in [
            (9, 7, 5, [4, 4, 81]),
            (9, 1, 5, [0, 4, 9]),
            (9, 7, 1, [4, 0, 9]),
            (1023, 1, 1, [0, 0, 1]),
            (1, 7, 7, [0, 0, 1]),
        ] {
            assert_eq!(pack(side, size(width, height)).map(|words| [words[0], words[1], words[2]]), Some(expected));
        }
    }
}
