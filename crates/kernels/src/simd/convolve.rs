//! Convolutions with arbitrary taps, two taps at a time, in vectors of 16-bit or 32-bit sums.
//!
//! The caller keeps the rows and repeats their borders. Taps are offsets into these rows. Sums are exact in 16 and in
//! 32 bits. A tap whose weight does not fit 16 bits is split into several taps. The centre's alpha is kept.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

use super::{Level, LevelKind};

/// At every level, rows are padded to a multiple of this number of values.
pub(crate) const FILLED_TO: usize = 64;
/// The maximum number of taps: 49, plus at most 257 taps from splitting large weights. With more taps, 255 times the
/// sum of the weights would exceed 32 bits.
const MOST_TAPS: usize = 306;

/// Two taps: the offset of the first value of each tap, and the two weights.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TapPair {
    pub(crate) one: u32,
    pub(crate) other: u32,
    pub(crate) weights: [i16; 2],
    /// The weights in eight bits each, if they fit.
    bytes: i16,
}

/// The taps of a convolution, with its constant and fraction bits.
#[derive(Debug)]
pub(crate) struct ConvolveTaps {
    pairs: [TapPair; MOST_TAPS / 2],
    count: usize,
    /// The initial value of a sum.
    pub(crate) constant: i32,
    /// The fraction bits of a sum.
    pub(crate) bits: u32,
    /// The offset of the centre, whose alpha is kept.
    pub(crate) centre: usize,
    /// Whether sums fit 16 bits, and weights 8 bits.
    pub(crate) narrow: bool,
}

impl ConvolveTaps {
    /// Arranges the given taps in pairs. A tap is given by the offset of its first value and by its weight.
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
            // A pair always reads two taps. A missing second tap reads the first tap's values with weight 0.
            *pair = TapPair { one: at, other: at, weights: [weight, 0], bytes: 0 };
        } else {
            (pair.other, pair.weights[1]) = (at, weight);
        }
        pair.bytes = i16::from_le_bytes(pair.weights.map(|weight| weight as u8));
        self.count += 1;
    }

    /// The taps in pairs. If the number of taps is odd, the last pair's second weight is 0.
    pub(crate) fn pairs(&self) -> &[TapPair] {
        &self.pairs[..self.count.div_ceil(2)]
    }
}

/// Sums a row of values. Returns false if the level has nothing faster than the scalar loop. Every row must be readable
/// up to a multiple of [`FILLED_TO`] values.
pub(crate) fn sum(level: Level, taps: &ConvolveTaps, rows: &[u8], values: &mut [u8]) -> bool {
    match level.0 {
        LevelKind::Baseline => return false,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
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
            v::load(rows[at..].first_chunk().expect("rows are padded"))
        }
    }
}
