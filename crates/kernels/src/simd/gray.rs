//! Grey values of many pixels at once, as grey pixels or as black and white.
//!
//! The result is `(9798 r + 19235 g + 3735 b + 16384) >> 15`. Products of 16-bit numbers are added in pairs. Alpha is
//! kept. The caller computes the pixels that are left over.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

use crate::picture::Pixel;

use super::Level;

/// Makes whole vectors of pixels grey, from the left, and returns the pixels that are left over.
pub(crate) fn gray(level: Level, pixels: &mut [Pixel]) -> &mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::gray(pixels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::gray(pixels) },
    }
}

/// Makes pixels black if their grey value is at most `black`, otherwise white. Returns the pixels that are left over.
pub(crate) fn black_or_white(level: Level, pixels: &mut [Pixel], black: i32) -> &mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
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
            // The grey value is in the first byte of each pixel, alpha in the fourth.
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
            // The difference is negative if the sum exceeds the greatest sum of a black pixel. Copying the sign to all
            // bits then gives white.
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

        /// Grey values with fifteen fraction bits, including the half for rounding.
        #[inline]
        fn sums(c: v::Vector) -> v::Vector {
            let lower_halves = v::all_32(0x00ff_00ff);
            let (red_blue, green) = (v::all_32((3735 << 16) + 9798), v::all_32(19235));
            let (even, odd) = (v::and(c, lower_halves), v::and(v::shift_unsigned_32(c, 8), lower_halves));
            v::dot(v::dot(v::all_32(16384), even, red_blue), odd, green)
        }
    }
}
