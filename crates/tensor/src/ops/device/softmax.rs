//! The kernel of softmax and log-softmax along an axis, in one dispatch, for rows of at most [`MOST_LENGTH`] values.
//!
//! Invariants, for rows of up to 65,536 values: softmax has a relative error of at most
//! `1e-6 + (maximum - v) * 2^-24`, because the difference `maximum - v` is rounded once. Log-softmax has an error of at
//! most 1e-6 times the largest magnitude in the row.

use vramp_plan::Shader;

use crate::ops::shape::Around;

use super::hook::Hook;
use super::rows::RowLanes;
use super::text::{KernelText, Launch, MATH};

/// The longest row: a workgroup reads a row up to four times, and an invocation of the workgroup may run only
/// `MOST_ROUNDS` rounds.
pub(crate) const MOST_LENGTH: usize = super::MOST_ROUNDS / 4 * super::rows::GROUP;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Softmax {
    /// True for log-softmax.
    pub log: bool,
    pub lanes: RowLanes,
    pub value: Hook,
}

const FIELDS: [&str; 4] = ["offset", "rows", "length", "inner"];

/// Softmax first writes each exponential to the output, and later replaces the exponential by the result: reading an
/// exponential back costs less than computing the exponential twice.
const PLAIN: &str = "
fn note(at: u32, v: f32) -> f32 {
    let e = exp_of(v);
    out[at] = bitcast<u32>(e);
    return e;
}
fn again(at: u32, greatest: f32, share: f32, log_sum: f32) -> f32 {
    return bitcast<f32>(out[at]) * share;
}
";

const LOG: &str = "
fn note(at: u32, v: f32) -> f32 { return exp_of(v); }
fn again(at: u32, greatest: f32, share: f32, log_sum: f32) -> f32 {
    return value(at) - greatest - log_sum;
}
";

impl Softmax {
    /// Buffers: the inputs of `value`, the results in f32.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.reading(&self.value, &FIELDS);
        text.push(MATH);
        text.push(&self.lanes.wgsl(&[("greater", "f32"), ("add", "f32")]));
        text.push(if self.log { LOG } else { PLAIN });
        text.push(include_str!("softmax.wgsl"));
        let name = if self.log { "log softmax" } else { "softmax" };
        text.shader(format!("{name}, {}", self.lanes.name()), 64)
    }

    pub(crate) fn launch(&self, around: Around, offset: usize, most: u32) -> Launch {
        let Around { outer, length, inner } = around;
        let rows = outer * inner;
        let words = [offset, rows, length, inner].map(|number| number as u32);
        Launch::new(&words, self.lanes.groups(rows), most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, bytes_of, noise, run_f32};
    use super::*;
    use crate::ops::dtype::DType;

    fn softmax(log: bool, lanes: RowLanes, around: Around, offset: usize, values: &[f32]) -> Vec<f32> {
        let softmax = Softmax { log, lanes, value: Hook::plain(DType::F32) };
        let launch = softmax.launch(around, offset, MOST);
        run_f32(&softmax.shader(), &launch, &[bytes_of(values)], values.len() - offset)
    }

    #[test]
    fn softmax_of_any_axis_is_that_of_f64_with_one_or_many_lanes_per_row() {
        for (outer, length, inner) in [(1, 1, 1), (70, 33, 1), (3, 1000, 1), (2, 50, 70), (2, 3000, 3)] {
            let around = Around { outer, length, inner };
            let values: Vec<f32> = noise(1 + outer * length * inner, 4).iter().map(|v| v * 40.0 + 100.0).collect();
            for lanes in [RowLanes::One, RowLanes::Group] {
                let (plain, log) =
                    (softmax(false, lanes, around, 1, &values), softmax(true, lanes, around, 1, &values));
                for row in 0..outer * inner {
                    let base = row / inner * length * inner + row % inner;
                    let at = |i: usize| base + i * inner;
                    let value = |i: usize| f64::from(values[1 + at(i)]);
                    let greatest = (0..length).map(value).fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = (0..length).map(|i| (value(i) - greatest).exp()).sum();
                    for i in 0..length {
                        let wanted = (value(i) - greatest).exp() / sum;
                        let off = (f64::from(plain[at(i)]) - wanted).abs();
                        let tolerance = 1e-6 + (greatest - value(i)) / 16_777_216.0;
                        assert!(off <= tolerance * wanted, "{around:?} {lanes:?}: {} {wanted}", plain[at(i)]);
                        let wanted = value(i) - greatest - sum.ln();
                        let off = (f64::from(log[at(i)]) - wanted).abs();
                        assert!(off <= 1e-6 * 100.0, "{around:?} {lanes:?}: {} {wanted}", log[at(i)]);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_with_nan_or_infinity_become_nan_and_less_than_anything_becomes_nothing() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let rows =
            [[0.0, -inf, 0.0, -1e9], [1.0, nan, 2.0, 3.0], [1.0, inf, 2.0, 3.0], [-inf; 4], [3e38, -3e38, 0.0, 0.0]];
        let around = Around { outer: 5, length: 4, inner: 1 };
        for lanes in [RowLanes::One, RowLanes::Group] {
            let got = softmax(false, lanes, around, 0, rows.as_flattened());
            assert_eq!(got[..4], [0.5, 0.0, 0.5, 0.0]);
            assert!(got[4..16].iter().all(|v| v.is_nan()), "{got:?}");
            assert_eq!(got[16..], [1.0, 0.0, 0.0, 0.0]);
            let log = softmax(true, lanes, around, 0, rows.as_flattened());
            assert_eq!(log[1].to_bits(), (-inf).to_bits());
            assert!(log[4..16].iter().all(|v| v.is_nan()), "{log:?}");
        }
    }
}
