//! Layer norm over the last axis: rows with mean 0 and variance 1.
//!
//! Invariants: the mean is subtracted before squares are summed, so that no digits cancel. The variance is the sum of
//! squares divided by the length, not by the length minus 1.

use vramp_kernels::vectorised;

use crate::ops::host::lanes;
use crate::ops::host::rows::{PART, ReadScratch, RowValues};
use crate::ops::host::spread::spread;

/// Writes (x - mean) / sqrt(variance + eps) * gamma + beta for each value x to `out`. Rows have `length` values; mean
/// and variance are those of the row. `gamma` defaults to 1, `beta` to 0.
pub(crate) fn layer_norm<R: RowValues>(
    input: &R,
    length: usize,
    eps: f32,
    gamma: Option<&[f32]>,
    beta: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    assert!(gamma.is_none_or(|gamma| gamma.len() == length), "as many factors as a row has values: {length}");
    assert!(beta.is_none_or(|beta| beta.len() == length), "as many offsets as a row has values: {length}");
    assert!(out.len().is_multiple_of(length.max(1)), "whole rows of {length} values, not {}", out.len());
    let values = out.len();
    spread(out, length, values, threads, |first, out| {
        vectorised!(norm_rows(input, first * length, length, eps, gamma, beta, out));
    });
}

#[inline(always)]
fn norm_rows<R: RowValues>(
    input: &R,
    start: usize,
    length: usize,
    eps: f32,
    gamma: Option<&[f32]>,
    beta: Option<&[f32]>,
    out: &mut [f32],
) {
    let mut scratch = ReadScratch::new();
    let rows = (PART / length).max(1);
    for (at, out) in out.chunks_mut(rows * length).enumerate() {
        let start = start + at * rows * length;
        if length <= PART {
            let part = input.part(start, out.len(), &mut scratch);
            for (row, out) in part.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
                norm_row(row, eps, gamma, beta, out);
            }
            continue;
        }
        // A long row is copied to the output first and processed there.
        let mut total = 0.0_f64;
        for (at, out) in out.chunks_mut(PART).enumerate() {
            out.copy_from_slice(input.part(start + at * PART, out.len(), &mut scratch));
            total += f64::from(sum(out, |x| x));
        }
        let mean = (total / length as f64) as f32;
        let mut total = 0.0_f64;
        for out in out.chunks_mut(PART) {
            total += f64::from(sum(out, |x| (x - mean) * (x - mean)));
        }
        let factor = 1.0 / ((total / length as f64) as f32 + eps).sqrt();
        for value in out.iter_mut() {
            *value = (*value - mean) * factor;
        }
        scale(gamma, beta, out);
    }
}

#[inline(always)]
fn norm_row(row: &[f32], eps: f32, gamma: Option<&[f32]>, beta: Option<&[f32]>, out: &mut [f32]) {
    let length = row.len() as f32;
    let mean = sum(row, |x| x) / length;
    let variance = sum(row, |x| (x - mean) * (x - mean)) / length;
    let factor = 1.0 / (variance + eps).sqrt();
    for (out, value) in out.iter_mut().zip(row) {
        *out = (*value - mean) * factor;
    }
    scale(gamma, beta, out);
}

#[inline(always)]
fn scale(gamma: Option<&[f32]>, beta: Option<&[f32]>, out: &mut [f32]) {
    match (gamma, beta) {
        (None, None) => {}
        (Some(gamma), None) => out.iter_mut().zip(gamma).for_each(|(out, gamma)| *out *= gamma),
        (None, Some(beta)) => out.iter_mut().zip(beta).for_each(|(out, beta)| *out += beta),
        (Some(gamma), Some(beta)) => {
            out.iter_mut().zip(gamma).zip(beta).for_each(|((out, gamma), beta)| *out = *out * gamma + beta);
        }
    }
}

#[inline(always)]
fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    lanes::fold(values, 0.0, |lane, value| lane + of(value), |one, two| one + two)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::host::rows::Computed;

    #[test]
    fn rows_of_any_length_have_a_mean_of_zero_and_a_variance_of_one() {
        for length in [2, 3, 64, 1000, 5000] {
            let input: Vec<f32> = (0..3 * length).map(|at| 100.0 + ((at * 7919) % 101) as f32).collect();
            let mut out = vec![0.0; input.len()];
            layer_norm(&input.as_slice(), length, 0.0, None, None, &mut out, 1);
            for row in out.chunks(length) {
                let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / length as f64;
                let variance = row.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / length as f64;
                assert!(mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-5, "{length}: {mean} {variance}");
            }
            let mut again = vec![0.0; input.len()];
            layer_norm(&Computed(&input, |x| x), length, 0.0, None, None, &mut again, 3);
            assert_eq!(out, again);
        }
    }

    #[test]
    fn factors_and_offsets_are_those_of_the_column_and_eps_keeps_equal_values_finite() {
        let mut out = [9.0; 4];
        let (gamma, beta) = ([2.0, 3.0], [0.5, -0.5]);
        layer_norm(&[1.0, 3.0, 7.0, 7.0].as_slice(), 2, 1e-5, Some(&gamma), Some(&beta), &mut out, 1);
        assert!((out[0] + 1.5).abs() < 1e-4 && (out[1] - 2.5).abs() < 1e-4, "{out:?}");
        assert_eq!(out[2..], beta);
    }
}
