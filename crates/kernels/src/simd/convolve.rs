//! Sums of any taps of a square, in pairs, for many levels at once.
//!
//! Owns the pairs of taps, the arithmetic on them in vectors of 16 and of 32 bits, and which of the two is wide enough.
//! Does not know where rows are kept, nor repeat borders: it is given places in rows that have been.
//!
//! Always: sums are exact, whatever their width; a tap whose weight does not fit 16 bits comes several times, with a part
//! of it each; the centre's alpha is kept.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for instructions that the machine was asked about can only be entered so")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "elsewhere there is no level above the baseline")
)]

use super::{Level, LevelKind};

/// Rows are filled up to a multiple of this, whatever the level.
pub(crate) const FILLED_TO: usize = 64;
/// The most taps there can be: 49, and 257 parts more before 255 times their weights leave 32 bits.
const MOST_TAPS: usize = 306;

/// Two taps: where the first value of each is, and their weights.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TapPair {
    pub(crate) one: u32,
    pub(crate) other: u32,
    pub(crate) weights: [i16; 2],
    /// The same in eight bits each, where they fit.
    bytes: i16,
}

/// Taps with all that is done to their sum.
#[derive(Debug)]
pub(crate) struct ConvolveTaps {
    pairs: [TapPair; MOST_TAPS / 2],
    count: usize,
    /// What a sum begins with.
    pub(crate) constant: i32,
    /// The fraction bits of a sum.
    pub(crate) bits: u32,
    /// Where the centre is, whose alpha is kept.
    pub(crate) centre: usize,
    /// Whether sums fit 16 bits, and weights eight.
    pub(crate) narrow: bool,
}

impl ConvolveTaps {
    /// These taps: each where its first value is, and its weight.
    pub(crate) fn of(
        constant: i32,
        bits: u32,
        centre: usize,
        given: impl Iterator<Item = (usize, i32)> + Clone,
    ) -> ConvolveTaps {
        let weights = || given.clone().map(|(_, weight)| i64::from(weight.unsigned_abs()));
        let most = 255 * weights().sum::<i64>() + i64::from(constant.unsigned_abs());
        let narrow = most <= i64::from(i16::MAX) && weights().all(|weight| weight <= i64::from(i8::MAX));
        let mut taps =
            ConvolveTaps { pairs: [TapPair::default(); MOST_TAPS / 2], count: 0, constant, bits, centre, narrow };
        for (at, weight) in given {
            let mut rest = weight;
            while rest != 0 {
                let part = rest.clamp(-i32::from(i16::MAX), i32::from(i16::MAX));
                taps.push(at as u32, part as i16);
                rest -= part;
            }
        }
        taps
    }

    fn push(&mut self, at: u32, weight: i16) {
        let pair = &mut self.pairs[self.count / 2];
        if self.count.is_multiple_of(2) {
            // The other one is read in any case: from the same place, and for nothing.
            *pair = TapPair { one: at, other: at, weights: [weight, 0], bytes: 0 };
        } else {
            (pair.other, pair.weights[1]) = (at, weight);
        }
        pair.bytes = i16::from_le_bytes(pair.weights.map(|weight| weight as u8));
        self.count += 1;
    }

    /// The taps, two by two; without a partner the last one has one of weight 0.
    pub(crate) fn pairs(&self) -> &[TapPair] {
        &self.pairs[..self.count.div_ceil(2)]
    }
}

/// Sums a row of values; false where the level has nothing better than the plain loop. Every row can be read up to a
/// multiple of [`FILLED_TO`] values.
pub(crate) fn sum(level: Level, taps: &ConvolveTaps, rows: &[u8], values: &mut [u8]) -> bool {
    match level.0 {
        LevelKind::Baseline => return false,
        // SAFETY: a level exists only where `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::sum(taps, rows, values) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::sum(taps, rows, values) },
    }
    #[cfg(target_arch = "x86_64")]
    true
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_cvtsi32_si128;
        use crate::simd::convolve::TapPair;
        use crate::simd::convolve::ConvolveTaps;

        fn sum(taps: &ConvolveTaps, rows: &[u8], values: &mut [u8]) {
            for at in (0..values.len()).step_by(v::BYTES) {
                let levels = group(taps, rows, at);
                match values[at..].first_chunk_mut() {
                    Some(values) => v::store(values, levels),
                    None => {
                        let mut all = [0; v::BYTES];
                        v::store(&mut all, levels);
                        let rest = &mut values[at..];
                        rest.copy_from_slice(&all[..rest.len()]);
                    }
                }
            }
        }

        #[inline]
        fn group(taps: &ConvolveTaps, rows: &[u8], at: usize) -> v::Vector {
            let levels = if taps.narrow { narrow(taps, rows, at) } else { wide(taps, rows, at) };
            let (centre, colors) = (bytes(rows, taps.centre + at), v::all_32(0x00ff_ffff));
            v::xor(v::and(v::xor(levels, centre), colors), centre)
        }

        #[inline]
        fn narrow(taps: &ConvolveTaps, rows: &[u8], at: usize) -> v::Vector {
            let begin = v::all_16(taps.constant as i16);
            let (mut low, mut high) = (begin, begin);
            for TapPair { one, other, bytes: weights, .. } in taps.pairs() {
                let (a, b) = (bytes(rows, *one as usize + at), bytes(rows, *other as usize + at));
                let weights = v::all_16(*weights);
                low = v::add_16(low, v::madd_8(v::unpack_low_8(a, b), weights));
                high = v::add_16(high, v::madd_8(v::unpack_high_8(a, b), weights));
            }
            let shift = _mm_cvtsi32_si128(taps.bits.cast_signed());
            v::pack_16(v::shift_by_16(low, shift), v::shift_by_16(high, shift))
        }

        #[inline]
        fn wide(taps: &ConvolveTaps, rows: &[u8], at: usize) -> v::Vector {
            let zero = v::zero();
            let mut sums = [v::all_32(taps.constant); 4];
            for TapPair { one, other, weights: [one_weight, other_weight], .. } in taps.pairs() {
                let (a, b) = (bytes(rows, *one as usize + at), bytes(rows, *other as usize + at));
                let weights = v::all_32((i32::from(*other_weight) << 16) | (i32::from(*one_weight) & 0xffff));
                let (low, high) = (v::unpack_low_8(a, b), v::unpack_high_8(a, b));
                sums[0] = v::dot(sums[0], v::unpack_low_8(low, zero), weights);
                sums[1] = v::dot(sums[1], v::unpack_high_8(low, zero), weights);
                sums[2] = v::dot(sums[2], v::unpack_low_8(high, zero), weights);
                sums[3] = v::dot(sums[3], v::unpack_high_8(high, zero), weights);
            }
            let shift = _mm_cvtsi32_si128(taps.bits.cast_signed());
            let low = v::pack_32(v::shift_by_32(sums[0], shift), v::shift_by_32(sums[1], shift));
            let high = v::pack_32(v::shift_by_32(sums[2], shift), v::shift_by_32(sums[3], shift));
            v::pack_16(low, high)
        }

        #[inline]
        fn bytes(rows: &[u8], at: usize) -> v::Vector {
            v::load(rows[at..].first_chunk().expect("rows are filled up"))
        }
    }
}
