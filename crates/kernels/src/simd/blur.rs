//! Sums of mirrored taps for blurs, in vectors of 8-bit and 16-bit values. A pass sums along one row, or down the
//! columns for two output rows at a time.
//!
//! The caller keeps the rows and repeats their borders. Sums are exact. The pass along a row subtracts 2^15 from each
//! sum, so that the sum fits a signed 16-bit number, and stores sums in the order in which vectors unpack bytes. The
//! pass down the columns adds 2^15 again and restores the order of pixels.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, dead_code, reason = "other architectures have no level above the baseline")
)]

use super::{Level, LevelKind};

/// At every level, rows are padded to a multiple of this number of values.
pub(crate) const FILLED_TO: usize = 128;
/// The maximum distance of a tap. Wider blurs have too many small weights to gain from this loop.
const MOST_REACH: usize = 63;

/// Taps with small weights: the weighted sum of two values at the same distance, and the weighted value of the centre,
/// stay within 15 bits.
#[derive(Debug)]
pub(crate) struct BlurTaps {
    level: Level,
    /// Distance from the centre in bytes, and the 8-bit weight repeated four times.
    along: [(usize, i32); MOST_REACH],
    /// Two 8-bit weights that add up to the centre's weight, alternating.
    centre_along: i32,
    count: usize,
    /// For each pair of source rows, from the top: their two 16-bit weights in the sum for the first output row, and in
    /// the sum for the second output row.
    down: [[i32; 2]; MOST_REACH + 1],
    reach: usize,
}

impl BlurTaps {
    /// Returns `None` if the weights do not fit, or if the level has nothing faster than the scalar loops.
    pub(crate) fn of(level: Level, pairs: &[u32], centre: u32) -> Option<BlurTaps> {
        let (distance, weight) = (|tap: &u32| (tap >> 16) as usize, |tap: &u32| tap & 0xffff);
        let reach = pairs.last().map_or(0, distance);
        if level.0 == LevelKind::Baseline
            || reach > MOST_REACH
            || centre > 128
            || pairs.iter().any(|tap| weight(tap) > 64)
        {
            return None;
        }
        // One weight per row, with a zero before the first weight and after the last.
        let mut weights = [0; 2 * MOST_REACH + 3];
        weights[1 + reach] = centre;
        for tap in pairs {
            weights[1 + reach - distance(tap)] = weight(tap);
            weights[1 + reach + distance(tap)] = weight(tap);
        }
        let mut down = [[0; 2]; MOST_REACH + 1];
        for (i, both) in down.iter_mut().enumerate().take(reach + 1) {
            let pair = |at: usize| (weights[at] | (weights[at + 1] << 16)).cast_signed();
            *both = [pair(2 * i + 1), pair(2 * i)];
        }
        let repeated = |a: u32, b: u32| ((a | (b << 8)) * 0x0001_0001).cast_signed();
        let mut along = [(0, 0); MOST_REACH];
        for (along, tap) in along.iter_mut().zip(pairs) {
            *along = (4 * distance(tap), repeated(weight(tap), weight(tap)));
        }
        let centre_along = repeated(centre / 2, centre.div_ceil(2));
        Some(BlurTaps { level, along, centre_along, count: pairs.len(), down, reach })
    }

    /// The distance of the farthest tap.
    pub(crate) fn reach(&self) -> usize {
        self.reach
    }

    /// The first pass over a row with `reach` more pixels on both sides. `sums` is padded to a multiple of
    /// [`FILLED_TO`], and the row is long enough for all of these sums.
    pub(crate) fn along(&self, row: &[u8], sums: &mut [u16]) {
        match self.level.0 {
            LevelKind::Baseline => {}
            // SAFETY: a level exists only if `detect` has found all of its instructions.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::along(self, row, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Bytes => unsafe { x86::avx512::along(self, row, sums) },
        }
    }

    /// The second pass, for two output rows, one below the other. `rows` holds the offsets in `sums` of `2 reach + 2`
    /// rows.
    pub(crate) fn down(&self, sums: &[u16], rows: &[usize], first: &mut [u8], second: &mut [u8]) {
        match self.level.0 {
            LevelKind::Baseline => {}
            // SAFETY: a level exists only if `detect` has found all of its instructions.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::down(self, sums, rows, first, second) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Bytes => unsafe { x86::avx512::down(self, sums, rows, first, second) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use crate::simd::blur::BlurTaps;

        fn along(taps: &BlurTaps, row: &[u8], sums: &mut [u16]) {
            let middle = 4 * taps.reach;
            let centre = v::all_32(taps.centre_along);
            let signed = v::all_16(i16::MIN);
            for (group, sums) in sums.as_chunks_mut::<{ 2 * v::BYTES }>().0.iter_mut().enumerate() {
                let row = &row[2 * v::BYTES * group..];
                let [a, b] = two_of_bytes(row, middle);
                let mut totals = [
                    v::madd_8(v::unpack_low_8(a, a), centre),
                    v::madd_8(v::unpack_high_8(a, a), centre),
                    v::madd_8(v::unpack_low_8(b, b), centre),
                    v::madd_8(v::unpack_high_8(b, b), centre),
                ];
                for (away, weight) in &taps.along[..taps.count] {
                    let weight = v::all_32(*weight);
                    let [a, b] = two_of_bytes(row, middle - away);
                    let [c, d] = two_of_bytes(row, middle + away);
                    totals[0] = v::add_16(totals[0], v::madd_8(v::unpack_low_8(a, c), weight));
                    totals[1] = v::add_16(totals[1], v::madd_8(v::unpack_high_8(a, c), weight));
                    totals[2] = v::add_16(totals[2], v::madd_8(v::unpack_low_8(b, d), weight));
                    totals[3] = v::add_16(totals[3], v::madd_8(v::unpack_high_8(b, d), weight));
                }
                for (sums, total) in sums.as_chunks_mut().0.iter_mut().zip(totals) {
                    v::store_16(sums, v::xor(total, signed));
                }
            }
        }

        #[inline]
        fn two_of_bytes(row: &[u8], at: usize) -> [v::Vector; 2] {
            let two = row[at..].first_chunk::<{ 2 * v::BYTES }>().expect("rows are padded");
            let (first, second) = two.split_first_chunk().expect("two vectors");
            [v::load(first), v::load(second.first_chunk().expect("two vectors"))]
        }

        #[inline]
        fn two_of_sums(sums: &[u16], at: usize) -> [v::Vector; 2] {
            let two = sums[at..].first_chunk::<{ v::BYTES }>().expect("rows are padded");
            let (first, second) = two.split_first_chunk().expect("two vectors");
            [v::load_16(first), v::load_16(second.first_chunk().expect("two vectors"))]
        }

        fn down(taps: &BlurTaps, sums: &[u16], rows: &[usize], first: &mut [u8], second: &mut [u8]) {
            let rows = rows.as_chunks::<2>().0;
            let (groups, rest) = first.as_chunks_mut::<{ v::BYTES }>();
            let (others, other_rest) = second.as_chunks_mut::<{ v::BYTES }>();
            let last = v::BYTES * groups.len();
            for (i, (first, second)) in groups.iter_mut().zip(others).enumerate() {
                group(taps, sums, rows, v::BYTES * i, first, second);
            }
            if !rest.is_empty() {
                let (mut first, mut second) = ([0; v::BYTES], [0; v::BYTES]);
                group(taps, sums, rows, last, &mut first, &mut second);
                rest.copy_from_slice(&first[..rest.len()]);
                other_rest.copy_from_slice(&second[..other_rest.len()]);
            }
        }

        fn group(
            taps: &BlurTaps,
            sums: &[u16],
            rows: &[[usize; 2]],
            at: usize,
            first: &mut [u8; v::BYTES],
            second: &mut [u8; v::BYTES],
        ) {
            // Adds the total that the first pass subtracted from the sums, and the half for rounding.
            let begin = v::all_32((256 << 15) + (1 << 15));
            let (mut one, mut other) = ([begin; 4], [begin; 4]);
            for ([upper, lower], [weights, other_weights]) in rows.iter().zip(&taps.down) {
                let ([a, b], [c, d]) = (two_of_sums(sums, upper + at), two_of_sums(sums, lower + at));
                let (weights, other_weights) = (v::all_32(*weights), v::all_32(*other_weights));
                let pairs = [
                    v::unpack_low_16(a, c),
                    v::unpack_high_16(a, c),
                    v::unpack_low_16(b, d),
                    v::unpack_high_16(b, d),
                ];
                for i in 0..4 {
                    one[i] = v::dot(one[i], pairs[i], weights);
                    other[i] = v::dot(other[i], pairs[i], other_weights);
                }
            }
            v::store(first, levels(one));
            v::store(second, levels(other));
        }

        #[inline]
        fn levels(t: [v::Vector; 4]) -> v::Vector {
            let low = v::pack_32(v::shift_32(t[0], 16), v::shift_32(t[1], 16));
            let high = v::pack_32(v::shift_32(t[2], 16), v::shift_32(t[3], 16));
            v::pack_16(low, high)
        }
    }
}
