//! Bilinear mixes of two neighbours along a row and of two rows, and means of four pixels, in vectors of 16-bit
//! numbers.
//!
//! The caller chooses the neighbours. When rows are mixed, the caller also mixes the last pixels, which do not fill a
//! vector.
//!
//! Values a and b are mixed with weights e and f, whose sum is 4096. Along a row the result is `(a e + b f + 16) >> 5`,
//! between rows `(a e + b f + 2^18) >> 19`. Means are rounded half up.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

#[cfg(target_arch = "x86_64")]
use super::wide;
use super::{Level, LevelKind};
use crate::picture::Pixel;

/// Number of pixels that are mixed at once along a row. Callers pass whole groups of this size. `None` if the level has
/// no such loop.
pub(crate) fn group(level: Level) -> Option<usize> {
    match level.0 {
        LevelKind::Baseline => None,
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => Some(wide::avx2::BYTES / 8),
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => Some(wide::avx512::BYTES / 8),
    }
}

/// The columns of a row to be mixed, in whole groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BilinearColumns<'a> {
    /// For each group, the start of its window in the row. A window has twice as many pixels as a group.
    pub windows: &'a [u32],
    /// For each column, the positions of both neighbours in the window.
    pub neighbours: &'a [[u32; 2]],
    /// For each column, the same word twice: weight e in the lower half of the word, weight f in the upper half.
    pub weights: &'a [[u32; 2]],
}

/// Mixes neighbours along a row.
pub(crate) fn along(level: Level, row: &[u8], columns: BilinearColumns<'_>, mixed: &mut [u16]) {
    match level.0 {
        LevelKind::Baseline => {}
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::along(row, columns, mixed) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::along(row, columns, mixed) },
    }
}

/// Mixes whole vectors of two rows, from the left. Returns the number of values that were computed.
pub(crate) fn down(level: Level, top: &[u16], bottom: &[u16], weights: u32, levels: &mut [u8]) -> usize {
    match level.0 {
        LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::down(top, bottom, weights, levels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::down(top, bottom, weights, levels) },
    }
}

/// Computes means of four pixels, two in each row, in whole vectors from the left. Returns the number of pixels that
/// were computed.
pub(crate) fn halve(level: Level, top: &[Pixel], bottom: &[Pixel], pixels: &mut [Pixel]) -> usize {
    match level.0 {
        LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::halve(top, bottom, pixels) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::halve(top, bottom, pixels) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::arch::x86_64::_mm_setr_epi8;
        use crate::picture::Pixel;
        use crate::simd::bilinear::BilinearColumns;

        fn along(row: &[u8], columns: BilinearColumns<'_>, mixed: &mut [u16]) {
            // Interleaves the channels of two neighbours. 16 bytes hold two pairs of neighbours.
            let beside = v::repeat(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
            let (zero, half) = (v::zero(), v::all_32(16));
            let neighbours = columns.neighbours.as_flattened().as_chunks::<{ v::BYTES / 4 }>().0;
            let weights = columns.weights.as_flattened().as_chunks::<{ v::BYTES / 4 }>().0;
            let groups = columns.windows.iter().zip(neighbours).zip(weights);
            for (((window, neighbours), weights), mixed) in groups.zip(mixed.as_chunks_mut().0) {
                let window = row[4 * *window as usize..].first_chunk().expect("windows are within the row");
                let pairs = v::choose_32(v::load(window), v::load_32(neighbours));
                let (both, weights) = (v::shuffle_8(pairs, beside), v::load_32(weights));
                let first = v::dot(half, v::unpack_low_8(both, zero), v::first_of_two(weights));
                let second = v::dot(half, v::unpack_high_8(both, zero), v::second_of_two(weights));
                v::store_16(mixed, v::pack_32(v::shift_32(first, 5), v::shift_32(second, 5)));
            }
        }

        fn down(top: &[u16], bottom: &[u16], weights: u32, levels: &mut [u8]) -> usize {
            let weights = v::all_32(weights.cast_signed());
            let (groups, mut done) = (levels.as_chunks_mut::<{ v::BYTES }>().0, 0);
            let (tops, bottoms) = (top.as_chunks::<{ v::BYTES / 2 }>().0, bottom.as_chunks().0);
            let rows = tops.as_chunks::<2>().0.iter().zip(bottoms.as_chunks::<2>().0);
            for (levels, (top, bottom)) in groups.iter_mut().zip(rows) {
                let first = between(&top[0], &bottom[0], weights);
                let second = between(&top[1], &bottom[1], weights);
                v::store(levels, v::in_turns(v::pack_16(first, second)));
                done += v::BYTES;
            }
            done
        }

        /// Not a closure, because closures are not compiled for these instructions and would not be inlined.
        #[inline]
        fn between(top: &[u16; v::BYTES / 2], bottom: &[u16; v::BYTES / 2], weights: v::Vector) -> v::Vector {
            let (top, bottom, half) = (v::load_16(top), v::load_16(bottom), v::all_32(1 << 18));
            let low = v::dot(half, v::unpack_low_16(top, bottom), weights);
            let high = v::dot(half, v::unpack_high_16(top, bottom), weights);
            v::pack_32(v::shift_32(low, 19), v::shift_32(high, 19))
        }

        #[inline]
        fn means(beside: v::Vector, top: &[u8; v::BYTES], bottom: &[u8; v::BYTES]) -> v::Vector {
            let ones = v::all_16(0x0101);
            let top = v::madd_8(v::shuffle_8(v::load(top), beside), ones);
            let bottom = v::madd_8(v::shuffle_8(v::load(bottom), beside), ones);
            // The instruction computes `(x y + 2^14) >> 15`.
            v::mul_round_16(v::add_16(top, bottom), v::all_16(1 << 13))
        }

        fn halve(top: &[Pixel], bottom: &[Pixel], pixels: &mut [Pixel]) -> usize {
            let rows = top.as_flattened().as_chunks::<{ v::BYTES }>().0.as_chunks::<2>().0.iter();
            let rows = rows.zip(bottom.as_flattened().as_chunks::<{ v::BYTES }>().0.as_chunks::<2>().0);
            let groups = pixels.as_flattened_mut().as_chunks_mut::<{ v::BYTES }>().0;
            let done = groups.len().min(rows.len());
            let beside = v::repeat(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
            for ((top, bottom), to) in rows.zip(groups) {
                let first = means(beside, &top[0], &bottom[0]);
                let second = means(beside, &top[1], &bottom[1]);
                v::store(to, v::in_turns(v::pack_16(first, second)));
            }
            done * v::BYTES / 4
        }
    }
}
