//! The layer norm kernel along the last axis, with or without gamma and beta, for rows of at most
//! [`MOST_LENGTH`](super::softmax::MOST_LENGTH) values.
//!
//! Invariant: the variance is the mean of squared differences from the mean of the row, and is computed after that
//! mean.

use vramp_plan::Shader;

use crate::ops::dtype::DType;

use super::hook::Hook;
use super::rows::RowLanes;
use super::text::{KernelText, Launch, load};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Norm {
    /// The type of gamma, if it is given. Gamma has one factor per value of a row.
    pub gamma: Option<DType>,
    /// The type of beta, if it is given.
    pub beta: Option<DType>,
    pub lanes: RowLanes,
    pub value: Hook,
}

/// The sizes of one launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NormLaunch {
    /// The number of rows.
    pub count: usize,
    /// Values per row.
    pub length: usize,
    pub offset: usize,
    pub gamma_offset: usize,
    pub beta_offset: usize,
    /// Added to the variance.
    pub epsilon: f32,
}

const FIELDS: [&str; 6] = ["offset", "rows", "length", "gamma_offset", "beta_offset", "epsilon"];

impl Norm {
    /// Buffers: the inputs of `value`, gamma and beta if there are any, the results.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.inputs(&self.value, "in");
        for (name, dtype) in [("gamma", self.gamma), ("beta", self.beta)] {
            if dtype.is_some() {
                text.read(name, "u32");
            }
        }
        text.write("out", "u32");
        text.params(&FIELDS, self.value.vectors);
        text.push(&self.value.wgsl);
        text.push(&self.lanes.wgsl(&[("add", "f32")]));
        let gamma = self.gamma.map(|dtype| format!(" * {}", load(dtype, "gamma", "p.gamma_offset + i")));
        let beta = self.beta.map(|dtype| format!(" + {}", load(dtype, "beta", "p.beta_offset + i")));
        let wgsl = include_str!("norm.wgsl")
            .replace("$GAMMA", &gamma.unwrap_or_default())
            .replace("$BETA", &beta.unwrap_or_default());
        text.push(&wgsl);
        text.shader(format!("layer norm, {}", self.lanes.name()), 64)
    }

    pub(crate) fn launch(&self, at: &NormLaunch, most: u32) -> Launch {
        let words = [at.offset, at.count, at.length, at.gamma_offset, at.beta_offset];
        let words: Vec<u32> = words.into_iter().map(|number| number as u32).chain([at.epsilon.to_bits()]).collect();
        Launch::new(&words, self.lanes.groups(at.count), most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, bytes_of, noise, run_f32};
    use super::*;

    #[test]
    fn rows_are_normal_with_or_without_factors_and_offsets() {
        for (rows, length) in [(5, 1), (70, 20), (3, 700)] {
            let values: Vec<f32> = noise(2 + rows * length, 8).iter().map(|v| v + 50.0).collect();
            let (gamma, beta) = (noise(length + 1, 9), noise(length + 3, 10));
            for (lanes, with) in [
                (RowLanes::One, [true, true]),
                (RowLanes::Group, [false, true]),
                (RowLanes::Group, [true, false]),
                (RowLanes::One, [false, false]),
            ] {
                let [gamma_type, beta_type] = with.map(|with| with.then_some(DType::F32));
                let norm = Norm { gamma: gamma_type, beta: beta_type, lanes, value: Hook::plain(DType::F32) };
                let at = NormLaunch { count: rows, length, offset: 2, gamma_offset: 1, beta_offset: 3, epsilon: 1e-5 };
                let mut inputs = vec![bytes_of(&values)];
                inputs.extend(with[0].then_some(bytes_of(&gamma)));
                inputs.extend(with[1].then_some(bytes_of(&beta)));
                let got = run_f32(&norm.shader(), &norm.launch(&at, MOST), &inputs, rows * length);
                for (number, row) in values[2..].chunks(length).enumerate() {
                    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / length as f64;
                    let variance = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / length as f64;
                    for (i, v) in row.iter().enumerate() {
                        let mut wanted = (f64::from(*v) - mean) / (variance + 1e-5).sqrt();
                        wanted *= if with[0] { f64::from(gamma[1 + i]) } else { 1.0 };
                        wanted += if with[1] { f64::from(beta[3 + i]) } else { 0.0 };
                        let off = (f64::from(got[number * length + i]) - wanted).abs();
                        // The mean of values around 50 has an error of up to 50 * 2^-24.
                        assert!(off < 3e-5, "{lanes:?} {with:?} {rows}x{length}: {off}");
                    }
                }
            }
        }
    }
}
