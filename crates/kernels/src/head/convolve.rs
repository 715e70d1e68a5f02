//! `convolve`: a weighted sum of the pixels in a square around each pixel, in fixed point.
//!
//! Weights that need few fraction bits are exact. Other weights are rounded so that their sum is the rounded sum of the
//! exact weights, which changes a result by less than a level. Weights with which a result could overflow 32 bits are
//! refused. Taps with weight 0 are left out. A divisor must already be applied to the weights. Pixels beyond the
//! border repeat the border. The centre's alpha is kept.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::convolve::{ConvolveTaps, FILLED_TO, TapPair};
use crate::simd::{self, Loop};

/// Parameters: number of taps besides the centre, fraction bits, the constant, the centre's weight. Small data: for
/// each tap its offset and its weight.
pub static CONVOLVE: Head = Head {
    name: "convolve",
    wgsl: include_str!("convolve.wgsl"),
    words: 4,
    small: true,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The minimum number of fraction bits of weights that are not exact. With this number, weights may need more than 16
/// bits.
const LEAST_BITS: u32 = 12;
/// The maximum number of fraction bits, with which rounding errors are far below a level.
const MOST_BITS: u32 = 20;
/// The maximum change of a sum by rounding 49 weights and a constant.
const ROUNDING: f64 = 49.0 * 255.0 + 1.0;

/// Weights in fixed point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedWeights {
    bits: u32,
    /// The bias, with the half for rounding.
    constant: i32,
    centre: i32,
    /// Offset in columns, offset in rows, and the weight, which is not 0.
    taps: Vec<(i32, i32, i32)>,
}

impl FixedWeights {
    /// Fraction bits of the weights.
    pub fn bits(&self) -> u32 {
        self.bits
    }
}

/// The fixed-point form of 9, 25 or 49 weights, row by row, and of a bias in levels. Returns `None` if the number of
/// weights is different, if a weight is not a number, or if a sum could overflow 32 bits because the absolute weights
/// add up to more than [`most`].
pub fn fixed(weights: &[f64], bias: f64) -> Option<FixedWeights> {
    let (_, reach) = [(9, 1), (25, 2), (49, 3)].into_iter().find(|(count, _)| *count == weights.len())?;
    let bits = bits(weights, bias)?;
    let one = f64::from(1 << bits);
    let exact: Vec<f64> = weights.iter().map(|weight| weight * one).collect();
    let constant = (bias * one).round() as i32 + ((1 << bits) >> 1);
    let mut whole = FixedWeights { bits, constant, centre: 0, taps: Vec::new() };
    let places = (-reach..=reach).flat_map(|down| (-reach..=reach).map(move |right| (right, down)));
    for ((right, down), weight) in places.zip(rounded(&exact)) {
        match (right, down) {
            (0, 0) => whole.centre = weight,
            _ if weight != 0 => whole.taps.push((right, down, weight)),
            _ => {}
        }
    }
    Some(whole)
}

/// The maximum sum of the absolute weights.
pub fn most(bias: f64) -> f64 {
    ((f64::from(i32::MAX) - ROUNDING) / f64::from(1 << LEAST_BITS) - bias.abs() - 0.5) / 255.0
}

/// The parameter words of these weights.
pub fn pack(fixed: &FixedWeights) -> [u32; 4] {
    [fixed.taps.len() as u32, fixed.bits, fixed.constant.cast_unsigned(), fixed.centre.cast_unsigned()]
}

/// The small data of these weights.
pub fn small(fixed: &FixedWeights) -> Vec<u32> {
    let words = |(right, down, weight): &(i32, i32, i32)| [(down << 16) | (right & 0xffff), *weight];
    fixed.taps.iter().flat_map(words).map(i32::cast_unsigned).collect()
}

/// The number of fraction bits: the smallest number with which all weights and the bias are exact, provided that sums
/// fit 32 bits. Otherwise, the largest number with which every weight fits 16 bits, because 16-bit numbers are
/// multiplied fastest, but at least [`LEAST_BITS`]. Returns `None` if sums with [`LEAST_BITS`] do not fit 32 bits.
fn bits(weights: &[f64], bias: f64) -> Option<u32> {
    let one = |bits: u32| f64::from(1 << bits);
    let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
    let largest = weights.iter().fold(0.0, |largest: f64, weight| largest.max(weight.abs()));
    let fits = |bits: &u32| (255.0 * sum + bias.abs() + 0.5) * one(*bits) + ROUNDING < f64::from(i32::MAX);
    let exact = |bits: &u32| weights.iter().chain([&bias]).all(|v| (v * one(*bits)).fract() == 0.0);
    let short = |bits: &u32| largest * one(*bits) < f64::from(i16::MAX);
    if !fits(&LEAST_BITS) {
        return None;
    }
    let best = (0..=MOST_BITS).find(exact).filter(fits);
    let best = best.or_else(|| (LEAST_BITS..=MOST_BITS).rev().find(|bits| fits(bits) && short(bits)));
    best.or(Some(LEAST_BITS))
}

/// Rounds weights down, then rounds up those with the largest remainders, until the sum of the rounded weights is the
/// rounded sum of the exact weights. With 49 weights, this changes a result by at most 255 * 12.75 units of the last
/// fraction bit. Rounding each weight separately could change a result by 255 * 24.5 units, which is more than a level
/// at twelve fraction bits.
fn rounded(exact: &[f64]) -> Vec<i32> {
    let mut whole: Vec<i32> = exact.iter().map(|v| v.floor() as i32).collect();
    let missing = exact.iter().sum::<f64>().round() as i64 - whole.iter().map(|v| i64::from(*v)).sum::<i64>();
    let cut_off = |at: usize| exact[at] - exact[at].floor();
    let mut largest_first: Vec<usize> = (0..exact.len()).collect();
    largest_first.sort_by(|a, b| cut_off(*b).total_cmp(&cut_off(*a)));
    for at in largest_first.into_iter().take(missing.max(0) as usize) {
        whole[at] += 1;
    }
    whole
}

/// `kept.bytes` is the ring of rows, each with its borders repeated and padded to whole vectors.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let [count, bits, ..] = args.frame.words else { return };
    let (constant, centre) = (args.frame.int(2), args.frame.int(3));
    let taps = &args.frame.small.as_chunks::<2>().0[..*count as usize];
    let place = |[place, _]: &[u32; 2]| {
        let place = place.cast_signed();
        (place << 16 >> 16, place >> 16)
    };
    let away = |tap| Ord::max(place(tap).0.unsigned_abs(), place(tap).1.unsigned_abs());
    let away = taps.iter().map(away).max().unwrap_or(0);
    let (reach, rows_away) = (away as usize, i64::from(away));

    let values = pixels.as_flattened_mut();
    // The repeated borders occupy part of a vector before the row, and part of a vector after it.
    let stride = values.len().next_multiple_of(FILLED_TO) + 2 * FILLED_TO;
    let in_ring = 2 * reach + 1;
    kept.bytes.resize(in_ring * stride + FILLED_TO, 0);
    let skipped = kept.bytes.as_ptr().align_offset(FILLED_TO).min(FILLED_TO);
    let rows = &mut kept.bytes[skipped..];
    let (y, last) = (i64::from(y), i64::from(args.source.height) - 1);
    let slot = |at: i64| at.clamp(0, last) as usize % in_ring * stride;
    let (first, end) = ((y - rows_away).max(0), (y + rows_away).min(last) + 1);
    for at in first.max(kept.rows.1)..end {
        border(source.row(at), reach, &mut rows[slot(at)..][..stride]);
    }
    kept.rows = (first, end);

    let middle = slot(y) + FILLED_TO;
    let others = taps.iter().map(|tap| {
        let (right, down) = place(tap);
        let column = FILLED_TO.wrapping_add_signed(4 * right as isize);
        (slot(y + i64::from(down)) + column, tap[1].cast_signed())
    });
    let taps = ConvolveTaps::of(constant, *bits, middle, others.chain([(middle, centre)]));
    if !simd::convolve::sum(args.frame.level, &taps, rows, values) {
        args.frame.level.run(PlainConvolution { taps: &taps, rows, values });
    }
}

/// Copies a row with `reach` more pixels on both sides.
fn border(row: &[Pixel], reach: usize, bordered: &mut [u8]) {
    let (left, rest) = bordered.split_at_mut(FILLED_TO);
    let (middle, right) = rest.split_at_mut(4 * row.len());
    middle.copy_from_slice(row.as_flattened());
    let (Some(first), Some(last)) = (row.first(), row.last()) else { return };
    left[FILLED_TO - 4 * reach..].as_chunks_mut().0.fill(*first);
    right[..4 * reach].as_chunks_mut().0.fill(*last);
}

/// Values that are summed at once, in registers.
const LANES: usize = 32;

struct PlainConvolution<'a> {
    taps: &'a ConvolveTaps,
    rows: &'a [u8],
    values: &'a mut [u8],
}

impl Loop for PlainConvolution<'_> {
    #[inline(always)]
    fn run(self) {
        let PlainConvolution { taps, rows, values } = self;
        for (group, values) in values.chunks_mut(LANES).enumerate() {
            let lanes = |at: usize| rows[LANES * group + at..].first_chunk().unwrap_or(&[0; LANES]);
            let levels = if taps.narrow { narrow(taps, lanes) } else { wide(taps, lanes) };
            let (centre, mut kept) = (lanes(taps.centre), [0; LANES]);
            for i in 0..LANES {
                kept[i] = if i % 4 == 3 { centre[i] } else { levels[i] };
            }
            values.copy_from_slice(&kept[..values.len()]);
        }
    }
}

#[inline(always)]
fn narrow<'a>(taps: &ConvolveTaps, lanes: impl Fn(usize) -> &'a [u8; LANES]) -> [u8; LANES] {
    let mut sum = [taps.constant as i16; LANES];
    for TapPair { one, other, weights, .. } in taps.pairs() {
        let (one, other) = (lanes(*one as usize), lanes(*other as usize));
        for i in 0..LANES {
            sum[i] += i16::from(one[i]) * weights[0] + i16::from(other[i]) * weights[1];
        }
    }
    let mut levels = [0; LANES];
    for i in 0..LANES {
        levels[i] = (sum[i] >> taps.bits).clamp(0, 255) as u8;
    }
    levels
}

#[inline(always)]
fn wide<'a>(taps: &ConvolveTaps, lanes: impl Fn(usize) -> &'a [u8; LANES]) -> [u8; LANES] {
    let mut sum = [taps.constant; LANES];
    for TapPair { one, other, weights, .. } in taps.pairs() {
        let (one, other) = (lanes(*one as usize), lanes(*other as usize));
        for i in 0..LANES {
            sum[i] += i32::from(one[i]) * i32::from(weights[0]) + i32::from(other[i]) * i32::from(weights[1]);
        }
    }
    let mut levels = [0; LANES];
    for i in 0..LANES {
        levels[i] = (sum[i] >> taps.bits).clamp(0, 255) as u8;
    }
    levels
}

/// Weights of which some are 0: fractions, or integers with small or large sums.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let drawn = [0; 2].map(|_| {
        let side = 3 + 2 * chance.below(3);
        let (most, of) = (chance.one_of(&[3, 300, 5000]), chance.one_of(&[1.0, 7.0, 16.0]));
        let mut weight = || match chance.below(4) {
            0 => 0.0,
            _ => f64::from(chance.below(2 * most)) - f64::from(chance.below(most)),
        };
        let weights: Vec<f64> = (0..side * side).map(|_| weight()).collect();
        let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
        let divisor = of * (sum / 1000.0).max(1.0);
        let weights: Vec<f64> = weights.iter().map(|weight| weight / divisor).collect();
        let bias = (f64::from(chance.below(600)) - 300.0) / chance.one_of(&[1.0, 8.0, 9.0]);
        let fixed = fixed(&weights, bias).expect("weights that add up to 1000 fit");
        KernelSample::new(source, &pack(&fixed)).small(small(&fixed))
    });
    drawn.to_vec()
}
