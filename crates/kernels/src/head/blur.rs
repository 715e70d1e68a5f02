//! `blur`: a Gaussian blur in integers, first along rows, then down columns.
//!
//! The weights are mirrored integers with the sum 256. A row of the source is summed once per band. Only the final
//! result is rounded. Pixels beyond the border repeat the border.

use vramp_plan::Size;

use crate::head::{BandState, First, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;
use crate::simd::blur::{BlurTaps, FILLED_TO};

/// Parameters: number of pairs of taps, the weight of the centre. Small data: for each pair, from the centre outwards,
/// its distance (upper 16 bits) and its weight (lower 16 bits).
pub static BLUR: Head = Head {
    name: "blur",
    wgsl: include_str!("blur.wgsl"),
    words: 2,
    small: true,
    first: Some(First::STENCIL),
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The maximum number of taps along one axis.
pub const MOST_TAPS: u32 = 1023;

/// The default number of taps along one axis: six sigma plus one, rounded, plus one more if the result is even.
pub fn size_of(sigma: f64) -> u32 {
    (6.0 * sigma + 1.0).round() as u32 | 1
}

/// The weights of all taps. If `size` is 0, [`size_of`] determines the number of taps. Returns `None` if the size is
/// even or greater than [`MOST_TAPS`], or if sigma is not positive.
pub fn weights(sigma: f64, size: u32) -> Option<Vec<u32>> {
    let size = if size == 0 { size_of(sigma) } else { size };
    if sigma.is_nan() || sigma <= 0.0 || size % 2 == 0 || size > MOST_TAPS {
        return None;
    }
    let reach = size / 2;
    // The operations have the same order as in OpenCV, so that even the last bit is the same.
    let scale = -0.125 / (sigma * sigma);
    let bell: Vec<f64> = (0..reach).map(|i| (f64::from(4 * (reach - i) * (reach - i)) * scale).exp()).collect();
    let factor = 1.0 / (2.0 * bell.iter().sum::<f64>() + 1.0);
    let mut left_over = 0.0;
    let half = bell.iter().map(|g| {
        let wanted = g * factor * 256.0 + left_over;
        let weight = wanted.round_ties_even();
        left_over = wanted - weight;
        weight as u32
    });
    let mut all: Vec<u32> = half.collect();
    all.push(256 - 2 * all.iter().sum::<u32>());
    all.extend_from_within(..reach as usize);
    all[reach as usize + 1..].reverse();
    Some(all)
}

/// The parameter words of these weights. The number of weights is odd.
pub fn pack(weights: &[u32]) -> [u32; 2] {
    [small(weights).len() as u32, weights[weights.len() / 2]]
}

/// The small data of these weights. Taps without weight are left out, so there are at most 128 pairs.
pub fn small(weights: &[u32]) -> Vec<u32> {
    let outwards = weights[weights.len() / 2..].iter().enumerate().skip(1);
    outwards.filter(|(_, weight)| **weight > 0).map(|(away, weight)| (away as u32) << 16 | weight).collect()
}

/// Values that are summed at once, in registers.
const LANES: usize = 32;
/// The maximum bytes of small data.
pub const MOST_SMALL_BYTES: u64 = 4 * MOST_PAIRS as u64;
/// The maximum number of pairs: the weights of a pair add up to at least 2 of 256.
const MOST_PAIRS: usize = 128;

type SumLanes = [u16; LANES];

/// The positions of two values, and their common weight.
#[derive(Debug, Clone, Copy, Default)]
struct WeightedPair {
    one: usize,
    other: usize,
    weight: u16,
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    if kept.ahead == Some(y) {
        let values = pixels.as_flattened_mut();
        return values.copy_from_slice(&kept.bytes[..values.len()]);
    }
    let (count, centre) = (args.frame.words[0] as usize, args.frame.words[1]);
    let taps = &args.frame.small[..count.min(MOST_PAIRS)];
    match BlurTaps::of(args.frame.level, taps, centre) {
        Some(taps) => two_rows(args, &taps, source, kept, y, pixels),
        None => one_row(args, taps, centre as u16, source, kept, y, pixels),
    }
}

/// Computes two rows at once, because they need nearly the same rows of sums. The second row is kept at the start of
/// `kept.bytes`, before a row of the source with its borders repeated. `kept.sums` is the ring of summed rows.
fn two_rows(
    args: &HeadArgs<'_>,
    taps: &BlurTaps,
    source: &mut SourceRows<'_>,
    kept: &mut BandState,
    y: u32,
    pixels: &mut [Pixel],
) {
    let values = pixels.as_flattened_mut();
    let (reach, last) = (i64::from(taps.reach() as u32), i64::from(args.source.height) - 1);
    let filled = values.len().next_multiple_of(FILLED_TO);
    let in_ring = 2 * taps.reach() + 2;
    kept.bytes.resize(2 * filled + 8 * taps.reach(), 0);
    // A vector that does not cross cache lines is read in half the time.
    kept.sums.resize(in_ring * filled + FILLED_TO, 0);
    let skipped = kept.sums.as_ptr().align_offset(64).min(FILLED_TO);
    let ring = &mut kept.sums[skipped..];
    let (second, bordered) = kept.bytes.split_at_mut(filled);

    let y = i64::from(y);
    let (first, end) = ((y - reach).max(0), (y + 2 + reach).min(last + 1));
    let slot = |at: i64| at.clamp(0, last) as usize % in_ring * filled;
    for at in first.max(kept.rows.1)..end {
        border(source.row(at), taps.reach(), bordered);
        taps.along(bordered, &mut ring[slot(at)..][..filled]);
    }
    kept.rows = (first, end);
    let mut rows = [0; 2 * MOST_PAIRS];
    let rows = &mut rows[..in_ring];
    rows.iter_mut().zip(y - reach..).for_each(|(row, at)| *row = slot(at));
    taps.down(ring, rows, values, &mut second[..values.len()]);
    kept.ahead = Some(y as u32 + 1);
}

/// Copies a row with `reach` more pixels on both sides.
fn border(row: &[Pixel], reach: usize, bordered: &mut [u8]) {
    let (left, rest) = bordered.split_at_mut(4 * reach);
    let (middle, right) = rest.split_at_mut(4 * row.len());
    middle.copy_from_slice(row.as_flattened());
    let (Some(first), Some(last)) = (row.first(), row.last()) else { return };
    left.as_chunks_mut().0.fill(*first);
    right[..4 * reach].as_chunks_mut().0.fill(*last);
}

/// The scalar version, for weights that do not fit the vector loops and for the baseline. `kept.sums` holds one widened
/// row with its borders repeated, followed by the ring of summed rows, each padded to whole groups of lanes.
fn one_row(
    args: &HeadArgs<'_>,
    taps: &[u32],
    centre: u16,
    source: &mut SourceRows<'_>,
    kept: &mut BandState,
    y: u32,
    pixels: &mut [Pixel],
) {
    let distance = |tap: &u32| (tap >> 16) as usize;
    let reach = taps.last().map_or(0, distance);
    let height = args.source.height as usize;
    let groups = (4 * pixels.len()).div_ceil(LANES);
    let in_ring = (2 * reach + 1).min(height);
    let wide = groups * LANES + 8 * reach;
    kept.sums.resize(wide + in_ring * groups * LANES, 0);
    let (widened, ring) = kept.sums.split_at_mut(wide);
    let ring = ring.as_chunks_mut::<LANES>().0;

    let mut pairs = [WeightedPair::default(); MOST_PAIRS];
    let pairs = &mut pairs[..taps.len()];
    let y = y as usize;
    let (first, end) = (y.saturating_sub(reach) as u32, (y + reach + 1).min(height) as u32);
    for at in first.max(kept.rows.1 as u32)..end {
        for (pair, tap) in pairs.iter_mut().zip(taps) {
            let away = 4 * distance(tap);
            *pair = WeightedPair { one: 4 * reach - away, other: 4 * reach + away, weight: *tap as u16 };
        }
        let slot = at as usize % in_ring * groups;
        let sums = &mut ring[slot..slot + groups];
        let row = source.row(i64::from(at));
        args.frame.level.run(BlurHorizontalPass { row, widened, pairs, reach, centre, sums });
    }
    kept.rows = (i64::from(first), i64::from(end));

    let slot = |at: usize| at % in_ring * groups;
    for (pair, tap) in pairs.iter_mut().zip(taps) {
        let (above, below) = (y.saturating_sub(distance(tap)), (y + distance(tap)).min(height - 1));
        *pair = WeightedPair { one: slot(above), other: slot(below), weight: *tap as u16 };
    }
    let values = pixels.as_flattened_mut();
    args.frame.level.run(BlurVerticalPass { ring, pairs, middle: slot(y), centre, values });
}

/// A row as 16-bit values, with `reach` more pixels on both sides.
#[inline(always)]
fn widen(row: &[Pixel], reach: usize, widened: &mut [u16]) {
    let values = row.as_flattened();
    let (left, rest) = widened.split_at_mut(4 * reach);
    let (middle, right) = rest.split_at_mut(values.len());
    for (to, from) in middle.iter_mut().zip(values) {
        *to = u16::from(*from);
    }
    let (Some(first), Some(last)) = (row.first(), row.last()) else { return };
    for (side, border) in [(left, first), (right, last)] {
        for pixel in side.as_chunks_mut::<4>().0 {
            *pixel = border.map(u16::from);
        }
    }
}

/// The first pass over one row.
struct BlurHorizontalPass<'a> {
    row: &'a [Pixel],
    widened: &'a mut [u16],
    pairs: &'a [WeightedPair],
    reach: usize,
    centre: u16,
    sums: &'a mut [SumLanes],
}

impl Loop for BlurHorizontalPass<'_> {
    #[inline(always)]
    fn run(self) {
        let BlurHorizontalPass { row, widened, pairs, reach, centre, sums } = self;
        widen(row, reach, widened);
        let (middle, widened) = (4 * reach, &*widened);
        for (group, sums) in sums.iter_mut().enumerate() {
            let lanes = |at: usize| widened[group * LANES + at..].first_chunk::<LANES>().unwrap_or(&[0; LANES]);
            let mut sum = [0; LANES];
            let one = lanes(middle);
            for i in 0..LANES {
                sum[i] = one[i].wrapping_mul(centre);
            }
            for pair in pairs {
                let (one, other) = (lanes(pair.one), lanes(pair.other));
                for i in 0..LANES {
                    sum[i] = sum[i].wrapping_add(one[i].wrapping_add(other[i]).wrapping_mul(pair.weight));
                }
            }
            *sums = sum;
        }
    }
}

/// The second pass over one row.
struct BlurVerticalPass<'a> {
    ring: &'a [SumLanes],
    pairs: &'a [WeightedPair],
    middle: usize,
    centre: u16,
    values: &'a mut [u8],
}

impl Loop for BlurVerticalPass<'_> {
    #[inline(always)]
    fn run(self) {
        let BlurVerticalPass { ring, pairs, middle, centre, values } = self;
        let (groups, rest) = values.as_chunks_mut::<LANES>();
        let last = groups.len();
        for (group, values) in groups.iter_mut().enumerate() {
            *values = sum_group(ring, pairs, middle, centre, group);
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&sum_group(ring, pairs, middle, centre, last)[..rest.len()]);
        }
    }
}

/// Computes 24-bit sums with 16-bit lanes, because a vector has twice as many 16-bit lanes as 32-bit lanes. A sum is T
/// = 256 U + L, where U is the weighted sum of the upper bytes and L the weighted sum of the lower bytes. U and L fit
/// 16 bits, because the weights have the sum 256. The loop computes U and the lower 16 bits of T, from which L follows.
/// The result (T + 2^15) / 2^16 is then (U + (L + 2^15) / 2^8) / 2^8.
#[inline(always)]
fn sum_group(ring: &[SumLanes], pairs: &[WeightedPair], middle: usize, centre: u16, group: usize) -> [u8; LANES] {
    let (mut upper, mut total) = ([0u16; LANES], [0u16; LANES]);
    let one = &ring[middle + group];
    for i in 0..LANES {
        upper[i] = (one[i] >> 8).wrapping_mul(centre);
        total[i] = one[i].wrapping_mul(centre);
    }
    for pair in pairs {
        let (one, other) = (&ring[pair.one + group], &ring[pair.other + group]);
        for i in 0..LANES {
            upper[i] = upper[i].wrapping_add(((one[i] >> 8) + (other[i] >> 8)).wrapping_mul(pair.weight));
            total[i] = total[i].wrapping_add(one[i].wrapping_add(other[i]).wrapping_mul(pair.weight));
        }
    }
    let mut done = [0; LANES];
    for i in 0..LANES {
        let lower = total[i].wrapping_sub(upper[i] << 8);
        done[i] = (upper[i].wrapping_add((lower >> 8) + 128) >> 8) as u8;
    }
    done
}

/// The default number of taps for two sigmas, and a random number of taps.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let (near, far) = (chance.between(0.3, 4.3), chance.between(0.05, 12.0));
    let drawn = [(near, size_of(near)), (far, 0), (far, 2 * chance.below(40) + 1)].map(|(sigma, size)| {
        let weights = weights(sigma, size).expect("an odd number of taps within the limit");
        KernelSample::new(source, &pack(&weights)).small(small(&weights))
    });
    drawn.to_vec()
}
