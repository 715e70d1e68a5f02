//! Layer norm and instance norm: values minus their mean, divided by their deviation.
//!
//! Layer norm whose mean is not used is one step over rows that are contiguous; values that lie otherwise are copied.
//! Everything else is made of reductions and elementwise steps, which are fused. The mean is subtracted before squares
//! are summed, so that no digits cancel.

#[cfg(not(target_arch = "wasm32"))]
use smallvec::smallvec;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::norm::{Norm, NormLaunch};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{Hook, RowLanes};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::norm;
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::shape::Around;

use super::super::builder::{NetworkBuilder, NewValue};
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId, straight};
use super::softmax::MOST_LENGTH;

/// Layer norm of contiguous rows. Inputs: values, factors, and offsets if there are any.
#[derive(Debug)]
struct NormStep {
    rows: usize,
    length: usize,
    epsilon: f32,
    has_bias: bool,
}

impl NetworkBuilder {
    /// (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over all axes from `axis` on.
    /// Returns the result, the mean, and 1 / sqrt(variance + epsilon).
    pub fn layer_norm(
        &mut self,
        x: ValueId,
        axis: usize,
        scale: ValueId,
        bias: Option<ValueId>,
        epsilon: f32,
    ) -> Result<[ValueId; 3], TensorError> {
        self.check_floats("layer_norm", x, axis)?;
        let lengths = Lengths::from_slice(self.lengths(x));
        let axes: Vec<usize> = (axis..lengths.len()).collect();
        let length: usize = lengths[axis..].iter().product();
        // Steps whose results are not used are dropped when the network is built.
        let [centred, mean, inverse] = self.centred(x, &axes, epsilon)?;
        let is_step = (1..=MOST_LENGTH).contains(&length) && !self.is_known(x);
        let y = if is_step {
            let order = straight(lengths.len());
            let mut inputs = vec![self.dense(x, &order)?];
            for one in [Some(scale), bias].into_iter().flatten() {
                let whole = self.repeated(one, &lengths[axis..])?;
                inputs.push(self.straight(whole)?);
            }
            let rows = lengths[..axis].iter().product();
            let step = NormStep { rows, length, epsilon, has_bias: bias.is_some() };
            self.add_one(step, &inputs, NewValue { kind: WordKind::F32, lengths: &lengths, order })?
        } else {
            let normal = self.binary(Binary::Mul, centred, inverse)?;
            let scaled = self.binary(Binary::Mul, normal, scale)?;
            match bias {
                Some(bias) => self.binary(Binary::Add, scaled, bias)?,
                None => scaled,
            }
        };
        Ok([y, mean, inverse])
    }

    /// (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over all axes but the first two.
    /// The factors and offsets are those of the channels (axis 1).
    pub fn instance_norm(
        &mut self,
        x: ValueId,
        scale: ValueId,
        bias: ValueId,
        epsilon: f32,
    ) -> Result<ValueId, TensorError> {
        self.check_floats("instance_norm", x, 1)?;
        let rank = self.lengths(x).len();
        let axes: Vec<usize> = (2..rank).collect();
        let [centred, _, inverse] = self.centred(x, &axes, epsilon)?;
        let mut lengths = Lengths::from_elem(1, rank);
        lengths[1] = self.lengths(x)[1];
        let (scale, bias) = (self.reshaped(scale, &lengths)?, self.reshaped(bias, &lengths)?);
        let factor = self.binary(Binary::Mul, inverse, scale)?;
        let scaled = self.binary(Binary::Mul, centred, factor)?;
        self.binary(Binary::Add, scaled, bias)
    }

    /// Values minus their mean over axes, the mean, and 1 / sqrt(variance + epsilon).
    fn centred(&mut self, x: ValueId, axes: &[usize], epsilon: f32) -> Result<[ValueId; 3], TensorError> {
        let mean = self.reduced_by(x, axes, Reduction::Mean)?;
        let centred = self.binary(Binary::Sub, x, mean)?;
        let variance = self.reduced_by(centred, axes, Reduction::MeanOfSquares)?;
        let epsilon = self.floats(vec![epsilon], &[])?;
        let above = self.binary(Binary::Add, variance, epsilon)?;
        let deviation = self.unary(Unary::Sqrt, above)?;
        Ok([centred, mean, self.unary(Unary::Reciprocal, deviation)?])
    }
}

impl Step for NormStep {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (input, threads) = (call.floats(0), call.threads);
        let scale = Some(call.floats(1));
        let bias = self.has_bias.then(|| call.floats(2));
        norm::layer_norm(&input, self.length, self.epsilon, scale, bias, call.floats_out(0), threads);
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let around = Around { outer: self.rows, length: self.length, inner: 1 };
        let lanes = RowLanes::for_shape(around, facts.is_software);
        let beta = self.has_bias.then_some(DType::F32);
        let kernel = Norm { gamma: Some(DType::F32), beta, lanes, value: Hook::plain(DType::F32) };
        let launch = NormLaunch {
            count: self.rows,
            length: self.length,
            offset: 0,
            gamma_offset: 0,
            beta_offset: 0,
            epsilon: self.epsilon,
        };
        let mut buffers = smallvec![Bound::Input(0), Bound::Input(1)];
        if self.has_bias {
            buffers.push(Bound::Input(2));
        }
        buffers.push(Bound::Output(0));
        DeviceWork::one(Dispatch {
            key: format!("norm {:?} {:?} {lanes:?} f32", kernel.gamma, kernel.beta),
            shader: kernel.shader(),
            buffers,
            launch: kernel.launch(&launch, facts.most_groups),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close, noise};
    use super::*;

    /// Rows of `length` values: normal values, means and inverse deviations.
    fn plainly(x: &[f32], length: usize, epsilon: f64) -> [Vec<f64>; 3] {
        let mut all = [const { Vec::new() }; 3];
        for row in x.chunks(length) {
            let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / length as f64;
            let variance = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / length as f64;
            let inverse = 1.0 / (variance + epsilon).sqrt();
            all[0].extend(row.iter().map(|v| (f64::from(*v) - mean) * inverse));
            all[1].push(mean);
            all[2].push(inverse);
        }
        all
    }

    fn floats(values: impl IntoIterator<Item = f64>) -> Vec<f32> {
        values.into_iter().map(|v| v as f32).collect()
    }

    #[test]
    fn layers_from_any_axis_are_normal_on_both_sides() {
        let lengths = [2, 3, 5, 7];
        let x = noise(210, 6);
        for axis in 0..4 {
            let own = &lengths[axis..];
            let length: usize = own.iter().product();
            let (scale, bias) = (noise(length, 7), noise(length, 8));
            let [normal, means, inverses] = plainly(&x, length, 1e-3);
            let with = |at: usize, v: f64, bias: f32| v * f64::from(scale[at % length]) + f64::from(bias);
            let given = [Given::Floats(&x, &lengths), Given::Floats(&scale, own), Given::Floats(&bias, own)];
            let made = both(&given, |net, ids| {
                let [y, mean, inverse] = net.layer_norm(ids[0], axis, ids[1], Some(ids[2]), 1e-3)?;
                assert!(net.lengths(mean)[axis..].iter().all(|length| *length == 1));
                let [plain, ..] = net.layer_norm(ids[0], axis, ids[1], None, 1e-3)?;
                Ok(vec![y, mean, inverse, plain])
            });
            let wanted = normal.iter().enumerate().map(|(at, v)| with(at, *v, bias[at % length]));
            close(&made[0], &floats(wanted), &format!("from axis {axis}"));
            close(&made[1], &floats(means), &format!("means from axis {axis}"));
            close(&made[2], &floats(inverses), &format!("deviations from axis {axis}"));
            let wanted = normal.iter().enumerate().map(|(at, v)| with(at, *v, 0.0));
            close(&made[3], &floats(wanted), &format!("without offsets from axis {axis}"));
        }
    }

    #[test]
    fn a_layer_norm_whose_mean_is_not_used_is_one_step() {
        let mut net = NetworkBuilder::new(&crate::Context::on_host());
        let x = net.input(WordKind::F32, &[2, 3, 8]).unwrap();
        let scale = net.floats(vec![2.0; 8], &[8]).unwrap();
        let [y, ..] = net.layer_norm(x, 2, scale, None, 1e-5).unwrap();
        assert_eq!(net.build(&[y]).unwrap().steps(), ["layer_norm"]);
    }

    #[test]
    fn instances_are_normal_in_both_orders_of_memory() {
        let (scale, bias) = (noise(3, 9), noise(3, 10));
        let x = noise(2 * 3 * 20, 11);
        let [normal, ..] = plainly(&x, 20, 1e-5);
        let wanted = normal.iter().enumerate().map(|(at, v)| {
            let channel = at / 20 % 3;
            v * f64::from(scale[channel]) + f64::from(bias[channel])
        });
        let wanted = floats(wanted);
        // The same values with their channels last.
        let turned: Vec<f32> = (0..120).map(|at| x[at / 60 * 60 + at % 3 * 20 + at / 3 % 20]).collect();
        let given = [
            Given::Floats(&x, &[2, 3, 4, 5]),
            Given::Floats(&turned, &[2, 4, 5, 3]),
            Given::Floats(&scale, &[3]),
            Given::Floats(&bias, &[3]),
        ];
        let made = both(&given, |net, ids| {
            let picture = net.permuted(ids[1], &[0, 3, 1, 2]);
            Ok(vec![
                net.instance_norm(ids[0], ids[2], ids[3], 1e-5)?,
                net.instance_norm(picture, ids[2], ids[3], 1e-5)?,
            ])
        });
        for made in &made {
            close(made, &wanted, "instance norm");
        }
    }
}
