//! Joins values along an axis. The parts are placed side by side in the order of axes in which most of them lie.

use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::step::{HostCall, Step};
use crate::network::value::{Lengths, ValueId, View};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{OutputRuns, copy::CopyKernel};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::dtype::DType;

use super::by_word::{around_in, with_length};

const OP: &str = "concat";

/// Each of `rows` rows of the result is one run of every part.
#[derive(Debug)]
struct Concat {
    rows: usize,
    runs: Vec<usize>,
}

impl NetworkBuilder {
    /// The values one after the other along an axis. All other lengths must be equal.
    pub fn concat(&mut self, parts: &[ValueId], axis: usize) -> Result<ValueId, TensorError> {
        let Some(first) = parts.first() else {
            return Err(TensorError::Setting { op: OP, problem: "there are no values to join".into() });
        };
        self.has_axis(OP, *first, axis)?;
        let (kind, lengths) = (self.kind(*first), Lengths::from_slice(self.lengths(*first)));
        let mut total = 0;
        for part in parts {
            let own = self.lengths(*part);
            if own.len() != lengths.len() || *with_length(own, axis, lengths[axis]) != *lengths {
                let problem = format!("{:?} and {own:?} differ beside axis {axis}", lengths.as_slice());
                return Err(TensorError::Mismatch { op: OP, problem });
            }
            if self.kind(*part) != kind {
                let problem = format!("the values are {} and {}", kind.dtype(), self.kind(*part).dtype());
                return Err(TensorError::Setting { op: OP, problem });
            }
            total += own[axis];
        }
        let filled: Vec<ValueId> = parts.iter().copied().filter(|part| self.lengths(*part)[axis] > 0).collect();
        match filled.as_slice() {
            [] => return Ok(*first),
            [only] => return Ok(*only),
            _ => {}
        }
        let order = self.common_order(&filled);
        let mut memories = Vec::with_capacity(filled.len());
        let mut step = Concat { rows: 0, runs: Vec::with_capacity(filled.len()) };
        for part in filled {
            memories.push(self.dense(part, &order)?);
            let around = around_in(self.lengths(part), &order, axis);
            step.rows = around.outer;
            step.runs.push(around.length * around.inner);
        }
        let lengths = with_length(&lengths, axis, total);
        self.add_one(step, &memories, NewValue { kind, lengths: &lengths, order })
    }

    /// The order of axes for which the fewest words must be copied; that of an earlier part if there are several.
    fn common_order(&self, parts: &[ValueId]) -> Lengths {
        let copied = |order: &Lengths| -> usize {
            let views = parts.iter().filter(|part| !self.is_known(**part)).map(|part| &self.views[part.0]);
            views.filter(|view| !view.is_dense(order)).map(View::count).sum()
        };
        let orders = parts.iter().map(|part| self.views[part.0].order());
        orders.min_by_key(copied).expect("there are parts to join")
    }
}

impl Step for Concat {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let (pitch, inputs) = (self.runs.iter().sum::<usize>(), call.inputs);
        spread(call.outputs[0], pitch, self.rows * pitch, call.threads, |first, out| {
            for (row, mut out) in out.chunks_mut(pitch).enumerate() {
                for (input, run) in inputs.iter().zip(&self.runs) {
                    let (part, rest) = out.split_at_mut(*run);
                    part.copy_from_slice(&input[(first + row) * run..][..*run]);
                    out = rest;
                }
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let kernel = CopyKernel { dtype: DType::U32 };
        let pitch = self.runs.iter().sum();
        let mut offset = 0;
        let mut dispatches = Vec::with_capacity(self.runs.len());
        for (part, run) in self.runs.iter().enumerate() {
            let place = OutputRuns { offset, count: self.rows * run, run: *run, pitch };
            dispatches.push(Dispatch {
                key: kernel.key(),
                shader: kernel.shader(),
                buffers: [Bound::Input(part), Bound::Output(0)].into_iter().collect(),
                launch: kernel.launch(0, &place, facts.most_groups),
            });
            offset += run;
        }
        DeviceWork { temporary: Vec::new(), dispatches }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check};
    use super::*;
    use crate::network::WordKind;

    #[test]
    fn parts_stand_side_by_side_along_any_axis() {
        for (lengths, axis, along) in [
            (vec![0], 0, vec![3, 0, 2]),
            (vec![2, 0, 3], 1, vec![4, 1]),
            (vec![1, 0, 5, 6], 1, vec![3, 8, 1]),
            (vec![2, 3, 0, 4], 2, vec![2, 2]),
            (vec![2, 3, 2, 2, 0], 4, vec![1, 2]),
            (vec![2, 0], 1, vec![0, 0]),
            (vec![0, 3], 1, vec![3, 2]),
            // Enough values for several threads.
            (vec![1, 0, 120, 90], 1, vec![8, 5]),
        ] {
            let of = |length| {
                let mut lengths = lengths.clone();
                lengths[axis] = length;
                lengths
            };
            let parts: Vec<Words> =
                along.iter().zip(1..).map(|(length, seed)| Words::noise(&of(*length), seed)).collect();
            let all = of(along.iter().sum());
            let wanted = by_place(&all, |place| {
                let (mut part, mut place) = (0, place.to_vec());
                while place[axis] >= along[part] {
                    place[axis] -= along[part];
                    part += 1;
                }
                parts[part].float(&place)
            });
            check(&parts, true, &[Words::floats(&wanted, &all)], &|net, x| vec![net.concat(x, axis).unwrap()]);
        }
    }

    #[test]
    fn parts_that_differ_in_other_lengths_or_types_are_refused() {
        let mut net = NetworkBuilder::new(&crate::Context::on_host());
        let one = net.input(WordKind::F32, &[2, 3]).unwrap();
        let two = net.input(WordKind::F32, &[2, 4]).unwrap();
        let three = net.input(WordKind::I32, &[2, 3]).unwrap();
        assert!(net.concat(&[one, two], 0).is_err() && net.concat(&[one, three], 0).is_err());
        assert!(net.concat(&[], 0).is_err() && net.concat(&[one], 2).is_err());
    }
}
