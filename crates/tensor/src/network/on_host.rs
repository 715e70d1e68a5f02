//! Runs a network on the host: slots are blocks of the context's pool, and each step is a call over slices.
//!
//! Invariant: a run allocates no memory but the tensors of its results; a run over the caller's words allocates none.

use std::sync::Arc;

use bytemuck::{cast_slice, cast_slice_mut};
use smallvec::SmallVec;

use crate::ops::context::Context;
use crate::ops::error::TensorError;
use crate::ops::memory::Block;
use crate::ops::shape::Shape;
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;

use super::layout::{Laid, LaidStep, Place};
use super::step::{HostCall, WordKind};

const OP: &str = "network";

pub(super) struct OnHost {
    laid: Laid,
    slots: Vec<Option<Block>>,
    constants: Vec<Arc<Block>>,
}

/// The memory of one run.
struct RunMemory<'a> {
    slots: &'a mut [Option<Block>],
    outputs: SmallVec<[Option<Block>; 4]>,
    constants: &'a [Arc<Block>],
    inputs: &'a [&'a [u32]],
}

impl OnHost {
    pub(super) fn prepare(context: &Context, laid: Laid, constants: &[Tensor]) -> Result<OnHost, TensorError> {
        let slots = laid.slots.iter().map(|words| context.pool().lend(OP, words * 4).map(Some));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let constants = constants.iter().map(|tensor| tensor.storage().host(tensor.asking(OP)));
        Ok(OnHost { slots, constants: constants.collect::<Result<_, _>>()?, laid })
    }

    pub(super) fn run(
        &mut self,
        context: &Context,
        inputs: &[Tensor],
        outputs: &[(WordKind, Shape)],
    ) -> Result<Vec<Tensor>, TensorError> {
        let mut blocks: SmallVec<[(Arc<Block>, usize); 4]> = SmallVec::new();
        for tensor in inputs {
            blocks.push((tensor.storage().host(tensor.asking(OP))?, tensor.offset()));
        }
        let words: SmallVec<[&[u32]; 4]> =
            blocks.iter().map(|(block, offset)| &cast_slice(block.bytes())[*offset..]).collect();
        let blocks = self.compute(context, &words)?.into_iter();
        let tensor = |(block, (kind, shape)): (Block, &(WordKind, Shape))| {
            Tensor::over(Storage::on_host(context, block), shape.clone(), kind.dtype(), 0)
        };
        Ok(blocks.zip(outputs).map(tensor).collect())
    }

    /// Runs over words of the caller. Inputs and outputs have as many words as the network's.
    pub(super) fn run_words(
        &mut self,
        context: &Context,
        inputs: &[&[u32]],
        outputs: &mut [&mut [u32]],
    ) -> Result<(), TensorError> {
        for (block, out) in self.compute(context, inputs)?.iter().zip(outputs) {
            out.copy_from_slice(whole(Some(block), out.len()));
        }
        Ok(())
    }

    /// Runs all steps. Returns the memory of the outputs.
    fn compute(&mut self, context: &Context, inputs: &[&[u32]]) -> Result<SmallVec<[Block; 4]>, TensorError> {
        let mut outputs = SmallVec::new();
        for words in &self.laid.outputs {
            outputs.push(Some(context.pool().lend(OP, words * 4)?));
        }
        let mut memory = RunMemory { slots: &mut self.slots, outputs, constants: &self.constants, inputs };
        let (steps, threads) = (&self.laid.steps, context.threads());
        let mut run = || steps.iter().for_each(|step| memory.step(step, threads));
        #[cfg(not(target_arch = "wasm32"))]
        if threads > 1 {
            // All steps run on a thread of the pool. Otherwise this thread would sleep while a step is divided, and wake
            // up for the next one.
            rayon::join(run, || ());
        } else {
            run();
        }
        #[cfg(target_arch = "wasm32")]
        run();
        Ok(memory.outputs.into_iter().flatten().collect())
    }
}

impl RunMemory<'_> {
    fn step(&mut self, step: &LaidStep, threads: usize) {
        if step.outputs.iter().all(|(_, words)| *words == 0) {
            return;
        }
        let mut outputs: SmallVec<[Block; 3]> = step.outputs.iter().map(|(place, _)| self.take(*place)).collect();
        let mut scratch: SmallVec<[Block; 1]> = step.temporary.iter().map(|(place, _)| self.take(*place)).collect();
        {
            let inputs: SmallVec<[&[u32]; 16]> =
                step.inputs.iter().map(|(place, words)| self.words(*place, *words)).collect();
            let scratch = scratch.first_mut().zip(step.temporary.first());
            let scratch = scratch.map(|(block, (_, words))| &mut cast_slice_mut(block.bytes_mut())[..*words]);
            let slices = outputs.iter_mut().zip(&step.outputs);
            let mut slices: SmallVec<[&mut [u32]; 3]> =
                slices.map(|(block, (_, words))| &mut cast_slice_mut(block.bytes_mut())[..*words]).collect();
            step.step.host(HostCall {
                inputs: &inputs,
                outputs: &mut slices,
                scratch: scratch.unwrap_or_default(),
                threads,
            });
        }
        let lent = outputs.into_iter().zip(&step.outputs).chain(scratch.into_iter().zip(&step.temporary));
        for (block, (place, _)) in lent {
            *self.home(*place) = Some(block);
        }
    }

    fn take(&mut self, place: Place) -> Block {
        self.home(place).take().expect("a step writes each memory once")
    }

    fn home(&mut self, place: Place) -> &mut Option<Block> {
        match place {
            Place::Slot(at) => &mut self.slots[at],
            Place::Output(at) => &mut self.outputs[at],
            Place::Input(_) | Place::Constant(_) => unreachable!("steps write slots and outputs"),
        }
    }

    fn words(&self, place: Place, words: usize) -> &[u32] {
        match place {
            Place::Input(at) => &self.inputs[at][..words],
            Place::Constant(at) => &cast_slice(self.constants[at].bytes())[..words],
            Place::Slot(at) => whole(self.slots[at].as_ref(), words),
            Place::Output(at) => whole(self.outputs[at].as_ref(), words),
        }
    }
}

fn whole(block: Option<&Block>, words: usize) -> &[u32] {
    let block = block.expect("what a step reads is not written");
    &cast_slice(block.bytes())[..words]
}
