//! Indices of the largest or smallest values along an axis. The values themselves come from `reduce`.
//!
//! Invariant: the result is the index of the first NaN if the axis has a NaN, and otherwise the smallest index among
//! equal values, as in `NumPy`.

use vramp_kernels::vectorised;

use crate::ops::host::lanes;
use crate::ops::host::rows::{PART, ReadScratch, RowValues};
use crate::ops::host::spread::spread;
use crate::ops::shape::Around;

/// Writes the indices of the largest values along a non-empty axis to `out`, which has `outer * inner` elements.
pub(crate) fn argmax<R: RowValues>(input: &R, around: Around, out: &mut [u32], threads: usize) {
    search::<R, true>(input, around, out, threads);
}

/// Writes the indices of the smallest values along a non-empty axis to `out`, which has `outer * inner` elements.
pub(crate) fn argmin<R: RowValues>(input: &R, around: Around, out: &mut [u32], threads: usize) {
    search::<R, false>(input, around, out, threads);
}

/// The number of columns that are searched together.
const COLUMNS: usize = 1024;

fn search<R: RowValues, const LARGEST: bool>(input: &R, around: Around, out: &mut [u32], threads: usize) {
    let Around { outer, length, inner } = around;
    assert_eq!(out.len(), outer * inner, "positions around {around:?}");
    assert!(length > 0 || out.is_empty(), "an empty axis has no largest value");
    spread(out, inner, outer * length * inner, threads, |first, out| {
        if inner == 1 {
            return vectorised!(search_rows::<R, LARGEST>(input, first * length, length, out));
        }
        for (at, out) in out.chunks_mut(inner).enumerate() {
            for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
                let start = (first + at) * length * inner + block * COLUMNS;
                vectorised!(search_columns::<R, LARGEST>(input, start, length, inner, out));
            }
        }
    });
}

#[inline(always)]
fn search_rows<R: RowValues, const LARGEST: bool>(input: &R, start: usize, length: usize, out: &mut [u32]) {
    let better = |value: f32, best: f32| if LARGEST { value > best } else { value < best };
    // All rows share one scratch: clearing a scratch for each row of 1024 values took longer than the search.
    let mut scratch = ReadScratch::new();
    for (row, out) in out.iter_mut().enumerate() {
        let (mut best, mut place) = (0.0, 0);
        let mut at = 0;
        while at < length {
            let part = input.part(start + row * length + at, PART.min(length - at), &mut scratch);
            let Some(found) = lanes::best(part, part[0], better) else {
                place = at + first_of(part, f32::is_nan);
                break;
            };
            // The part is searched for the index only if it has a better value than all parts before.
            if at == 0 || better(found, best) {
                best = found;
                place = at + first_of(part, |value| value == found);
            }
            at += part.len();
        }
        *out = place as u32;
    }
}

/// The index of the first matching value; at least one value must match. Computes the minimum index of a match among
/// 256 values at a time, without a branch: testing value by value takes twice as long.
#[inline(always)]
fn first_of(values: &[f32], is: impl Fn(f32) -> bool) -> usize {
    const AT_ONCE: usize = 256;
    let (wholes, rest) = values.as_chunks::<AT_ONCE>();
    for (number, whole) in wholes.iter().enumerate() {
        let mut least = AT_ONCE as u32;
        for at in 0..AT_ONCE as u32 {
            least = least.min(if is(whole[at as usize]) { at } else { AT_ONCE as u32 });
        }
        if least < AT_ONCE as u32 {
            return number * AT_ONCE + least as usize;
        }
    }
    wholes.len() * AT_ONCE + rest.iter().position(|value| is(*value)).unwrap_or(0)
}

/// True if `value` replaces `best`, which comes earlier in the row.
#[inline(always)]
fn beats<const LARGEST: bool>(value: f32, best: f32) -> bool {
    let better = if LARGEST { value > best } else { value < best };
    better | (value.is_nan() & !best.is_nan())
}

#[inline(always)]
fn search_columns<R: RowValues, const LARGEST: bool>(
    input: &R,
    start: usize,
    length: usize,
    inner: usize,
    out: &mut [u32],
) {
    let mut scratch = ReadScratch::new();
    let mut best = [0.0; COLUMNS];
    let best = &mut best[..out.len()];
    best.copy_from_slice(input.part(start, out.len(), &mut scratch));
    out.fill(0);
    for line in 1..length {
        let values = input.part(start + line * inner, out.len(), &mut scratch);
        for ((value, best), place) in values.iter().zip(best.iter_mut()).zip(out.iter_mut()) {
            let wins = beats::<LARGEST>(*value, *best);
            *best = if wins { *value } else { *best };
            *place = if wins { line as u32 } else { *place };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(input: &[f32], around: Around) -> (Vec<u32>, Vec<u32>) {
        let mut out = (vec![9; around.outer * around.inner], vec![9; around.outer * around.inner]);
        argmax(&input, around, &mut out.0, 2);
        argmin(&input, around, &mut out.1, 1);
        out
    }

    #[test]
    fn the_first_of_equals_is_found_along_any_axis() {
        let input = [1.0, 5.0, 3.0, 5.0, 1.0, 3.0];
        assert_eq!(found(&input, Around { outer: 1, length: 6, inner: 1 }), (vec![1], vec![0]));
        assert_eq!(found(&input, Around { outer: 2, length: 3, inner: 1 }), (vec![1, 0], vec![0, 1]));
        assert_eq!(found(&input, Around { outer: 1, length: 2, inner: 3 }), (vec![1, 0, 0], vec![0, 1, 0]));
    }

    #[test]
    fn long_rows_are_searched_to_their_end() {
        let mut input: Vec<f32> = (0..9000_u16).map(|at| f32::from(at % 100)).collect();
        assert_eq!(found(&input, Around { outer: 1, length: 9000, inner: 1 }), (vec![99], vec![0]));
        input[8999] = 100.0;
        input[8998] = -1.0;
        assert_eq!(found(&input, Around { outer: 1, length: 9000, inner: 1 }), (vec![8999], vec![8998]));
        assert_eq!(found(&input, Around { outer: 1, length: 3000, inner: 3 }).0[2], 2999);
    }

    #[test]
    fn the_first_nan_wins() {
        let mut input = vec![f32::INFINITY; 5000];
        input[2500] = f32::NAN;
        input[4000] = f32::NAN;
        assert_eq!(found(&input, Around { outer: 1, length: 5000, inner: 1 }), (vec![2500], vec![2500]));
        assert_eq!(found(&input, Around { outer: 1, length: 2500, inner: 2 }), (vec![1250, 0], vec![1250, 0]));
        assert_eq!(found(&[f32::NEG_INFINITY; 3], Around { outer: 1, length: 3, inner: 1 }), (vec![0], vec![0]));
    }
}
