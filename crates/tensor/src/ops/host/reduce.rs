//! Sums, means, maxima and minima of floats along an axis. Values are read in parts of 2,048. The values of a part are
//! joined in 64 lanes in f32, and the parts are joined one after another in f64. Indices of maxima come from `arg`.
//!
//! Invariants: a sum has at most 32 roundings in f32 between a value and the total, so the sum is off by at most 16 ulp
//! of the sum of magnitudes. Ten million values near 1 are within 1 ulp of the sum in f64. If a value is NaN, so are
//! the maximum and the minimum, as in `NumPy`. For an empty axis a sum is 0 and a mean is NaN; a maximum or a minimum
//! of an empty axis is refused when the expression is built.

use vramp_kernels::vectorised;

use crate::ops::host::lanes;
use crate::ops::host::rows::{PART, ReadScratch, RowValues};
use crate::ops::host::spread::spread;
use crate::ops::reduction::Reduction;
use crate::ops::shape::Around;

/// Reduces values along an axis into `out`, which has `outer * inner` values.
pub(crate) fn reduce<R: RowValues>(input: &R, around: Around, how: Reduction, out: &mut [f32], threads: usize) {
    assert_eq!(out.len(), around.outer * around.inner, "results of a reduction around {around:?}");
    match how {
        Reduction::Sum | Reduction::Mean => fold::<R, Plus>(input, around, out, threads),
        Reduction::MeanOfSquares => fold::<R, PlusSquare>(input, around, out, threads),
        Reduction::Max => fold::<R, Larger>(input, around, out, threads),
        Reduction::Min => fold::<R, Smaller>(input, around, out, threads),
        Reduction::ArgMax | Reduction::ArgMin => unreachable!("positions are found by `arg`"),
    }
    if matches!(how, Reduction::Mean | Reduction::MeanOfSquares) {
        let count = around.length as f64;
        // The total was already rounded to f32. Dividing the total in f64 and converting the quotient to f32 rounds
        // once more, like a division in f32.
        for value in out {
            *value = (f64::from(*value) / count) as f32;
        }
    }
}

/// The number of values that one total in f64 covers. Rows that are split are always split at multiples of this length,
/// so that results do not depend on the number of threads.
const SEGMENT: usize = 64 * PART;
/// The number of columns that are reduced together: the lanes and totals of the columns take 6 KiB of the L1 cache.
const COLUMNS: usize = 512;
/// The number of lines that are joined in f32, column by column, before the results are added to totals in f64.
const LINES: usize = 32;

trait Join {
    const START: f32;
    /// True if the parts of a long row are joined in f64 lane by lane; false if each part is first reduced to one
    /// value.
    const IN_LANES: bool = true;
    /// Reduces the values of at most one part to one value.
    #[inline(always)]
    fn part(values: &[f32]) -> f32 {
        lanes::fold(values, Self::START, Self::take, Self::join)
    }
    fn take(lane: f32, value: f32) -> f32;
    #[inline(always)]
    fn join(one: f32, two: f32) -> f32 {
        one + two
    }
    #[inline(always)]
    fn total(one: f64, two: f64) -> f64 {
        one + two
    }
}

struct Plus;
struct PlusSquare;
struct Larger;
struct Smaller;

impl Join for Plus {
    // Not +0, because the sum of -0 and -0 is -0.
    const START: f32 = -0.0;
    #[inline(always)]
    fn take(lane: f32, value: f32) -> f32 {
        lane + value
    }
}

impl Join for PlusSquare {
    const START: f32 = 0.0;
    #[inline(always)]
    fn take(lane: f32, value: f32) -> f32 {
        lane + value * value
    }
}

macro_rules! extreme {
    ($name:ident, $start:expr, $beats:tt) => {
        impl Join for $name {
            const START: f32 = $start;
            const IN_LANES: bool = false;
            #[inline(always)]
            fn part(values: &[f32]) -> f32 {
                lanes::best(values, Self::START, |one, two| one $beats two).unwrap_or(f32::NAN)
            }
            #[inline(always)]
            fn take(lane: f32, value: f32) -> f32 {
                if (value $beats lane) | value.is_nan() { value } else { lane }
            }
            #[inline(always)]
            fn join(one: f32, two: f32) -> f32 {
                Self::take(one, two)
            }
            #[inline(always)]
            fn total(one: f64, two: f64) -> f64 {
                if (two $beats one) | two.is_nan() { two } else { one }
            }
        }
    };
}

extreme!(Larger, f32::NEG_INFINITY, >);
extreme!(Smaller, f32::INFINITY, <);

fn fold<R: RowValues, J: Join>(input: &R, around: Around, out: &mut [f32], threads: usize) {
    let Around { outer, length, inner } = around;
    let values = outer * length * inner;
    if values == 0 {
        out.fill(J::START + 0.0);
    } else if inner == 1 && length > SEGMENT {
        let segments = length.div_ceil(SEGMENT);
        let mut totals = vec![0.0_f64; outer * segments];
        spread(&mut totals, 1, values, threads, |first, totals| {
            for (at, total) in totals.iter_mut().enumerate() {
                let (row, segment) = ((first + at) / segments, (first + at) % segments * SEGMENT);
                let len = SEGMENT.min(length - segment);
                *total = vectorised!(fold_segment::<R, J>(input, row * length + segment, len));
            }
        });
        for (out, totals) in out.iter_mut().zip(totals.chunks(segments)) {
            *out = totals.iter().copied().reduce(J::total).unwrap_or(f64::from(J::START)) as f32;
        }
    } else if inner == 1 {
        spread(out, 1, values, threads, |first, out| {
            vectorised!(fold_rows::<R, J>(input, length, first * length, out));
        });
    } else if outer > 1 || inner <= COLUMNS {
        spread(out, inner, values, threads, |first, out| {
            // All slabs share one scratch: clearing a scratch for each slab would make small slabs a fifth slower.
            let mut scratch = ReadScratch::new();
            for (at, out) in out.chunks_mut(inner).enumerate() {
                let start = (first + at) * length * inner;
                vectorised!(fold_columns::<R, J>(input, start, length, inner, 0, out, &mut scratch));
            }
        });
    } else {
        spread(out, 1, values, threads, |first, out| {
            vectorised!(fold_columns::<R, J>(input, 0, length, inner, first, out, &mut ReadScratch::new()));
        });
    }
}

/// The total of one segment. Each lane has a total in f64 that continues from part to part, and these totals are joined
/// at the end: joining the lanes after each part would make means of squares a tenth slower.
#[inline(always)]
fn fold_segment<R: RowValues, J: Join>(input: &R, start: usize, len: usize) -> f64 {
    let mut scratch = ReadScratch::new();
    let mut totals = [f64::from(J::START); lanes::WIDTH];
    let mut at = 0;
    while at < len {
        let part = input.part(start + at, PART.min(len - at), &mut scratch);
        if !J::IN_LANES {
            totals[0] = J::total(totals[0], f64::from(J::part(part)));
            at += part.len();
            continue;
        }
        let lanes = lanes::fold_to_lanes(part, J::START, J::take, J::join);
        for (total, lane) in totals.iter_mut().zip(lanes) {
            *total = J::total(*total, f64::from(lane));
        }
        at += part.len();
    }
    std::hint::black_box(totals).into_iter().fold(f64::from(J::START), J::total)
}

/// Reduces rows one after another; several short rows are read as one part.
#[inline(always)]
fn fold_rows<R: RowValues, J: Join>(input: &R, length: usize, start: usize, out: &mut [f32]) {
    if length > PART {
        for (row, out) in out.iter_mut().enumerate() {
            *out = fold_segment::<R, J>(input, start + row * length, length) as f32;
        }
        return;
    }
    let mut scratch = ReadScratch::new();
    let rows = PART / length;
    let mut start = start;
    for out in out.chunks_mut(rows) {
        let part = input.part(start, out.len() * length, &mut scratch);
        start += part.len();
        for (out, row) in out.iter_mut().zip(part.chunks_exact(length)) {
            *out = J::part(row);
        }
    }
}

/// Reduces the columns of lines of `inner` values: as many columns as `out` has values, from column `first` on.
#[inline(always)]
fn fold_columns<R: RowValues, J: Join>(
    input: &R,
    start: usize,
    length: usize,
    inner: usize,
    first: usize,
    out: &mut [f32],
    scratch: &mut [f32],
) {
    if inner <= COLUMNS {
        // Several short lines are treated as one long line, and the columns that belong together are joined at the end.
        let repeats = (COLUMNS / inner).min(length);
        let mut totals = [f64::from(J::START); COLUMNS];
        let (lines, rest) = (length / repeats, length % repeats);
        let long = repeats * inner;
        fold_block::<R, J>(input, start, long, lines, &mut totals[..long], scratch);
        let (behind, rest) = (start + lines * long, rest * inner);
        fold_block::<R, J>(input, behind, rest, usize::from(rest > 0), &mut totals[..rest], scratch);
        let (first, others) = totals.split_at_mut(inner);
        for other in others.chunks_exact(inner).take(repeats - 1) {
            first.iter_mut().zip(other).for_each(|(total, other)| *total = J::total(*total, *other));
        }
        out.iter_mut().zip(first).for_each(|(out, total)| *out = *total as f32);
        return;
    }
    for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
        let mut totals = [f64::from(J::START); COLUMNS];
        let totals = &mut totals[..out.len()];
        fold_block::<R, J>(input, start + first + block * COLUMNS, inner, length, totals, scratch);
        out.iter_mut().zip(totals).for_each(|(out, total)| *out = *total as f32);
    }
}

/// Joins `lines` lines, `apart` values apart, into `totals`, which has one total per column.
#[inline(always)]
fn fold_block<R: RowValues, J: Join>(
    input: &R,
    start: usize,
    apart: usize,
    lines: usize,
    totals: &mut [f64],
    scratch: &mut [f32],
) {
    let width = totals.len();
    // Contiguous lines are requested several at a time.
    let at_once = if apart == width { PART / width.max(1) } else { 1 };
    let mut line = 0;
    while line < lines {
        let end = lines.min(line + LINES);
        let mut lanes = [J::START; COLUMNS];
        let lanes = &mut lanes[..width];
        while line < end {
            let few = at_once.min(end - line);
            let part = input.part(start + line * apart, few * width, scratch);
            for values in part.chunks_exact(width) {
                for (lane, value) in lanes.iter_mut().zip(values) {
                    *lane = J::take(*lane, *value);
                }
            }
            line += few;
        }
        totals.iter_mut().zip(lanes).for_each(|(total, lane)| *total = J::total(*total, f64::from(*lane)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::host::rows::Computed;

    const ALL: [Reduction; 5] =
        [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::MeanOfSquares];

    fn values(count: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919) % 1013) as f32 / 1013.0 - 0.25).collect()
    }

    fn plainly(input: &[f32], around: Around, how: Reduction) -> Vec<f64> {
        let Around { outer, length, inner } = around;
        let mut out = Vec::new();
        for o in 0..outer {
            for i in 0..inner {
                let column = (0..length).map(|l| f64::from(input[(o * length + l) * inner + i]));
                out.push(match how {
                    Reduction::Sum => column.sum(),
                    Reduction::Mean => column.sum::<f64>() / length as f64,
                    Reduction::Max => column.fold(f64::NEG_INFINITY, f64::max),
                    Reduction::Min => column.fold(f64::INFINITY, f64::min),
                    Reduction::MeanOfSquares => column.map(|x| x * x).sum::<f64>() / length as f64,
                    Reduction::ArgMax | Reduction::ArgMin => unreachable!("positions are tested in `arg`"),
                });
            }
        }
        out
    }

    #[test]
    fn every_shape_gives_what_plain_loops_give_on_any_number_of_threads() {
        for (outer, length, inner) in [
            (1, 1, 1),
            (3, 5, 1),
            (2, 64, 1),
            (7, 1000, 1),
            (2, 5000, 1),
            (1, 300_000, 1),
            (300, 3, 1),
            (4, 9, 3),
            (1, 70_000, 3),
            (2, 33, 512),
            (1, 40, 1500),
            (2, 40, 1500),
            (1, 100, 700),
        ] {
            let around = Around { outer, length, inner };
            let input = values(outer * length * inner);
            for how in ALL {
                let mut out = vec![0.0; outer * inner];
                reduce(&input.as_slice(), around, how, &mut out, 1);
                for (got, want) in out.iter().zip(plainly(&input, around, how)) {
                    assert!(
                        (f64::from(*got) - want).abs() <= want.abs() * 3e-7 + 1e-6,
                        "{around:?} {how:?} {got} {want}"
                    );
                }
                let mut spread = vec![0.0; outer * inner];
                reduce(&input.as_slice(), around, how, &mut spread, 3);
                assert_eq!(out, spread, "{around:?} {how:?} on three threads");
                let halves: Vec<f32> = input.iter().map(|x| x * 2.0).collect();
                reduce(&Computed(&halves, |x| x * 0.5), around, how, &mut spread, 1);
                assert_eq!(out, spread, "{around:?} {how:?} computed");
            }
        }
    }

    #[test]
    fn ten_million_values_near_one_are_summed_to_the_last_place() {
        let input: Vec<f32> =
            (0..10_000_000_u32).map(|at| 1.0 + (at.wrapping_mul(2_654_435_761) >> 9) as f32 * 1e-8).collect();
        let exact: f64 = input.iter().map(|x| f64::from(*x)).sum();
        let mut sum = [0.0];
        reduce(&input.as_slice(), Around { outer: 1, length: input.len(), inner: 1 }, Reduction::Sum, &mut sum, 1);
        assert!((f64::from(sum[0]) - exact).abs() <= 1.0, "{} and {exact}: 1 is an ulp of ten million", sum[0]);
    }

    #[test]
    fn a_nan_anywhere_is_the_largest_and_the_smallest() {
        for (around, at) in [
            (Around { outer: 1, length: 200, inner: 1 }, 150),
            (Around { outer: 1, length: 5, inner: 1 }, 0),
            (Around { outer: 1, length: 90, inner: 2 }, 31),
            (Around { outer: 1, length: 6000, inner: 1 }, 17),
        ] {
            let mut input = values(around.length * around.inner);
            input[at] = f32::NAN;
            for how in [Reduction::Max, Reduction::Min] {
                let mut out = vec![0.0; around.inner];
                reduce(&input.as_slice(), around, how, &mut out, 1);
                assert_eq!(out.iter().filter(|x| x.is_nan()).count(), 1, "{around:?}");
                assert!(out[at % around.inner].is_nan());
            }
        }
    }

    #[test]
    fn nothing_sums_to_zero_and_has_no_mean() {
        let around = Around { outer: 2, length: 0, inner: 3 };
        let mut out = [7.0; 6];
        reduce(&[].as_slice(), around, Reduction::Sum, &mut out, 1);
        assert_eq!(out, [0.0; 6]);
        reduce(&[].as_slice(), around, Reduction::Mean, &mut out, 1);
        assert!(out.iter().all(|x| x.is_nan()));
    }
}
