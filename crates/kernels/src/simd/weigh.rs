//! Computes luma, and chroma of full or half the width, from many pixels at once.
//!
//! One vector instruction multiplies two 16-bit channels by their factors and adds the products. Sums have 32 bits.
//! Their lowest 15 bits are cut off, or 17 bits if four pixels are summed, and the rest is clamped to 0..=255. The
//! caller computes the pixels that are left over, and rows shorter than a vector.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, dead_code, reason = "other architectures have no level above the baseline")
)]

use crate::picture::Pixel;
use crate::stored::way::RgbToYuv;

use super::Level;

/// Factors of red, green and blue, and the constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub(crate) factors: [i32; 3],
    pub(crate) bias: i32,
}

/// Computes a weighted sum of the channels of each pixel. Returns the number of pixels that were used: none or all.
pub(crate) fn weigh(level: Level, weights: Weights, pixels: &[Pixel], into: &mut [u8]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::weigh(weights, pixels, into) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::weigh(weights, pixels, into) },
    }
}

/// Chroma of two rows at half their width, with u and v interleaved. Returns the number of pixels of a row that were
/// used, an even number.
pub(crate) fn pairs(level: Level, down: &RgbToYuv, rows: [&[Pixel]; 2], into: &mut [u8]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::pairs(down, rows, into) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::pairs(down, rows, into) },
    }
}

/// Like [`pairs`], with u and v separate.
pub(crate) fn halves(level: Level, down: &RgbToYuv, rows: [&[Pixel]; 2], u: &mut [u8], v: &mut [u8]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::halves(down, rows, u, v) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::halves(down, rows, u, v) },
    }
}

/// Two factors that fit 16 bits, packed into one number.
#[cfg(target_arch = "x86_64")]
fn pair(low: i32, high: i32) -> i32 {
    (high << 16) | (low & 0xffff)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_setr_epi32;
        use crate::picture::Pixel;
        use crate::simd::weigh::Weights;
        use crate::simd::weigh::pair;
        use crate::stored::way::CHROMA_BIAS;
        use crate::stored::way::RgbToYuv;

        fn weigh(weights: Weights, pixels: &[Pixel], into: &mut [u8]) -> usize {
            // The last vector ends with the last pixel, so some pixels are computed twice.
            let Some(last) = pixels.len().checked_sub(v::BYTES) else { return 0 };
            let [r, g, b] = weights.factors;
            let (even, odd) = (v::all_32(pair(r, b)), v::all_32(pair(g, 0)));
            let (bias, bytes) = (v::all_32(weights.bias), v::all_32(0x00ff_00ff));
            let mut at = 0;
            loop {
                let mut four = quarters(pixels, at);
                for c in &mut four {
                    let (rb, ga) = (v::and(*c, bytes), v::and(v::shift_unsigned_32(*c, 8), bytes));
                    *c = v::shift_32(v::dot(v::dot(bias, rb, even), ga, odd), 15);
                }
                v::store(into[at..].first_chunk_mut().expect("a byte for each pixel"), levels(four));
                if at == last {
                    return pixels.len();
                }
                at = (at + v::BYTES).min(last);
            }
        }

        fn pairs(down: &RgbToYuv, rows: [&[Pixel]; 2], into: &mut [u8]) -> usize {
            let Some(last) = rows[0].len().checked_sub(v::BYTES) else { return 0 };
            let last = last & !1;
            let factors = chroma_factors(down);
            let mut at = 0;
            loop {
                v::store(into[at..].first_chunk_mut().expect("two bytes for two pixels"), chroma(rows, at, &factors));
                if at == last {
                    return last + v::BYTES;
                }
                at = (at + v::BYTES).min(last);
            }
        }

        fn halves(down: &RgbToYuv, rows: [&[Pixel]; 2], u: &mut [u8], w: &mut [u8]) -> usize {
            let Some(last) = rows[0].len().checked_sub(v::BYTES) else { return 0 };
            let last = last & !1;
            let factors = chroma_factors(down);
            // Reorders eight pairs of u and v into eight u and eight v.
            let turn = v::repeat(_mm_setr_epi32(0x0604_0200, 0x0e0c_0a08, 0x0705_0301, 0x0f0d_0b09));
            let mut at = 0;
            loop {
                let mut both = [0; v::BYTES];
                v::store(&mut both, v::permute_32(v::shuffle_8(chroma(rows, at, &factors), turn), &v::HALVES));
                let (us, ws) = both.split_at(v::BYTES / 2);
                u[at / 2..][..v::BYTES / 2].copy_from_slice(us);
                w[at / 2..][..v::BYTES / 2].copy_from_slice(ws);
                if at == last {
                    return last + v::BYTES;
                }
                at = (at + v::BYTES).min(last);
            }
        }

        /// The factors for u, and those for v. In each vector, two factors for red and blue alternate with a factor for
        /// green and a zero.
        #[inline]
        fn chroma_factors(down: &RgbToYuv) -> [v::Vector; 2] {
            [down.u, down.v].map(|[r, g, b]| {
                let (rb, ga) = (pair(r, b), pair(g, 0));
                v::repeat(_mm_setr_epi32(rb, ga, rb, ga))
            })
        }

        /// Chroma of as many pixels of two rows as a vector has bytes.
        #[inline]
        fn chroma(rows: [&[Pixel]; 2], at: usize, factors: &[v::Vector; 2]) -> v::Vector {
            let (upper, lower) = (quarters(rows[0], at), quarters(rows[1], at));
            // Reorders two pixels into two reds, two blues, two greens, two alphas.
            let turn = v::repeat(_mm_setr_epi32(0x0602_0400, 0x0703_0501, 0x0e0a_0c08, 0x0f0b_0d09));
            let (ones, bias) = (v::all_16(0x0101), v::all_32(CHROMA_BIAS));
            let mut four = upper;
            for i in 0..4 {
                let above = v::madd_8(v::shuffle_8(upper[i], turn), ones);
                let sums = v::add_16(above, v::madd_8(v::shuffle_8(lower[i], turn), ones));
                let (u, w) = (v::madd_16(sums, factors[0]), v::madd_16(sums, factors[1]));
                // Even lanes hold the weighted sum of red and blue, odd lanes that of green. For u, each odd lane is
                // added to the even lane before it. For v, each even lane is added to the odd lane after it.
                let u = v::add_32(u, v::shift_right_64(u, 32));
                let w = v::add_32(w, v::shift_left_64(w, 32));
                four[i] = v::shift_32(v::add_32(v::by_turns_32(u, w), bias), 17);
            }
            levels(four)
        }

        #[inline]
        fn quarters(pixels: &[Pixel], at: usize) -> [v::Vector; 4] {
            let bytes = pixels[at..].first_chunk::<{ v::BYTES }>().expect("a vector of pixels").as_flattened();
            let quarters = bytes.as_chunks::<{ v::BYTES }>().0.first_chunk::<4>().expect("four bytes a pixel");
            [v::load(&quarters[0]), v::load(&quarters[1]), v::load(&quarters[2]), v::load(&quarters[3])]
        }

        /// Clamps the elements of four vectors to bytes, and concatenates them.
        #[inline]
        fn levels(four: [v::Vector; 4]) -> v::Vector {
            let low = v::pack_32(four[0], four[1]);
            let high = v::pack_32(four[2], four[3]);
            v::permute_32(v::pack_16(low, high), &v::TOGETHER)
        }
    }
}
