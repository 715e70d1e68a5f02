//! The two passes of `resample` in vectors, for narrow weights: weighted sums whose taps have different positions for
//! each pixel.
//!
//! The caller keeps the rows and computes the weights. Sums are exact, in 32 bits. Intermediate values are signed, and
//! are stored in the order of pixels.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

use super::{Level, LevelKind};

/// Whether the level has loops that are faster than the scalar loops.
pub(crate) fn suits(level: Level) -> bool {
    level.0 != LevelKind::Baseline
}

/// The first pass over four rows of equal length. `columns` holds the pixel at which the taps of each column begin, and
/// the weights of each column, two per word. `rows` begin at pixel `before` of the source rows and are padded so that
/// whole groups of four pixels can be read. `sums` is padded to an even number of columns.
pub(crate) fn along(
    level: Level,
    rows: &[&[u8]; 4],
    before: usize,
    columns: (&[u32], &[u32]),
    sums: &mut [&mut [u16]; 4],
) {
    match level.0 {
        LevelKind::Baseline => {}
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::along(rows, before, columns, sums) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::along(rows, before, columns, sums) },
    }
}

/// The second pass for one output row. For each word of two weights, `rows` holds the offsets of two rows in `sums`.
/// Rows of sums are padded to whole vectors.
pub(crate) fn down(level: Level, sums: &[u16], rows: &[usize], weights: &[u32], values: &mut [u8]) {
    match level.0 {
        LevelKind::Baseline => {}
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx2 | LevelKind::Avx512 => unsafe { x86::avx2::down(sums, rows, weights, values) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        LevelKind::Avx512Bytes => unsafe { x86::avx512::down(sums, rows, weights, values) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m128i, _mm_setr_epi8};

    /// A shuffle that interleaves the channels of two out of four pixels, and widens them to 16 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn pair(at: i8) -> __m128i {
        let [one, two] = [at, at + 4].map(|first| [first, first + 1, first + 2, first + 3]);
        #[rustfmt::skip]
        return _mm_setr_epi8(
            one[0], -1, two[0], -1, one[1], -1, two[1], -1, one[2], -1, two[2], -1, one[3], -1, two[3], -1,
        );
    }

    super::super::wide::both_widths! { v;
        fn along(rows: &[&[u8]; 4], before: usize, columns: (&[u32], &[u32]), sums: &mut [&mut [u16]; 4]) {
            let (starts, weights) = columns;
            let words = (weights.len() / starts.len().max(1)).max(1);
            let halves = [v::repeat(super::pair(0)), v::repeat(super::pair(8))];
            let mut even = [v::zero(); v::FOUR_ROWS];
            // `one_column` is called at only one place, so that it is inlined. With two columns per iteration, and so
            // two calls, the loop took twice as long.
            for (at, (start, weights)) in starts.iter().zip(weights.chunks_exact(words)).enumerate() {
                let mut one = one_column(rows, 4 * (*start as usize - before), weights, halves);
                if at % 2 == 0 {
                    even = one;
                }
                if at % 2 == 1 || at + 1 == starts.len() {
                    for (odd, even) in one.iter_mut().zip(even) {
                        *odd = v::pack_32(v::shift_32(even, 7), v::shift_32(*odd, 7));
                    }
                    v::store_four_rows(sums, at / 2 * 8, one);
                }
            }
        }

        #[inline]
        fn one_column(
            rows: &[&[u8]; 4],
            at: usize,
            weights: &[u32],
            [left, right]: [v::Vector; 2]
        ) -> [v::Vector; v::FOUR_ROWS] {
            // Subtracts the middle of the range, and adds the half for rounding.
            let mut sums = [v::all_32(64 - (128 << 14)); v::FOUR_ROWS];
            let end = at + 16 * weights.len().div_ceil(2);
            let (a, b) = (rows[0][at..end].as_chunks::<16>().0.iter(), rows[1][at..end].as_chunks::<16>().0);
            let (c, d) = (rows[2][at..end].as_chunks::<16>().0.iter(), rows[3][at..end].as_chunks::<16>().0);
            for (((a, b), (c, d)), weights) in a.zip(b).zip(c.zip(d)).zip(weights.chunks(2)) {
                let pixels = v::four_rows([a, b, c, d]);
                let first = v::all_32(weights[0].cast_signed());
                for (sum, pixels) in sums.iter_mut().zip(pixels) {
                    *sum = v::dot(*sum, v::shuffle_8(pixels, left), first);
                }
                if let [_, second] = weights {
                    let second = v::all_32(second.cast_signed());
                    for (sum, pixels) in sums.iter_mut().zip(pixels) {
                        *sum = v::dot(*sum, v::shuffle_8(pixels, right), second);
                    }
                }
            }
            sums
        }

        fn down(sums: &[u16], rows: &[usize], weights: &[u32], values: &mut [u8]) {
            let rows = rows.as_chunks::<2>().0;
            let (groups, rest) = values.as_chunks_mut::<{ v::BYTES }>();
            let last = v::BYTES * groups.len();
            for (i, values) in groups.iter_mut().enumerate() {
                v::store(values, group(sums, rows, weights, v::BYTES * i));
            }
            if !rest.is_empty() {
                let mut whole = [0; v::BYTES];
                v::store(&mut whole, group(sums, rows, weights, last));
                rest.copy_from_slice(&whole[..rest.len()]);
            }
        }

        #[inline]
        fn group(sums: &[u16], rows: &[[usize; 2]], weights: &[u32], at: usize) -> v::Vector {
            // Adds back the middle of the range, and the half for rounding.
            let mut sum = [v::all_32((128 << 21) + (1 << 20)); 4];
            for ([upper, lower], weights) in rows.iter().zip(weights) {
                let (up, low) = (two_of_sums(sums, upper + at), two_of_sums(sums, lower + at));
                let weights = v::all_32(weights.cast_signed());
                sum[0] = v::dot(sum[0], v::unpack_low_16(up[0], low[0]), weights);
                sum[1] = v::dot(sum[1], v::unpack_high_16(up[0], low[0]), weights);
                sum[2] = v::dot(sum[2], v::unpack_low_16(up[1], low[1]), weights);
                sum[3] = v::dot(sum[3], v::unpack_high_16(up[1], low[1]), weights);
            }
            let low = v::pack_32(v::shift_32(sum[0], 21), v::shift_32(sum[1], 21));
            let high = v::pack_32(v::shift_32(sum[2], 21), v::shift_32(sum[3], 21));
            v::in_turns(v::pack_16(low, high))
        }

        #[inline]
        fn two_of_sums(sums: &[u16], at: usize) -> [v::Vector; 2] {
            let two = sums[at..].first_chunk::<{ v::BYTES }>().expect("rows are padded");
            let (first, second) = two.split_first_chunk().expect("two vectors");
            [v::load_16(first), v::load_16(second.first_chunk().expect("two vectors"))]
        }
    }
}
