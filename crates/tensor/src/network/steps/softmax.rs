//! Softmax along an axis, in the order in which the values lie in memory.

#[cfg(not(target_arch = "wasm32"))]
use smallvec::smallvec;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::softmax::Softmax;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{Hook, RowLanes};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::softmax;
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Around;

use super::super::builder::{NetworkBuilder, NewValue};
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId};

/// Maximum number of values of a row that one dispatch takes. Longer rows are reduced and mapped.
pub(super) const MOST_LENGTH: usize = 1 << 19;

#[derive(Debug)]
struct SoftmaxStep {
    around: Around,
}

impl NetworkBuilder {
    /// e^x / sum of e^x along an axis.
    pub fn softmax(&mut self, x: ValueId, axis: usize) -> Result<ValueId, TensorError> {
        let op = "softmax";
        self.check_floats(op, x, axis)?;
        let lengths = Lengths::from_slice(self.lengths(x));
        if lengths[axis] > MOST_LENGTH {
            let largest = self.reduced_by(x, &[axis], Reduction::Max)?;
            let shifted = self.binary(Binary::Sub, x, largest)?;
            let shares = self.unary(Unary::Exp, shifted)?;
            let total = self.reduced_by(shares, &[axis], Reduction::Sum)?;
            return self.binary(Binary::Div, shares, total);
        }
        let order = self.views[x.0].order();
        let around = around(&lengths, &order, axis);
        let memory = self.dense(x, &order)?;
        self.add_one(SoftmaxStep { around }, &[memory], NewValue { kind: WordKind::F32, lengths: &lengths, order })
    }

    /// Fails unless a value has floats and this axis.
    pub(super) fn check_floats(&self, op: &'static str, x: ValueId, axis: usize) -> Result<(), TensorError> {
        if self.kind(x) != WordKind::F32 {
            return Err(TensorError::WrongType { op, has: self.kind(x).dtype(), wants: "f32" });
        }
        if axis >= self.lengths(x).len() {
            let problem = format!("{:?} has no axis {axis}", self.lengths(x));
            return Err(TensorError::Setting { op, problem });
        }
        Ok(())
    }
}

/// An axis of values that lie in memory in this order.
pub(super) fn around(lengths: &[usize], order: &[usize], axis: usize) -> Around {
    let place = order.iter().position(|one| *one == axis).expect("an order has all axes");
    let product = |axes: &[usize]| axes.iter().map(|axis| lengths[*axis]).product();
    Around { outer: product(&order[..place]), length: lengths[axis], inner: product(&order[place + 1..]) }
}

impl Step for SoftmaxStep {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (input, threads) = (call.floats(0), call.threads);
        softmax::softmax(&input, self.around, call.floats_out(0), threads);
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let lanes = RowLanes::for_shape(self.around, facts.is_software);
        let kernel = Softmax { log: false, lanes, value: Hook::plain(DType::F32) };
        DeviceWork::one(Dispatch {
            key: format!("softmax false {lanes:?} f32"),
            shader: kernel.shader(),
            buffers: smallvec![Bound::Input(0), Bound::Output(0)],
            launch: kernel.launch(self.around, 0, facts.most_groups),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close, noise};
    use super::*;

    #[test]
    fn the_longest_row_is_one_that_a_kernel_takes() {
        assert_eq!(MOST_LENGTH, crate::ops::device::softmax::MOST_LENGTH);
    }

    fn plainly(x: &[f32], around: Around) -> Vec<f32> {
        let Around { length, inner, .. } = around;
        let base = |at: usize| at / (length * inner) * length * inner + at % inner;
        let row = |at: usize| (0..length).map(move |i| f64::from(x[base(at) + i * inner]));
        let share = |at: usize| {
            let largest = row(at).fold(f64::NEG_INFINITY, f64::max);
            (f64::from(x[at]) - largest).exp() / row(at).map(|v| (v - largest).exp()).sum::<f64>()
        };
        (0..x.len()).map(|at| share(at) as f32).collect()
    }

    #[test]
    fn shares_along_any_axis_are_those_of_the_formula_on_both_sides() {
        for lengths in [&[9][..], &[3, 40], &[2, 3, 4], &[2, 5, 3, 7]] {
            let x: Vec<f32> = noise(lengths.iter().product(), 3).iter().map(|v| v * 6.0).collect();
            for axis in 0..lengths.len() {
                let straight: Vec<usize> = (0..lengths.len()).collect();
                let wanted = plainly(&x, around(lengths, &straight, axis));
                let made = both(&[Given::Floats(&x, lengths)], |net, ids| Ok(vec![net.softmax(ids[0], axis)?]));
                close(&made[0], &wanted, &format!("axis {axis} of {lengths:?}"));
            }
        }
    }

    #[test]
    fn shares_are_taken_where_the_values_lie() {
        let x = noise(60, 4);
        let mut net = NetworkBuilder::new(&crate::Context::on_host());
        let id = net.input(WordKind::F32, &[1, 4, 5, 3]).unwrap();
        let picture = net.permuted(id, &[0, 3, 1, 2]);
        let made = net.softmax(picture, 1).unwrap();
        let back = net.permuted(made, &[0, 2, 3, 1]);
        assert_eq!(net.build(&[back]).unwrap().steps(), ["softmax"]);
        let made = both(&[Given::Floats(&x, &[1, 4, 5, 3])], |net, ids| {
            let picture = net.permuted(ids[0], &[0, 3, 1, 2]);
            let made = net.softmax(picture, 1)?;
            Ok(vec![net.permuted(made, &[0, 2, 3, 1])])
        });
        close(&made[0], &plainly(&x, Around { outer: 20, length: 3, inner: 1 }), "channels last");
    }

    #[test]
    fn rows_that_are_too_long_for_a_kernel_have_shares_too() {
        let x = noise(MOST_LENGTH + 5, 5);
        let made = both(&[Given::Floats(&x, &[x.len()])], |net, ids| Ok(vec![net.softmax(ids[0], 0)?]));
        let sum: f64 = x.iter().map(|v| f64::from(*v).exp()).sum();
        let wanted: Vec<f32> = x.iter().map(|v| (f64::from(*v).exp() / sum) as f32).collect();
        close(&made[0], &wanted, "a long row");
    }
}
