//! Looks up red, green and blue of many pixels at once in a table of 256 bytes, by permuting parts of the table.
//!
//! Alpha is kept. The caller looks up the pixels that are left over.

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

/// Looks up whole vectors of pixels, from the left, and returns the pixels that are left over.
pub(crate) fn look_up<'a>(level: Level, pixels: &'a mut [Pixel], table: &[u8; 256]) -> &'a mut [Pixel] {
    match level.0 {
        super::LevelKind::Baseline => pixels,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::by_sixteens(pixels, table) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::by_halves(pixels, table) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_blendv_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_subs_epi8, _mm512_mask_blend_epi8,
        _mm512_movepi8_mask, _mm512_permutex2var_epi8,
    };

    use crate::picture::Pixel;
    use crate::simd::wide::{avx2, avx512};

    /// A mask of the red, green and blue bytes.
    const COLORS: u64 = 0x7777_7777_7777_7777;

    /// Two permutations look up one entry in each half of the table, and the index's highest bit selects one of the two
    /// entries.
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn by_halves<'a>(pixels: &'a mut [Pixel], table: &[u8; 256]) -> &'a mut [Pixel] {
        let quarters = table.as_chunks::<64>().0;
        let (first, second) = (avx512::load(&quarters[0]), avx512::load(&quarters[1]));
        let (third, fourth) = (avx512::load(&quarters[2]), avx512::load(&quarters[3]));
        let (groups, rest) = pixels.as_chunks_mut::<16>();
        for group in groups {
            let v = avx512::load(group.as_flattened().first_chunk().expect("16 pixels are 64 bytes"));
            let low = _mm512_permutex2var_epi8(first, v, second);
            let high = _mm512_permutex2var_epi8(third, v, fourth);
            let found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
            let kept = _mm512_mask_blend_epi8(COLORS, v, found);
            avx512::store(group.as_flattened_mut().first_chunk_mut().expect("16 pixels are 64 bytes"), kept);
        }
        rest
    }

    /// Each half of the table takes eight permutations, each of which looks up one of sixteen bytes. A byte is the XOR
    /// of a table entry and the entry 16 before it in the same half, if there is one, so that the XOR of all lookups is
    /// the wanted entry. The index decreases by 16 after each lookup. A negative index stays negative and looks up
    /// zeros.
    #[target_feature(enable = "avx2")]
    pub(super) fn by_sixteens<'a>(pixels: &'a mut [Pixel], table: &[u8; 256]) -> &'a mut [Pixel] {
        let mut steps = [[0; 32]; 16];
        for i in 0..256 {
            let before = if i % 128 < 16 { 0 } else { table[i - 16] };
            steps[i / 16][i % 16] = table[i] ^ before;
            steps[i / 16][16 + i % 16] = table[i] ^ before;
        }
        let (sixteen, top) = (_mm256_set1_epi8(16), _mm256_set1_epi8(-128));
        let alpha = avx2::all_32(0xff00_0000_u32.cast_signed());
        let (groups, rest) = pixels.as_chunks_mut::<8>();
        for group in groups {
            let v = avx2::load(group.as_flattened().first_chunk().expect("8 pixels are 32 bytes"));
            let (mut low, mut high) = (v, avx2::xor(v, top));
            let (mut found, mut other) = (avx2::zero(), avx2::zero());
            for i in 0..8 {
                found = avx2::xor(found, avx2::shuffle_8(avx2::load(&steps[i]), low));
                other = avx2::xor(other, avx2::shuffle_8(avx2::load(&steps[8 + i]), high));
                low = _mm256_subs_epi8(low, sixteen);
                high = _mm256_subs_epi8(high, sixteen);
            }
            let kept = _mm256_blendv_epi8(_mm256_or_si256(found, other), v, alpha);
            avx2::store(group.as_flattened_mut().first_chunk_mut().expect("8 pixels are 32 bytes"), kept);
        }
        rest
    }
}
