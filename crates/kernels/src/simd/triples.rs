//! Conversion between pixels of three bytes and pixels of four bytes, many at once.
//!
//! The conversion to three bytes drops alpha. The conversion to four bytes sets alpha to 255. The caller converts the
//! pixels that are left over.

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

/// Converts whole vectors, from the left. Returns the number of pixels that were converted.
pub(crate) fn to_pixels(level: Level, triples: &[u8], into: &mut [Pixel]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::to_pixels(triples, into) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::to_pixels(triples, into) },
    }
}

/// The inverse of [`to_pixels`].
pub(crate) fn from_pixels(level: Level, pixels: &[Pixel], into: &mut [u8]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::from_pixels(pixels, into) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::from_pixels(pixels, into) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_setr_epi32;
        use crate::picture::Pixel;

        fn to_pixels(triples: &[u8], into: &mut [Pixel]) -> usize {
            let turn = v::repeat(_mm_setr_epi32(0x8002_0100_u32.cast_signed(), 0x8005_0403_u32.cast_signed(), 0x8008_0706_u32.cast_signed(), 0x800b_0a09_u32.cast_signed()));
            let alpha = v::all_32(0xff00_0000_u32.cast_signed());
            let mut done = 0;
            // Reads a whole vector and uses three quarters of it.
            for group in into.as_chunks_mut::<{ v::BYTES / 4 }>().0 {
                let Some(from) = triples[3 * done..].first_chunk() else { break };
                let c = v::shuffle_8(v::permute_32(v::load(from), &v::FOURTHS), turn);
                let to = group.as_flattened_mut().first_chunk_mut().expect("four bytes to a pixel");
                v::store(to, v::xor(c, alpha));
                done += v::BYTES / 4;
            }
            done
        }

        fn from_pixels(pixels: &[Pixel], into: &mut [u8]) -> usize {
            let turn = v::repeat(_mm_setr_epi32(0x0402_0100, 0x0908_0605, 0x0e0d_0c0a, -1));
            let mut done = 0;
            // Writes a whole vector. The next iteration overwrites the last quarter of it.
            for group in pixels.as_chunks::<{ v::BYTES / 4 }>().0 {
                let Some(to) = into[3 * done..].first_chunk_mut() else { break };
                let c = v::load(group.as_flattened().first_chunk().expect("four bytes to a pixel"));
                v::store(to, v::permute_32(v::shuffle_8(c, turn), &v::THIRDS));
                done += v::BYTES / 4;
            }
            done
        }
    }
}
