//! Builds a network: values, views and steps in the order in which ops are added.
//!
//! Each kind of step adds its own methods in its own file (`steps`). This file has what they share: inputs, known values,
//! views, dense words, and adding a step. Nothing runs before [`NetworkBuilder::build`], except steps over known values.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytemuck::cast_slice;

use crate::ops::context::Context;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

use super::folded;
use super::layout::{LaidNetwork, NetworkLayout};
use super::map::MapStep;
use super::network::{ConstantShelf, Network};
use super::step::{Step, WordKind};
use super::value::{Lengths, Memory, MemoryId, Source, ValueId, View, dense_strides, in_order, straight};

/// A network under construction, for one context.
pub struct NetworkBuilder {
    pub(super) context: Context,
    pub(super) memories: Vec<Memory>,
    pub(super) views: Vec<View>,
    pub(super) steps: Vec<Placed>,
    pub(super) inputs: Vec<MemoryId>,
    /// Dense copies of views that were made already, by view and order.
    copies: BTreeMap<(usize, Lengths), MemoryId>,
    /// Bytes that known values may still take.
    known_left_bytes: u64,
    /// Whether steps over known values are computed at once.
    folds: bool,
}

/// A step with the memories that it reads and writes.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) work: Work,
    pub(super) inputs: Vec<MemoryId>,
    pub(super) outputs: Vec<MemoryId>,
}

/// Elementwise steps stand apart, because they can be fused with each other and with the step before.
#[derive(Debug)]
pub(super) enum Work {
    Map(MapStep),
    Other(Box<dyn Step>),
}

impl Work {
    pub(super) fn step(&self) -> &dyn Step {
        match self {
            Work::Map(map) => map,
            Work::Other(step) => step.as_ref(),
        }
    }
}

/// A new memory for an output: the type of its words, its lengths, and the order in which its axes lie in memory.
pub(super) struct NewValue<'a> {
    pub(super) kind: WordKind,
    pub(super) lengths: &'a [usize],
    pub(super) order: Lengths,
}

impl<'a> NewValue<'a> {
    /// A value whose axes lie in memory from first to last.
    pub(super) fn straight(kind: WordKind, lengths: &'a [usize]) -> NewValue<'a> {
        NewValue { kind, lengths, order: straight(lengths.len()) }
    }

    /// A value whose channels (axis 1) lie last.
    pub(super) fn channels_last(kind: WordKind, lengths: &'a [usize]) -> NewValue<'a> {
        NewValue { kind, lengths, order: super::value::channels_last(lengths.len()) }
    }
}

impl NetworkBuilder {
    pub fn new(context: &Context) -> NetworkBuilder {
        NetworkBuilder {
            context: context.clone(),
            memories: Vec::new(),
            views: Vec::new(),
            steps: Vec::new(),
            inputs: Vec::new(),
            copies: BTreeMap::new(),
            known_left_bytes: u64::MAX,
            folds: true,
        }
    }

    /// Limits the bytes of all values that are known from now on, together with those of the tables that describe steps:
    /// at most `bytes`, or `free_bytes` plus what the context has left of its budget on the host if that is less.
    pub fn limit_known(&mut self, free_bytes: u64, bytes: u64) {
        let budget = self.context.pool().available_bytes().unwrap_or(u64::MAX);
        self.known_left_bytes = bytes.min(free_bytes.saturating_add(budget));
    }

    /// Takes words from what known values may still take. Call this before the memory is allocated.
    pub fn claim_known(&mut self, op: &'static str, words: usize) -> Result<(), TensorError> {
        let (required_bytes, available_bytes) = ((words as u64).saturating_mul(4), self.known_left_bytes);
        match available_bytes.checked_sub(required_bytes) {
            Some(left) => {
                self.known_left_bytes = left;
                Ok(())
            }
            None => Err(TensorError::TooMuchKnown { op, required_bytes, available_bytes }),
        }
    }

    /// True if the network will run on a device.
    #[cfg_attr(target_arch = "wasm32", expect(clippy::unused_self, reason = "there are no devices"))]
    pub(super) fn has_device(&self) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        return self.context.side().is_some();
        #[cfg(target_arch = "wasm32")]
        false
    }

    // ---- values

    /// An input that every run of the network gets.
    pub fn input(&mut self, kind: WordKind, lengths: &[usize]) -> Result<ValueId, TensorError> {
        let id = self.memory_of(NewValue::straight(kind, lengths), Source::Input)?;
        self.inputs.push(self.views[id.0].memory);
        Ok(id)
    }

    /// A value of floats that is the same in every run.
    pub fn floats(&mut self, values: Vec<f32>, lengths: &[usize]) -> Result<ValueId, TensorError> {
        self.known_words(WordKind::F32, bytemuck::cast_vec(values), lengths)
    }

    /// A value of integers that is the same in every run.
    pub fn integers(&mut self, values: Vec<i32>, lengths: &[usize]) -> Result<ValueId, TensorError> {
        self.known_words(WordKind::I32, bytemuck::cast_vec(values), lengths)
    }

    fn known_words(&mut self, kind: WordKind, words: Vec<u32>, lengths: &[usize]) -> Result<ValueId, TensorError> {
        let shape = shape_of(lengths)?;
        if shape != words.len() {
            return Err(TensorError::WrongCount {
                shape: Shape::new(&lengths[..lengths.len().min(crate::ops::shape::MAX_RANK)])?,
                wants: shape,
                has: words.len(),
            });
        }
        self.claim_known("constant", words.len())?;
        self.memory_of(NewValue::straight(kind, lengths), Source::Known(Arc::new(words)))
    }

    pub fn lengths(&self, value: ValueId) -> &[usize] {
        &self.views[value.0].lengths
    }

    pub fn kind(&self, value: ValueId) -> WordKind {
        self.memories[self.views[value.0].memory].kind
    }

    /// True if the value is the same in every run.
    pub fn is_known(&self, value: ValueId) -> bool {
        matches!(self.memories[self.views[value.0].memory].source, Source::Known(_))
    }

    /// The words of a value that is the same in every run, first axis slowest; `None` for other values, and for repeated
    /// ones that have more words than may be known.
    pub fn known(&self, value: ValueId) -> Option<Vec<u32>> {
        let view = &self.views[value.0];
        let Source::Known(words) = &self.memories[view.memory].source else { return None };
        if (view.count() as u64).saturating_mul(4) > self.known_left_bytes && view.count() > words.len() {
            return None;
        }
        if view.is_dense(&straight(view.lengths.len())) {
            return Some(words[..view.count()].to_vec());
        }
        Some(folded::read(words, view))
    }

    /// The floats of a known value; `None` for other values and types.
    pub fn known_floats(&self, value: ValueId) -> Option<Vec<f32>> {
        let words = self.known(value).filter(|_| self.kind(value) == WordKind::F32)?;
        Some(bytemuck::cast_vec(words))
    }

    /// The integers of a known value; `None` for other values and types.
    pub fn known_integers(&self, value: ValueId) -> Option<Vec<i32>> {
        let words = self.known(value).filter(|_| self.kind(value) == WordKind::I32)?;
        Some(bytemuck::cast_vec(words))
    }

    // ---- views

    /// The same values with their axes in another order: axis `order[i]` becomes axis `i`.
    pub fn permuted(&mut self, value: ValueId, order: &[usize]) -> ValueId {
        let View { memory, lengths, strides, offset } = self.views[value.0].clone();
        self.view(View { memory, lengths: in_order(&lengths, order), strides: in_order(&strides, order), offset })
    }

    /// The same values with other lengths. Copies only if no strides describe the result.
    pub fn reshaped(&mut self, value: ValueId, lengths: &[usize]) -> Result<ValueId, TensorError> {
        let view = self.views[value.0].clone();
        let count = shape_of(lengths)?;
        if count != view.count() {
            let problem = format!("{:?} has {} values, {lengths:?} has {count}", view.lengths.as_slice(), view.count());
            return Err(TensorError::Mismatch { op: "reshape", problem });
        }
        if let Some(strides) = folded::reshaped_strides(&view, lengths) {
            return Ok(self.view(View { lengths: lengths.into(), strides, ..view }));
        }
        let memory = self.dense(value, &straight(view.lengths.len()))?;
        let strides = dense_strides(lengths, &straight(lengths.len()));
        Ok(self.view(View { memory, lengths: lengths.into(), strides, offset: 0 }))
    }

    /// `length` values of an axis, from `start` on, every `step`th.
    pub fn sliced(&mut self, value: ValueId, axis: usize, start: usize, length: usize, step: usize) -> ValueId {
        let mut view = self.views[value.0].clone();
        view.offset += if length == 0 { 0 } else { start * view.strides[axis] };
        // A single value has no next one, however far it would be.
        view.strides[axis] *= if length > 1 { step } else { 1 };
        view.lengths[axis] = length;
        self.view(view)
    }

    /// The value repeated along axes of length 1 and along new first axes, up to these lengths. Fails if the lengths do
    /// not fit.
    pub fn repeated(&mut self, value: ValueId, lengths: &[usize]) -> Result<ValueId, TensorError> {
        let view = self.views[value.0].clone();
        shape_of(lengths)?;
        let skip = lengths.len().checked_sub(view.lengths.len());
        let fits = |skip: usize| lengths[skip..].iter().zip(&view.lengths).all(|(to, from)| from == to || *from == 1);
        let Some(skip) = skip.filter(|skip| fits(*skip)) else {
            let problem = format!("{:?} does not broadcast to {lengths:?}", view.lengths.as_slice());
            return Err(TensorError::Mismatch { op: "expand", problem });
        };
        let strides = (0..lengths.len())
            .map(|axis| match axis.checked_sub(skip) {
                Some(own) if view.lengths[own] == lengths[axis] => view.strides[own],
                _ => 0,
            })
            .collect();
        Ok(self.view(View { lengths: lengths.into(), strides, ..view }))
    }

    pub(super) fn view(&mut self, view: View) -> ValueId {
        self.views.push(view);
        ValueId(self.views.len() - 1)
    }

    // ---- steps

    /// The memory with the value's words and no others, dense in this order of axes. Copies the words if they lie
    /// otherwise.
    pub(super) fn dense(&mut self, value: ValueId, order: &[usize]) -> Result<MemoryId, TensorError> {
        let view = &self.views[value.0];
        if view.is_dense(order) && view.count() == self.memories[view.memory].words {
            return Ok(view.memory);
        }
        let key = (value.0, Lengths::from_slice(order));
        if let Some(memory) = self.copies.get(&key) {
            return Ok(*memory);
        }
        let copy = self.copied(value, order)?;
        let memory = self.views[copy.0].memory;
        self.copies.insert(key, memory);
        Ok(memory)
    }

    /// Like [`NetworkBuilder::dense`], with the axes from first to last.
    pub(super) fn straight(&mut self, value: ValueId) -> Result<MemoryId, TensorError> {
        let rank = self.lengths(value).len();
        self.dense(value, &straight(rank))
    }

    /// Like [`NetworkBuilder::dense`], with the channels (axis 1) last.
    pub(super) fn channels_last(&mut self, value: ValueId) -> Result<MemoryId, TensorError> {
        let rank = self.lengths(value).len();
        self.dense(value, &super::value::channels_last(rank))
    }

    /// Adds a step, and returns a value for each of its outputs. If everything that the step reads is known, the step is
    /// computed now.
    pub(super) fn add(
        &mut self,
        step: impl Step + 'static,
        inputs: &[MemoryId],
        outputs: Vec<NewValue<'_>>,
    ) -> Result<Vec<ValueId>, TensorError> {
        self.place(Work::Other(Box::new(step)), inputs, outputs)
    }

    /// Like [`NetworkBuilder::add`], for a step with one output.
    pub(super) fn add_one(
        &mut self,
        step: impl Step + 'static,
        inputs: &[MemoryId],
        output: NewValue<'_>,
    ) -> Result<ValueId, TensorError> {
        self.add(step, inputs, vec![output]).map(|values| values[0])
    }

    pub(super) fn place(
        &mut self,
        work: Work,
        inputs: &[MemoryId],
        outputs: Vec<NewValue<'_>>,
    ) -> Result<Vec<ValueId>, TensorError> {
        let known: Option<Vec<Arc<Vec<u32>>>> = inputs
            .iter()
            .map(|memory| match &self.memories[*memory].source {
                Source::Known(words) => Some(Arc::clone(words)),
                _ => None,
            })
            .collect();
        let mut counts = Vec::with_capacity(outputs.len());
        for output in &outputs {
            counts.push(shape_of(output.lengths)?);
        }
        if let Some(known) = known.filter(|_| self.folds) {
            let scratch = work.step().scratch(self.context.threads());
            self.claim_known(work.step().name(), counts.iter().fold(scratch, |sum, count| sum.saturating_add(*count)))?;
            let inputs: Vec<&[u32]> = known.iter().map(|words| words.as_slice()).collect();
            let made = folded::compute(work.step(), &inputs, &counts, self.context.threads())?;
            return outputs
                .into_iter()
                .zip(made)
                .map(|(output, words)| self.memory_of(output, Source::Known(Arc::new(words))))
                .collect();
        }
        let values = outputs.into_iter().map(|output| self.memory_of(output, Source::Step));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let memories = values.iter().map(|value| self.views[value.0].memory).collect();
        self.steps.push(Placed { work, inputs: inputs.to_vec(), outputs: memories });
        Ok(values)
    }

    /// Compiles the network. Runs return these outputs, dense, with their axes from first to last.
    pub fn build(self, outputs: &[ValueId]) -> Result<Network, TensorError> {
        self.build_with(outputs, None)
    }

    /// Like [`NetworkBuilder::build`]; the network takes the tensors of its known values from a shelf.
    pub fn build_with(
        mut self,
        outputs: &[ValueId],
        shelf: Option<&dyn ConstantShelf>,
    ) -> Result<Network, TensorError> {
        let (memories, lengths) = self.returned(outputs)?;
        Network::of(self, &memories, lengths, shelf)
    }

    /// What the network with these outputs would need. Lends no memory and compiles nothing.
    pub fn layout(mut self, outputs: &[ValueId]) -> Result<NetworkLayout, TensorError> {
        let (memories, _) = self.returned(outputs)?;
        Ok(LaidNetwork::of(self, &memories).layout)
    }

    /// The memories and the shapes of the values that runs return.
    fn returned(&mut self, outputs: &[ValueId]) -> Result<(Vec<MemoryId>, Vec<Shape>), TensorError> {
        // A known output is written in every run, so it is not written here as well.
        self.folds = false;
        let mut memories = Vec::with_capacity(outputs.len());
        let mut lengths = Vec::with_capacity(outputs.len());
        for output in outputs {
            memories.push(self.straight(*output)?);
            lengths.push(Shape::new(self.lengths(*output))?);
        }
        Ok((memories, lengths))
    }

    fn memory_of(&mut self, output: NewValue<'_>, source: Source) -> Result<ValueId, TensorError> {
        let NewValue { kind, lengths, order } = output;
        let words = shape_of(lengths)?;
        self.memories.push(Memory { kind, words, source });
        let strides = dense_strides(lengths, &order);
        let memory = self.memories.len() - 1;
        Ok(self.view(View { memory, lengths: lengths.into(), strides, offset: 0 }))
    }
}

/// The number of values. Fails if there are too many to count in 32 bits.
fn shape_of(lengths: &[usize]) -> Result<usize, TensorError> {
    let most = u64::from(u32::MAX);
    let count = lengths.iter().try_fold(1_u64, |count, length| count.checked_mul((*length).max(1) as u64));
    match count.filter(|count| *count <= most) {
        Some(_) => Ok(lengths.iter().product()),
        None => Err(TensorError::TooManyValues { shape: lengths.to_vec(), most }),
    }
}

pub(super) fn bytes(words: &[u32]) -> &[u8] {
    cast_slice(words)
}
