//! Gray values of many pixels at once.
//!
//! Owns the sum of three channels in pairs of 16-bit numbers, and what is made from it: gray pixels, or black and white.
//! Does not finish a row: what is left over is done one by one.
//!
//! Always: `(9798 r + 19235 g + 3735 b + 16384) >> 15`; alpha is kept.

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

/// Makes as many pixels gray as the level does at once, from the left, and returns the others.
pub(crate) fn gray(level: Level, pixels: &mut [Pixel]) -> &mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only where `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::gray(pixels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::gray(pixels) },
    }
}

/// The same with black where gray is at most this, and white elsewhere.
pub(crate) fn black_or_white(level: Level, pixels: &mut [Pixel], black: i32) -> &mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only where `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::black_or_white(pixels, black) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::black_or_white(pixels, black) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_setr_epi8;
        use crate::picture::Pixel;

        fn gray(pixels: &mut [Pixel]) -> &mut [Pixel] {
            // The gray value stands in the first byte of each pixel, alpha in the fourth.
            let spread = v::repeat(_mm_setr_epi8(0, 0, 0, 3, 4, 4, 4, 7, 8, 8, 8, 11, 12, 12, 12, 15));
            let alpha = v::all_32(0xff00_0000_u32.cast_signed());
            let (groups, rest) = pixels.as_chunks_mut::<{ v::BYTES / 4 }>();
            for group in groups {
                let group = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                let c = v::load(group);
                let both = v::xor(v::shift_32(sums(c), 15), v::and(c, alpha));
                v::store(group, v::shuffle_8(both, spread));
            }
            rest
        }

        fn black_or_white(pixels: &mut [Pixel], black: i32) -> &mut [Pixel] {
            let alpha = v::all_32(0xff00_0000_u32.cast_signed());
            // Below zero, and so all ones once the sign is spread, where a sum is above all that are black.
            let most = v::all_32(((black + 1) << 15) - 1);
            let (groups, rest) = pixels.as_chunks_mut::<{ v::BYTES / 4 }>();
            for group in groups {
                let group = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                let c = v::load(group);
                let white = v::shift_unsigned_32(v::shift_32(v::sub_32(most, sums(c)), 31), 8);
                v::store(group, v::xor(white, v::and(c, alpha)));
            }
            rest
        }

        /// Fifteen fraction bits, with the half for rounding.
        #[inline]
        fn sums(c: v::Vector) -> v::Vector {
            let lower_halves = v::all_32(0x00ff_00ff);
            let (red_blue, green) = (v::all_32((3735 << 16) + 9798), v::all_32(19235));
            let (even, odd) = (v::and(c, lower_halves), v::and(v::shift_unsigned_32(c, 8), lower_halves));
            v::dot(v::dot(v::all_32(16384), even, red_blue), odd, green)
        }
    }
}
