//! Softmax and log-softmax along any axis. A row of up to 2,048 values stays in the L1 cache from the first read to the
//! result.
//!
//! Invariants: the maximum is subtracted first, so that nothing overflows. For -Inf, softmax is 0 and log-softmax is
//! -Inf. The results of a row with a NaN or +Inf, or with only -Inf, are all NaN, as in the formula.

use vramp_kernels::vectorised;

use crate::ops::host::lanes;
use crate::ops::host::math;
use crate::ops::host::rows::{PART, ReadScratch, RowValues};
use crate::ops::host::spread::spread;
use crate::ops::shape::Around;

/// Writes e^x / sum of e^x along an axis to `out`, which has as many values as the input.
pub(crate) fn softmax<R: RowValues>(input: &R, around: Around, out: &mut [f32], threads: usize) {
    shares::<R, false>(input, around, out, threads);
}

/// Writes log (e^x / sum of e^x) along an axis to `out`, which has as many values as the input.
pub(crate) fn log_softmax<R: RowValues>(input: &R, around: Around, out: &mut [f32], threads: usize) {
    shares::<R, true>(input, around, out, threads);
}

/// The number of lines whose exponentials are summed in f32 before the sum is added to a total in f64.
const SUMMED: usize = 256;

/// The number of columns that are computed together.
const COLUMNS: usize = 512;

fn shares<R: RowValues, const LOG: bool>(input: &R, around: Around, out: &mut [f32], threads: usize) {
    let Around { outer, length, inner } = around;
    assert_eq!(out.len(), outer * length * inner, "shares around {around:?}");
    let values = out.len();
    spread(out, length * inner, values, threads, |first, out| {
        let start = first * length * inner;
        if inner == 1 {
            vectorised!(FUSED => share_rows::<R, LOG, FUSED>(input, start, length, out));
        } else {
            for (at, out) in out.chunks_mut(length * inner).enumerate() {
                vectorised!(FUSED => share_columns::<R, LOG, FUSED>(input, start + at * length * inner, length, inner, out));
            }
        }
    });
}

#[inline(always)]
fn share_rows<R: RowValues, const LOG: bool, const FUSED: bool>(
    input: &R,
    start: usize,
    length: usize,
    out: &mut [f32],
) {
    let (mut scratch, mut room) = (ReadScratch::new(), ReadScratch::new());
    if length > PART {
        for (row, out) in out.chunks_mut(length).enumerate() {
            // The row is copied to the output first and processed there.
            let mut largest = f32::NEG_INFINITY;
            for (at, out) in out.chunks_mut(PART).enumerate() {
                let part = input.part(start + row * length + at * PART, out.len(), &mut scratch);
                out.copy_from_slice(part);
                largest = larger(largest, max(part));
            }
            let mut sum = 0.0_f64;
            for out in out.chunks_mut(PART) {
                sum += f64::from(if LOG {
                    shift::<FUSED>(out, largest, &mut room)
                } else {
                    exp_in_place::<FUSED>(out, largest)
                });
            }
            finish::<LOG>(out, sum as f32);
        }
        return;
    }
    let rows = PART / length;
    for (at, out) in out.chunks_mut(rows * length).enumerate() {
        let part = input.part(start + at * rows * length, out.len(), &mut scratch);
        for (row, out) in part.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            let largest = max(row);
            let sum = if LOG {
                out.copy_from_slice(row);
                shift::<FUSED>(out, largest, &mut room)
            } else {
                exp_into::<FUSED>(row, out, largest)
            };
            finish::<LOG>(out, sum);
        }
    }
}

#[inline(always)]
fn larger(one: f32, two: f32) -> f32 {
    if two > one { two } else { one }
}

/// The maximum, ignoring NaN; the later subtraction propagates NaN.
#[inline(always)]
fn max(values: &[f32]) -> f32 {
    lanes::fold(values, f32::NEG_INFINITY, larger, larger)
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    lanes::fold(values, 0.0, |lane, value| lane + value, |one, two| one + two)
}

/// Writes e^(x - largest) for each x of the row to `out`, and returns the sum.
#[inline(always)]
fn exp_into<const FUSED: bool>(row: &[f32], out: &mut [f32], largest: f32) -> f32 {
    for (out, value) in out.iter_mut().zip(row) {
        *out = math::exp_of_nonpositive::<FUSED>(*value - largest);
    }
    sum(out)
}

#[inline(always)]
fn exp_in_place<const FUSED: bool>(row: &mut [f32], largest: f32) -> f32 {
    for value in row.iter_mut() {
        *value = math::exp_of_nonpositive::<FUSED>(*value - largest);
    }
    sum(row)
}

/// Subtracts `largest` in place. Returns the sum of the exponentials of the differences; `room` is scratch memory for
/// the exponentials.
#[inline(always)]
fn shift<const FUSED: bool>(row: &mut [f32], largest: f32, room: &mut [f32]) -> f32 {
    let room = &mut room[..row.len()];
    for (value, share) in row.iter_mut().zip(room.iter_mut()) {
        *value -= largest;
        *share = math::exp_of_nonpositive::<FUSED>(*value);
    }
    sum(room)
}

#[inline(always)]
fn finish<const LOG: bool>(row: &mut [f32], sum: f32) {
    let (factor, less) = (1.0 / sum, math::log(sum));
    for value in row {
        *value = if LOG { *value - less } else { *value * factor };
    }
}

/// Softmax down the columns of one slab, which has `length` lines of `inner` values.
#[inline(always)]
fn share_columns<R: RowValues, const LOG: bool, const FUSED: bool>(
    input: &R,
    start: usize,
    length: usize,
    inner: usize,
    out: &mut [f32],
) {
    let mut scratch = ReadScratch::new();
    let (mut largest, mut sums, mut totals) = ([0.0; COLUMNS], [0.0; COLUMNS], [0.0; COLUMNS]);
    let mut first = 0;
    while first < inner {
        let width = COLUMNS.min(inner - first);
        let (largest, sums, totals) = (&mut largest[..width], &mut sums[..width], &mut totals[..width]);
        largest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        totals.fill(0.0_f64);
        for line in 0..length {
            let at = line * inner + first;
            let values = input.part(start + at, width, &mut scratch);
            out[at..at + width].copy_from_slice(values);
            largest.iter_mut().zip(values).for_each(|(most, value)| *most = larger(*most, *value));
        }
        for line in 0..length {
            let out = &mut out[line * inner + first..][..width];
            for ((out, most), sum) in out.iter_mut().zip(largest.iter()).zip(sums.iter_mut()) {
                let shifted = *out - most;
                let share = math::exp_of_nonpositive::<FUSED>(shifted);
                *sum += share;
                *out = if LOG { shifted } else { share };
            }
            // The f32 sum is added to the total here, before the sum is so large that small addends are lost.
            if line % SUMMED == SUMMED - 1 || line + 1 == length {
                for (total, sum) in totals.iter_mut().zip(sums.iter_mut()) {
                    *total += f64::from(std::mem::take(sum));
                }
            }
        }
        for (sum, total) in sums.iter_mut().zip(totals.iter()) {
            let total = *total as f32;
            *sum = if LOG { math::log(total) } else { 1.0 / total };
        }
        for line in 0..length {
            let out = &mut out[line * inner + first..][..width];
            out.iter_mut().zip(sums.iter()).for_each(|(out, sum)| *out = if LOG { *out - sum } else { *out * sum });
        }
        first += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::host::rows::Computed;

    fn values(count: usize) -> Vec<f32> {
        (0..count).map(|at| ((at * 7919) % 1013) as f32 / 50.0 - 10.0).collect()
    }

    #[test]
    fn every_shape_gives_what_the_formula_gives_on_any_number_of_threads() {
        for (outer, length, inner) in
            [(1, 1, 1), (5, 3, 1), (3, 100, 1), (70, 1024, 1), (2, 5000, 1), (2, 7, 3), (2, 40, 600), (3, 1, 5)]
        {
            let around = Around { outer, length, inner };
            let input = values(outer * length * inner);
            let (mut out, mut logs) = (vec![0.0; input.len()], vec![0.0; input.len()]);
            softmax(&input.as_slice(), around, &mut out, 1);
            log_softmax(&input.as_slice(), around, &mut logs, 1);
            for o in 0..outer {
                for i in 0..inner {
                    let at = |l: usize| (o * length + l) * inner + i;
                    let largest = (0..length).map(|l| input[at(l)]).fold(f32::NEG_INFINITY, f32::max);
                    let exps: Vec<f64> = (0..length).map(|l| f64::from(input[at(l)] - largest).exp()).collect();
                    let sum: f64 = exps.iter().sum();
                    for l in 0..length {
                        let share = exps[l] / sum;
                        assert!((f64::from(out[at(l)]) - share).abs() <= share * 1e-6, "{around:?}");
                        assert!((f64::from(logs[at(l)]) - share.ln()).abs() <= 4e-6, "{around:?}");
                    }
                }
            }
            let mut again = vec![0.0; input.len()];
            softmax(&input.as_slice(), around, &mut again, 3);
            assert_eq!(out, again, "{around:?} on three threads");
            let doubled: Vec<f32> = input.iter().map(|x| x * 2.0).collect();
            softmax(&Computed(&doubled, |x| x * 0.5), around, &mut again, 1);
            assert_eq!(out, again, "{around:?} computed");
        }
    }

    #[test]
    fn what_is_minus_infinity_has_no_share_and_what_has_no_shares_is_nan() {
        let inf = f32::INFINITY;
        for inner in [1, 2] {
            let row = |values: [f32; 4]| {
                let input: Vec<f32> = values.iter().flat_map(|x| vec![*x; inner]).collect();
                let mut out = vec![0.0; input.len()];
                softmax(&input.as_slice(), Around { outer: 1, length: 4, inner }, &mut out, 1);
                out
            };
            let out = row([0.0, -inf, 0.0, -1000.0]);
            assert_eq!((out[0], out[inner], out[3 * inner]), (0.5, 0.0, 0.0));
            for bad in [[-inf; 4], [0.0, inf, 1.0, 2.0], [0.0, f32::NAN, 1.0, 2.0]] {
                assert!(row(bad).iter().all(|x| x.is_nan()), "{bad:?}");
            }
        }
        let mut out = [0.0; 2];
        log_softmax(&[3.0, -inf].as_slice(), Around { outer: 1, length: 2, inner: 1 }, &mut out, 1);
        assert_eq!(out, [0.0, -inf]);
    }
}
