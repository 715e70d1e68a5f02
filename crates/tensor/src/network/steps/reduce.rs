//! Sums, means, maxima and minima along any axes.
//!
//! Values are reduced in the order in which they lie in memory. Axes that are neighbours there are reduced as one axis,
//! so the spatial mean of a picture whose channels lie last is one step without a copy.

#[cfg(not(target_arch = "wasm32"))]
use smallvec::smallvec;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::Hook;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::reduce::{Reduce, ReducePass};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::{reduce, whole};
use crate::ops::program::{Binary, Unary};
use crate::ops::reduction::Reduction;
use crate::ops::shape::Around;

use super::super::builder::{NetworkBuilder, NewValue};
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId, View};

/// How a network reduces values along axes to one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkReduction {
    /// The sum; 0 for no values. Integers wrap.
    Sum,
    /// The mean; NaN for no values. Means of integers round towards 0.
    Mean,
    /// The largest value; NaN if any value is NaN, and the lowest number of the type for no values.
    Max,
    /// The smallest value; NaN if any value is NaN, and the highest number of the type for no values.
    Min,
}

impl NetworkReduction {
    fn reduction(self) -> Reduction {
        match self {
            NetworkReduction::Sum => Reduction::Sum,
            NetworkReduction::Mean => Reduction::Mean,
            NetworkReduction::Max => Reduction::Max,
            NetworkReduction::Min => Reduction::Min,
        }
    }
}

/// Reduces one axis, or several that are one axis in memory.
#[derive(Debug)]
struct ReduceStep {
    how: Reduction,
    kind: WordKind,
    around: Around,
}

impl NetworkBuilder {
    /// Values reduced along axes, which have length 1 in the result if `keep` is set and are removed otherwise.
    pub fn reduced(
        &mut self,
        x: ValueId,
        axes: &[usize],
        keep: bool,
        how: NetworkReduction,
    ) -> Result<ValueId, TensorError> {
        let kept = if self.kind(x) == WordKind::I32 && how == NetworkReduction::Mean {
            let count: usize = distinct(axes).map(|axis| self.lengths(x).get(axis).copied().unwrap_or(1)).product();
            let total = self.reduced_by(x, axes, Reduction::Sum)?;
            let count = self.integers(vec![i32::try_from(count).unwrap_or(i32::MAX)], &[])?;
            self.binary(Binary::Div, total, count)?
        } else {
            self.reduced_by(x, axes, how.reduction())?
        };
        if keep {
            return Ok(kept);
        }
        let View { memory, lengths, strides, offset } = self.views[kept.0].clone();
        let without = |of: &Lengths| -> Lengths {
            of.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, one)| *one).collect()
        };
        Ok(self.view(View { memory, lengths: without(&lengths), strides: without(&strides), offset }))
    }

    /// Values reduced along axes, which have length 1 in the result. Integers have no mean here.
    pub(super) fn reduced_by(&mut self, x: ValueId, axes: &[usize], how: Reduction) -> Result<ValueId, TensorError> {
        let kind = self.kind(x);
        let view = &self.views[x.0];
        if let Some(axis) = axes.iter().find(|axis| **axis >= view.lengths.len()) {
            let problem = format!("{:?} has no axis {axis}", view.lengths.as_slice());
            return Err(TensorError::Setting { op: how.name(), problem });
        }
        let (order, mut lengths) = (view.order(), view.lengths.clone());
        if view.count() == 0 {
            for axis in axes {
                lengths[*axis] = 1;
            }
            return self.reduced_from_nothing(&lengths, kind, how);
        }
        let mut runs = reduced_runs(&lengths, &order, axes);
        if runs.is_empty() {
            return if how == Reduction::MeanOfSquares { self.unary(Unary::Square, x) } else { Ok(x) };
        }
        // The longest first, because the others then have the fewest values.
        runs.sort_by_key(|run| std::cmp::Reverse(run.iter().map(|at| lengths[order[*at]]).product::<usize>()));
        let mut memory = self.dense(x, &order)?;
        let mut reduced = x;
        for (at, run) in runs.iter().enumerate() {
            let product = |places: &[usize]| places.iter().map(|axis| lengths[*axis]).product();
            let around = Around {
                outer: product(&order[..run[0]]),
                length: product(&order[run[0]..=run[run.len() - 1]]),
                inner: product(&order[run[run.len() - 1] + 1..]),
            };
            for place in run {
                lengths[order[*place]] = 1;
            }
            let how = if how == Reduction::MeanOfSquares && at > 0 { Reduction::Mean } else { how };
            let new = NewValue { kind, lengths: &lengths, order: order.clone() };
            reduced = self.add_one(ReduceStep { how, kind, around }, &[memory], new)?;
            memory = self.views[reduced.0].memory;
        }
        Ok(reduced)
    }

    /// What values along axes without values are reduced to.
    fn reduced_from_nothing(
        &mut self,
        lengths: &[usize],
        kind: WordKind,
        how: Reduction,
    ) -> Result<ValueId, TensorError> {
        let value = match kind {
            WordKind::F32 => {
                let value = match how {
                    Reduction::Max => f32::NEG_INFINITY,
                    Reduction::Min => f32::INFINITY,
                    Reduction::Sum => 0.0,
                    _ => f32::NAN,
                };
                self.floats(vec![value], &[])?
            }
            WordKind::I32 => {
                let value = match how {
                    Reduction::Max => i32::MIN,
                    Reduction::Min => i32::MAX,
                    _ => 0,
                };
                self.integers(vec![value], &[])?
            }
        };
        self.repeated(value, lengths)
    }
}

/// The axes, each once.
fn distinct(axes: &[usize]) -> impl Iterator<Item = usize> {
    axes.iter().enumerate().filter(|(at, axis)| !axes[..*at].contains(axis)).map(|(_, axis)| *axis)
}

/// Places in `order` of the axes that are reduced, in runs of neighbours. Axes of length 1 are neither reduced nor do
/// they separate runs.
fn reduced_runs(lengths: &[usize], order: &[usize], axes: &[usize]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    let mut follows = false;
    for (place, axis) in order.iter().enumerate().filter(|(_, axis)| lengths[**axis] != 1) {
        match (axes.contains(axis), runs.last_mut()) {
            (true, Some(run)) if follows => run.push(place),
            (true, _) => runs.push(vec![place]),
            _ => {}
        }
        follows = axes.contains(axis);
    }
    runs
}

impl Step for ReduceStep {
    fn name(&self) -> &'static str {
        self.how.name()
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let threads = call.threads;
        match self.kind {
            WordKind::F32 => {
                let input = call.floats(0);
                reduce::reduce(&input, self.around, self.how, call.floats_out(0), threads);
            }
            WordKind::I32 => {
                let input = call.integers(0);
                whole::reduce_whole(input, self.around, self.how, call.integers_out(0), threads);
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let mut work = DeviceWork::default();
        push_passes(&mut work, facts, (self.how, self.kind.dtype()), self.around, [Bound::Input(0), Bound::Output(0)]);
        work
    }
}

/// Adds the dispatches of a reduction from one buffer to another.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn push_passes(
    work: &mut DeviceWork,
    facts: &DeviceFacts,
    (how, of): (Reduction, DType),
    around: Around,
    [mut from, to]: [Bound; 2],
) {
    let passes = ReducePass::plan(around, facts.is_software);
    for (at, pass) in passes.iter().enumerate() {
        let kernel = Reduce::new(how, &Hook::plain(of), &passes, at);
        let kernel = if of.is_float() { kernel } else { kernel.of_whole(of) };
        let to = if kernel.last {
            to
        } else {
            work.temporary.push(pass.out_bytes(how) / 4);
            Bound::Temporary(work.temporary.len() - 1)
        };
        work.dispatches.push(Dispatch {
            key: format!("{how:?} {:?} {}{} {of}", pass.lanes, kernel.first, kernel.last),
            shader: kernel.shader(),
            buffers: smallvec![from, to],
            launch: kernel.launch(pass, around.length, 0, facts.most_groups),
        });
        from = to;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close, noise, same};
    use super::*;

    /// What is reduced, in f64, for every combination of the axes that are kept.
    fn plainly(x: &[f32], lengths: &[usize], axes: &[usize], how: NetworkReduction) -> Vec<f32> {
        let kept: Vec<usize> = (0..lengths.len()).filter(|axis| !axes.contains(axis)).collect();
        let rows: usize = kept.iter().map(|axis| lengths[*axis]).product();
        let mut groups: Vec<Vec<f64>> = vec![Vec::new(); rows];
        for (at, value) in x.iter().enumerate() {
            let place = |axis: usize| at / lengths[axis + 1..].iter().product::<usize>() % lengths[axis];
            let row = kept.iter().fold(0, |row, axis| row * lengths[*axis] + place(*axis));
            groups[row].push(f64::from(*value));
        }
        let reduce = |values: Vec<f64>| match how {
            NetworkReduction::Sum => values.iter().sum(),
            NetworkReduction::Mean => values.iter().sum::<f64>() / values.len() as f64,
            NetworkReduction::Max => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
            NetworkReduction::Min => values.into_iter().fold(f64::INFINITY, f64::min),
        };
        groups.into_iter().map(|values| reduce(values) as f32).collect()
    }

    const ALL: [NetworkReduction; 4] =
        [NetworkReduction::Sum, NetworkReduction::Mean, NetworkReduction::Max, NetworkReduction::Min];

    #[test]
    fn any_axes_are_reduced_on_both_sides() {
        let cases: [(&[usize], &[usize]); 8] = [
            (&[7], &[0]),
            (&[3, 5], &[1]),
            (&[3, 5], &[0, 1]),
            (&[2, 3, 4, 5], &[2, 3]),
            (&[2, 3, 4, 5], &[1, 3]),
            (&[2, 1, 4, 5, 3], &[0, 2, 4]),
            (&[1, 9000, 1], &[1]),
            (&[2, 3], &[]),
        ];
        for (lengths, axes) in cases {
            let x = noise(lengths.iter().product(), 1);
            for how in ALL {
                let wanted = plainly(&x, lengths, axes, how);
                let made = both(&[Given::Floats(&x, lengths)], |net, ids| {
                    let kept = net.reduced(ids[0], axes, true, how)?;
                    let dropped = net.reduced(ids[0], axes, false, how)?;
                    assert_eq!(net.lengths(kept).len(), lengths.len());
                    assert_eq!(net.lengths(dropped).len(), lengths.len() - axes.len());
                    Ok(vec![kept, dropped])
                });
                for made in &made {
                    close(made, &wanted, &format!("{how:?} {axes:?} of {lengths:?}"));
                }
            }
        }
    }

    #[test]
    fn the_spatial_mean_of_a_picture_with_channels_last_is_one_step() {
        let lengths = [2, 4, 5, 3];
        let x = noise(120, 2);
        let turned = crate::Context::on_host();
        let mut net = NetworkBuilder::new(&turned);
        let id = net.input(WordKind::F32, &lengths).unwrap();
        let picture = net.permuted(id, &[0, 3, 1, 2]);
        let mean = net.reduced(picture, &[2, 3], true, NetworkReduction::Mean).unwrap();
        assert_eq!(net.lengths(mean), [2, 3, 1, 1]);
        assert_eq!(net.build(&[mean]).unwrap().steps(), ["mean"]);
        let made = both(&[Given::Floats(&x, &lengths)], |net, ids| {
            let picture = net.permuted(ids[0], &[0, 3, 1, 2]);
            Ok(vec![net.reduced(picture, &[2, 3], false, NetworkReduction::Mean)?])
        });
        close(&made[0], &plainly(&x, &lengths, &[1, 2], NetworkReduction::Mean), "channels last");
    }

    #[test]
    fn means_of_integers_round_towards_zero() {
        let x = [-7, 2, 9, 9, 1, -1];
        for (how, wanted) in [
            (NetworkReduction::Sum, [4, 9]),
            (NetworkReduction::Mean, [1, 3]),
            (NetworkReduction::Max, [9, 9]),
            (NetworkReduction::Min, [-7, -1]),
        ] {
            let made =
                both(&[Given::Integers(&x, &[2, 3])], |net, ids| Ok(vec![net.reduced(ids[0], &[1], false, how)?]));
            same(&made[0], &wanted, &format!("{how:?}"));
        }
        let made = both(&[Given::Integers(&[-7, 2], &[2])], |net, ids| {
            Ok(vec![net.reduced(ids[0], &[0], false, NetworkReduction::Mean)?])
        });
        same(&made[0], &[-2], "-5 / 2");
    }

    #[test]
    fn no_values_have_a_sum_and_a_largest_value() {
        for (how, wanted) in ALL.into_iter().zip([0.0, f32::NAN, f32::NEG_INFINITY, f32::INFINITY]) {
            let mut net = NetworkBuilder::new(&crate::Context::on_host());
            let x = net.input(WordKind::F32, &[2, 0, 3]).unwrap();
            let made = net.reduced(x, &[1], false, how).unwrap();
            assert_eq!(net.lengths(made), [2, 3]);
            let same = |value: &f32| value.to_bits() == wanted.to_bits() || (value.is_nan() && wanted.is_nan());
            assert!(net.known_floats(made).unwrap().iter().all(same), "{how:?}");
        }
    }
}
