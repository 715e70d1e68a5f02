//! Rows made into another width, and two rows into one of half the width.
//!
//! Owns the arithmetic on pairs of neighbouring pixels: both are fetched at once, and multiplied and added in one step.
//! Does not finish a row: what is left over is mixed one by one.
//!
//! Always: `left (4096 - f) + right f` for each level, as it is; `(a + b + c + d + 2) >> 2` for four.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for instructions that the machine was asked about can only be entered so")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "elsewhere there is no level above the baseline")
)]

use crate::picture::Pixel;

use super::Level;

/// Mixes a row along itself for as many columns as the level does, from the left, and returns how many.
pub(crate) fn along(level: Level, row: &[Pixel], columns: &[u32], mixed: &mut [u32]) -> usize {
    match level.0 {
        super::Kind::Baseline => 0,
        // SAFETY: a level exists only where `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { x86::along(row, columns, mixed) },
    }
}

/// Makes as many pixels of half the width from two rows as the level does, from the left, and returns how many.
pub(crate) fn halve(level: Level, top: &[Pixel], bottom: &[Pixel], pixels: &mut [Pixel]) -> usize {
    match level.0 {
        super::Kind::Baseline => 0,
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        _ => unsafe { x86::halve(top, bottom, pixels) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm_setr_epi8, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set_epi64x, _mm256_setr_epi32,
    };

    use crate::head::bilinear::{FRACTION_BITS, ONE};
    use crate::picture::Pixel;
    use crate::simd::wide::avx2 as v;

    /// Columns that are mixed at once.
    const COLUMNS: usize = 4;

    /// From two pixels to pairs of their levels.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn paired(pixels: v::Vector) -> v::Vector {
        v::shuffle_8(pixels, v::repeat(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15)))
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn along(row: &[Pixel], columns: &[u32], mixed: &mut [u32]) -> usize {
        let values = row.as_flattened();
        let Some(last_pair) = row.len().checked_sub(2) else { return 0 };
        let (groups, _) = columns.as_chunks::<COLUMNS>();
        let each_four = [_mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1), _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3)];
        for (places, to) in groups.iter().zip(mixed.as_chunks_mut::<{ 4 * COLUMNS }>().0) {
            let (mut pairs, mut weights) = ([0; COLUMNS], [0; COLUMNS]);
            for (i, place) in places.iter().enumerate() {
                // The last pixel is all of the right one of the last pair.
                let left = ((place >> FRACTION_BITS) as usize).min(last_pair);
                let fraction = place - ((left as u32) << FRACTION_BITS);
                let pair = values[4 * left..].first_chunk().copied().unwrap_or_default();
                pairs[i] = i64::from_le_bytes(pair);
                weights[i] = (fraction << 16 | (ONE - fraction)).cast_signed();
            }
            let [a, b, c, d] = pairs;
            // Unpacking takes the first eight bytes of both halves, then the second ones.
            let pairs = paired(_mm256_set_epi64x(d, b, c, a));
            let [a, b, c, d] = weights;
            let weights = _mm256_setr_epi32(a, b, c, d, 0, 0, 0, 0);
            let (first, second) = (v::unpack_low_8(pairs, v::zero()), v::unpack_high_8(pairs, v::zero()));
            let (to_first, to_second) = to.split_at_mut(8);
            for (to, pairs, each) in [(to_first, first, each_four[0]), (to_second, second, each_four[1])] {
                if let Some(to) = to.first_chunk_mut() {
                    v::store_32(to, v::madd_16(pairs, _mm256_permutevar8x32_epi32(weights, each)));
                }
            }
        }
        groups.len() * COLUMNS
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn halve(top: &[Pixel], bottom: &[Pixel], pixels: &mut [Pixel]) -> usize {
        let (ones, quarter) = (v::all_16(0x0101), v::all_16(1 << 13));
        let rows = top.as_flattened().as_chunks::<{ 2 * v::BYTES }>().0.iter();
        let rows = rows.zip(bottom.as_flattened().as_chunks::<{ 2 * v::BYTES }>().0);
        let groups = pixels.as_flattened_mut().as_chunks_mut::<{ v::BYTES }>().0;
        let done = groups.len().min(rows.len());
        for ((top, bottom), to) in rows.zip(groups) {
            let half = |at: usize| {
                let sums = |row: &[u8; 2 * v::BYTES]| {
                    let row = row[at..].first_chunk().copied().unwrap_or_default();
                    v::madd_8(paired(v::load(&row)), ones)
                };
                // `(x y + 2^14) >> 15` is what is multiplied.
                v::mul_round_16(v::add_16(sums(top), sums(bottom)), quarter)
            };
            let packed = v::pack_16(half(0), half(v::BYTES));
            v::store(to, _mm256_permute4x64_epi64(packed, 0b11_01_10_00));
        }
        done * v::BYTES / 4
    }
}
