//! Picks values by index. Known indices with equal distances are a view; other indices are read in every run.
//!
//! Invariants: negative indices count from the end. Indices that are out of range are an error if they are known, and are
//! moved to the nearest end otherwise, because a device cannot report an error.

#[cfg(not(target_arch = "wasm32"))]
use std::fmt::Write;

use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::shape::Around;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::{Lengths, ValueId, straight};

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;
use super::by_word::{around_in, with_length};

/// WGSL of [`resolve`].
#[cfg(not(target_arch = "wasm32"))]
const RESOLVE: &str = "
fn resolve(index: u32, length: u32) -> u32 {
    let at = bitcast<i32>(index);
    return u32(clamp(select(at, at + i32(length), at < 0), 0, i32(length) - 1));
}
";

/// The position that an index means.
fn resolve(index: i32, length: usize) -> usize {
    let length = (length as u64).cast_signed();
    let at = i64::from(index);
    (if at < 0 { at + length } else { at }).clamp(0, length - 1) as usize
}

/// The same `indices` positions of every row.
#[derive(Debug)]
struct Gather {
    around: Around,
    indices: usize,
}

/// Each value has its own position along the axis; `around` is the value that is read.
#[derive(Debug)]
struct GatherElements {
    around: Around,
    length: usize,
}

/// Runs of `run` values whose places are given by `lengths.len()` indices each.
#[derive(Debug)]
struct GatherNd {
    batches: usize,
    /// Runs per batch.
    runs: usize,
    run: usize,
    lengths: Lengths,
}

impl NetworkBuilder {
    /// The entries of an axis at these indices; the axes of the indices replace the axis.
    pub fn gather(&mut self, x: ValueId, indices: ValueId, axis: usize) -> Result<ValueId, TensorError> {
        let op = "gather";
        self.has_axis(op, x, axis)?;
        self.are_indices(op, indices)?;
        let lengths = Lengths::from_slice(self.lengths(x));
        let own = Lengths::from_slice(self.lengths(indices));
        let count = own.iter().product();
        let all: Lengths = lengths[..axis].iter().chain(&own).chain(&lengths[axis + 1..]).copied().collect();
        let picked = if let Some(indices) = self.known_integers(indices) {
            let positions = indices.into_iter().map(|index| {
                let at = i64::from(index) + if index < 0 { (lengths[axis] as u64).cast_signed() } else { 0 };
                usize::try_from(at).ok().filter(|at| *at < lengths[axis]).ok_or_else(|| {
                    let problem = format!("index {index} is out of range; axis {axis} has {} entries", lengths[axis]);
                    TensorError::Setting { op, problem }
                })
            });
            let positions: Vec<usize> = positions.collect::<Result<_, _>>()?;
            self.picked(x, axis, &positions)?
        } else {
            is_not_empty(op, lengths[axis], count, axis)?;
            let flat = self.reshaped(indices, &[count])?;
            self.gather_flat(x, flat, axis)?
        };
        self.reshaped(picked, &all)
    }

    /// The entries of an axis at known positions.
    pub(super) fn picked(&mut self, x: ValueId, axis: usize, positions: &[usize]) -> Result<ValueId, TensorError> {
        let step = match positions {
            [] | [_] => Some(1),
            [first, second, ..] => second.checked_sub(*first).filter(|step| *step > 0),
        };
        let is_even = |step: usize| positions.windows(2).all(|pair| pair[0] + step == pair[1]);
        if let Some(step) = step.filter(|step| is_even(*step)) {
            let start = positions.first().copied().unwrap_or(0);
            return Ok(self.sliced(x, axis, start, positions.len(), step));
        }
        let indices = positions.iter().map(|at| (*at as u32).cast_signed()).collect();
        let indices = self.integers(indices, &[positions.len()])?;
        self.gather_flat(x, indices, axis)
    }

    fn gather_flat(&mut self, x: ValueId, indices: ValueId, axis: usize) -> Result<ValueId, TensorError> {
        let count = self.lengths(indices)[0];
        let lengths = with_length(self.lengths(x), axis, count);
        let kind = self.kind(x);
        let along = self.along_axis(x, axis)?;
        let indices = self.straight(indices)?;
        let step = Gather { around: along.around, indices: count };
        self.add_one(step, &[along.memory, indices], NewValue { kind, lengths: &lengths, order: along.order })
    }

    /// The values whose positions along an axis are given one by one: the result has the lengths of the indices, which
    /// are at most those of `x` along the other axes.
    pub fn gather_elements(&mut self, x: ValueId, indices: ValueId, axis: usize) -> Result<ValueId, TensorError> {
        let op = "gather elements";
        self.has_axis(op, x, axis)?;
        self.are_indices(op, indices)?;
        let (lengths, own) = (Lengths::from_slice(self.lengths(x)), Lengths::from_slice(self.lengths(indices)));
        let fits = |at: usize| at == axis || own[at] <= lengths[at];
        if own.len() != lengths.len() || !(0..own.len()).all(fits) {
            let problem = format!("indices of {:?} do not fit {:?}", own.as_slice(), lengths.as_slice());
            return Err(TensorError::Mismatch { op, problem });
        }
        is_not_empty(op, lengths[axis], own.iter().product(), axis)?;
        let mut cut = x;
        for at in (0..own.len()).filter(|at| *at != axis && own[*at] < lengths[*at]) {
            cut = self.sliced(cut, at, 0, own[at], 1);
        }
        let kind = self.kind(x);
        let memories = [self.straight(cut)?, self.straight(indices)?];
        let around = around_in(self.lengths(cut), &straight(own.len()), axis);
        self.add_one(GatherElements { around, length: own[axis] }, &memories, NewValue::straight(kind, &own))
    }

    /// The parts of `x` whose places are the rows of the indices' last axis. The first `batch_dims` axes are shared.
    pub fn gather_nd(&mut self, x: ValueId, indices: ValueId, batch_dims: usize) -> Result<ValueId, TensorError> {
        let op = "gather nd";
        self.are_indices(op, indices)?;
        let (lengths, own) = (Lengths::from_slice(self.lengths(x)), Lengths::from_slice(self.lengths(indices)));
        let depth = own.last().copied().unwrap_or(0);
        let fits =
            batch_dims < own.len() && batch_dims + depth <= lengths.len() && lengths[..batch_dims] == own[..batch_dims];
        if !fits {
            let problem = format!(
                "indices of {:?} with {batch_dims} batch axes do not fit {:?}",
                own.as_slice(),
                lengths.as_slice()
            );
            return Err(TensorError::Mismatch { op, problem });
        }
        let (indexed, run) = lengths[batch_dims..].split_at(depth);
        let places = &own[batch_dims..own.len() - 1];
        let all: Lengths = own[..own.len() - 1].iter().chain(run).copied().collect();
        for (at, length) in indexed.iter().enumerate() {
            is_not_empty(op, *length, all.iter().product(), batch_dims + at)?;
        }
        let step = GatherNd {
            batches: lengths[..batch_dims].iter().product(),
            runs: places.iter().product(),
            run: run.iter().product(),
            lengths: indexed.into(),
        };
        let kind = self.kind(x);
        let memories = [self.straight(x)?, self.straight(indices)?];
        self.add_one(step, &memories, NewValue::straight(kind, &all))
    }

    fn are_indices(&self, op: &'static str, indices: ValueId) -> Result<(), TensorError> {
        match self.kind(indices) {
            WordKind::I32 => Ok(()),
            kind @ WordKind::F32 => Err(TensorError::WrongType { op, has: kind.dtype(), wants: "i32" }),
        }
    }
}

/// Fails if values of an empty axis are wanted.
fn is_not_empty(op: &'static str, length: usize, wanted: usize, axis: usize) -> Result<(), TensorError> {
    if length > 0 || wanted == 0 {
        return Ok(());
    }
    Err(TensorError::Mismatch { op, problem: format!("axis {axis} is empty and has no value to pick") })
}

impl Step for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let Around { outer, length, inner } = self.around;
        let (x, indices, count) = (call.inputs[0], call.integers(1), self.indices);
        spread(call.outputs[0], inner, outer * count * inner, call.threads, |first, out| {
            if inner == 1 {
                for (row, out) in out.iter_mut().enumerate() {
                    let row = first + row;
                    *out = x[row / count * length + resolve(indices[row % count], length)];
                }
                return;
            }
            for (row, out) in out.chunks_mut(inner).enumerate() {
                let row = first + row;
                let at = row / count * length + resolve(indices[row % count], length);
                out.copy_from_slice(&x[at * inner..][..inner]);
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let Around { outer, length, inner } = self.around;
        let wgsl = "
fn element(i: u32) -> u32 {
    let row = quotient(i, p.inner);
    let outer = quotient(row, p.indices);
    let at = outer * p.length + resolve(index[row - outer * p.indices], p.length);
    return in0[at * p.inner + (i - row * p.inner)];
}";
        let kernel = WordKernel {
            name: "gather step",
            inputs: &["in0", "index"],
            fields: &[("length", length), ("inner", inner), ("indices", self.indices)],
            vectors: &[],
            wgsl: &(RESOLVE.to_owned() + wgsl),
            count: outer * self.indices * inner,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

impl Step for GatherElements {
    fn name(&self) -> &'static str {
        "gather elements"
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let Around { outer, length, inner } = self.around;
        let (x, indices) = (call.inputs[0], call.integers(1));
        let slice = self.length * inner;
        spread(call.outputs[0], 1, outer * slice, call.threads, |first, out| {
            for (at, (out, index)) in out.iter_mut().zip(&indices[first..]).enumerate() {
                let at = first + at;
                *out = x[(at / slice * length + resolve(*index, length)) * inner + at % inner];
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let Around { outer, length, inner } = self.around;
        let wgsl = "
fn element(i: u32) -> u32 {
    let outer = quotient(i, p.slice);
    let column = i - quotient(i, p.inner) * p.inner;
    return in0[(outer * p.length + resolve(index[i], p.length)) * p.inner + column];
}";
        let kernel = WordKernel {
            name: "gather elements",
            inputs: &["in0", "index"],
            fields: &[("length", length), ("inner", inner), ("slice", self.length * inner)],
            vectors: &[],
            wgsl: &(RESOLVE.to_owned() + wgsl),
            count: outer * self.length * inner,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

impl GatherNd {
    /// Values per batch of the input.
    fn batch(&self) -> usize {
        self.lengths.iter().product::<usize>() * self.run
    }
}

impl Step for GatherNd {
    fn name(&self) -> &'static str {
        "gather nd"
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let (x, indices, depth) = (call.inputs[0], call.integers(1), self.lengths.len());
        let count = self.batches * self.runs * self.run;
        spread(call.outputs[0], self.run, count, call.threads, |first, out| {
            for (row, out) in out.chunks_mut(self.run).enumerate() {
                let row = first + row;
                let index = &indices[row * depth..][..depth];
                let of = index.iter().zip(&self.lengths);
                let place = of.fold(0, |place, (index, length)| place * length + resolve(*index, *length));
                out.copy_from_slice(&x[row / self.runs * self.batch() + place * self.run..][..self.run]);
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let depth = self.lengths.len();
        let mut vectors = vec![[0; 4]; depth.div_ceil(4)];
        for (at, length) in self.lengths.iter().enumerate() {
            vectors[at / 4][at % 4] = *length as u32;
        }
        let mut wgsl = RESOLVE.to_owned()
            + "
fn element(i: u32) -> u32 {
    let row = quotient(i, p.part);
    var place = 0u;
";
        for at in 0..depth {
            let length = format!("p.hook[{}][{}]", at / 4, at % 4);
            let _ = writeln!(wgsl, "    place = place * {length} + resolve(index[row * {depth}u + {at}u], {length});");
        }
        wgsl += "    return in0[quotient(row, p.runs) * p.batch + place * p.part + (i - row * p.part)];\n}";
        let kernel = WordKernel {
            name: &format!("gather nd with {depth} indices"),
            inputs: &["in0", "index"],
            fields: &[("runs", self.runs), ("part", self.run), ("batch", self.batch())],
            vectors: &vectors,
            wgsl: &wgsl,
            count: self.batches * self.runs * self.run,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check, contexts, index_of};
    use super::*;
    use crate::ops::context::Context;

    #[test]
    fn indices_pick_entries_of_any_axis_and_count_from_either_end() {
        for (lengths, axis, own) in [
            (vec![5], 0, vec![]),
            (vec![5], 0, vec![3]),
            (vec![4, 3], 0, vec![2, 2]),
            (vec![2, 6, 3, 2], 1, vec![4]),
            (vec![1, 3, 5, 4], 3, vec![2, 1]),
            (vec![2, 2, 3, 2, 4], 2, vec![5]),
            (vec![2, 3], 1, vec![0]),
            (vec![0, 3], 1, vec![2]),
            // Enough values for several threads.
            (vec![3, 40, 900], 1, vec![45]),
            (vec![60, 2, 50], 2, vec![900]),
        ] {
            let x = Words::noise(&lengths, 5);
            let length = lengths[axis] as i32;
            let count: usize = own.iter().product();
            let indices: Vec<i32> = (0..count as i32).map(|at| (at * 7 + 2) % (2 * length) - length).collect();
            let out = [&lengths[..axis], &own, &lengths[axis + 1..]].concat();
            let wanted = by_place(&out, |place| {
                let (before, rest) = place.split_at(axis);
                let (index, after) = rest.split_at(own.len());
                let at = indices[index_of(index, &own)].rem_euclid(length) as usize;
                x.float(&[before, &[at], after].concat())
            });
            let given = [x.clone(), Words::integers(&indices, &own)];
            check(&given, true, &[Words::floats(&wanted, &out)], &|net, x| vec![net.gather(x[0], x[1], axis).unwrap()]);
            let known = |net: &mut NetworkBuilder, x: &[ValueId]| {
                let indices = net.integers(indices.clone(), &own).unwrap();
                vec![net.gather(x[0], indices, axis).unwrap()]
            };
            check(&given[..1], true, &[Words::floats(&wanted, &out)], &known);
        }
    }

    #[test]
    fn known_indices_at_equal_distances_take_no_step() {
        let mut net = NetworkBuilder::new(&Context::on_host());
        let x = net.input(WordKind::F32, &[2, 9]).unwrap();
        let indices = net.integers(vec![1, 4, -2], &[3]).unwrap();
        net.gather(x, indices, 1).unwrap();
        assert!(net.steps.is_empty());
        let wrong = net.integers(vec![9], &[1]).unwrap();
        let error = net.gather(x, wrong, 1).unwrap_err().to_string();
        assert_eq!(error, "gather: index 9 is out of range; axis 1 has 9 entries");
    }

    #[test]
    fn indices_of_a_run_that_are_out_of_range_are_moved_to_the_nearest_end() {
        for context in contexts() {
            let mut net = NetworkBuilder::new(&context);
            let x = net.input(WordKind::I32, &[3]).unwrap();
            let indices = net.input(WordKind::I32, &[4]).unwrap();
            let picked = net.gather(x, indices, 0).unwrap();
            let mut network = net.build(&[picked]).unwrap();
            let x = context.tensor(&[7_i32, 8, 9], &[3]).unwrap();
            let indices = context.tensor(&[3_i32, -4, i32::MAX, i32::MIN], &[4]).unwrap();
            let got: Vec<i32> = network.run(&[x, indices]).unwrap()[0].read().unwrap();
            assert_eq!(got, [9, 7, 9, 7]);
        }
    }

    #[test]
    fn elements_are_picked_one_by_one() {
        for (lengths, own, axis) in [
            (vec![4], vec![6], 0),
            (vec![3, 4], vec![2, 4], 0),
            (vec![2, 3, 4], vec![2, 5, 3], 1),
            (vec![1, 3, 4, 2], vec![1, 3, 4, 3], 3),
            (vec![2, 3, 2, 2, 3], vec![1, 2, 2, 1, 2], 4),
            (vec![2, 3], vec![2, 0], 1),
        ] {
            let x = Words::noise(&lengths, 8);
            let length = lengths[axis] as i32;
            let count: usize = own.iter().product();
            let indices: Vec<i32> = (0..count as i32).map(|at| (at * 5 + 1) % (2 * length) - length).collect();
            let wanted = by_place(&own, |place| {
                let mut from = place.to_vec();
                from[axis] = indices[index_of(place, &own)].rem_euclid(length) as usize;
                x.float(&from)
            });
            let given = [x, Words::integers(&indices, &own)];
            let build = |net: &mut NetworkBuilder, x: &[ValueId]| vec![net.gather_elements(x[0], x[1], axis).unwrap()];
            check(&given, true, &[Words::floats(&wanted, &own)], &build);
        }
    }

    #[test]
    fn rows_of_indices_pick_parts() {
        for (lengths, own, batch) in [
            (vec![3, 4], vec![5, 2], 0),
            (vec![3, 4], vec![2, 2, 1], 0),
            (vec![2, 3, 4], vec![2, 3, 1], 1),
            (vec![2, 2, 3, 2], vec![2, 2, 4, 2], 2),
            (vec![2, 3, 2, 2, 2], vec![3, 5], 0),
            (vec![2, 3], vec![0, 2], 0),
        ] {
            let x = Words::noise(&lengths, 3);
            let depth = own[own.len() - 1];
            let count: usize = own.iter().product();
            let indices: Vec<i32> = (0..count)
                .map(|at| {
                    let length = lengths[batch + at % depth] as i32;
                    (at as i32 * 3 + 1) % (2 * length) - length
                })
                .collect();
            let out = [&own[..own.len() - 1], &lengths[batch + depth..]].concat();
            let wanted = by_place(&out, |place| {
                let (rows, rest) = place.split_at(own.len() - 1);
                let row = index_of(rows, &own[..own.len() - 1]);
                let index =
                    (0..depth).map(|at| indices[row * depth + at].rem_euclid(lengths[batch + at] as i32) as usize);
                let from: Vec<usize> =
                    place[..batch].iter().copied().chain(index).chain(rest.iter().copied()).collect();
                x.float(&from)
            });
            let given = [x, Words::integers(&indices, &own)];
            let build = |net: &mut NetworkBuilder, x: &[ValueId]| vec![net.gather_nd(x[0], x[1], batch).unwrap()];
            check(&given, true, &[Words::floats(&wanted, &out)], &build);
        }
    }
}
