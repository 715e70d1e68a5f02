//! Colour matrices with factors that fit 16 bits, for many pixels at once.
//!
//! One vector instruction multiplies two 16-bit channels by their factors and adds the products. Sums have 32 bits.
//! Their twelve lowest bits are cut off, and the rest is clamped to 0..=255. The caller computes the pixels that are
//! left over.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, unused_variables, reason = "other architectures have no level above the baseline")
)]

use crate::picture::Pixel;

use super::Level;

/// A matrix in pairs: for each channel, the factors of red and blue in one word, those of green and alpha in the next,
/// and the constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pairs([[i32; 3]; 4]);

impl Pairs {
    /// Converts a matrix with four rows of five numbers. Returns `None` if a factor does not fit 16 bits.
    pub(crate) fn of(m: &[i32; 20]) -> Option<Pairs> {
        let fits = |row: &[i32]| row[..4].iter().all(|factor| i16::try_from(*factor).is_ok());
        let pair = |low: i32, high: i32| (high << 16) | (low & 0xffff);
        let row = |k: usize| [pair(m[k], m[k + 2]), pair(m[k + 1], m[k + 3]), m[k + 4]];
        m.chunks_exact(5).all(fits).then(|| Pairs([0, 5, 10, 15].map(row)))
    }
}

/// Computes whole vectors of pixels, from the left, and returns the pixels that are left over.
pub(crate) fn sum<'a>(level: Level, pixels: &'a mut [Pixel], pairs: &Pairs) -> &'a mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::sum(pixels, pairs) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::sum(pixels, pairs) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_setr_epi32;
        use crate::picture::Pixel;
        use crate::simd::matrix::Pairs;

        fn sum<'a>(pixels: &'a mut [Pixel], pairs: &Pairs) -> &'a mut [Pixel] {
            let factors = pairs.0.map(|row| row.map(|v| v::all_32(v)));
            let lower_halves = v::all_32(0x00ff_00ff);
            // Reorders four reds, four greens, four blues and four alphas into four pixels.
            let turn = v::repeat(_mm_setr_epi32(0x0c08_0400, 0x0d09_0501, 0x0e0a_0602, 0x0f0b_0703));
            let (groups, rest) = pixels.as_chunks_mut::<{ v::BYTES / 4 }>();
            for group in groups {
                let group = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                let c = v::load(group);
                let (even, odd) = (v::and(c, lower_halves), v::and(v::shift_unsigned_32(c, 8), lower_halves));
                let (rg, ba) = (
                    v::pack_32(channel(even, odd, factors[0]), channel(even, odd, factors[1])),
                    v::pack_32(channel(even, odd, factors[2]), channel(even, odd, factors[3])),
                );
                let levels = v::pack_16(rg, ba);
                v::store(group, v::shuffle_8(levels, turn));
            }
            rest
        }

        #[inline]
        fn channel(even: v::Vector, odd: v::Vector, [one, other, constant]: [v::Vector; 3]) -> v::Vector {
            v::shift_32(v::dot(v::dot(constant, even, one), odd, other), 12)
        }
    }
}
