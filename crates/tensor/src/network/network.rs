//! A network that is ready to run.

use std::sync::Arc;

use crate::ops::context::Context;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::context::DeviceSide;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;
use crate::ops::tensor::Tensor;

use super::builder::{NetworkBuilder, Placed, Work};
use super::fuse::fuse;
#[cfg(not(target_arch = "wasm32"))]
use super::on_device::OnDevice;
use super::on_host::OnHost;
use super::slots::{Lifetime, plan};
use super::step::{Step, WordKind};
use super::value::{Memory, MemoryId, Source};

/// Where a network gets the tensors of its known values, so that networks can share them.
pub trait ConstantShelf {
    /// The tensor with these words.
    fn constant(&self, context: &Context, kind: WordKind, words: &[u32]) -> Result<Tensor, TensorError>;
}

/// A compiled network. It runs for one size of inputs, on the side of its context at the time when it was built.
pub struct Network {
    context: Context,
    inputs: Vec<(WordKind, Shape)>,
    outputs: Vec<(WordKind, Shape)>,
    names: Vec<&'static str>,
    constants: Vec<Tensor>,
    planned_words: usize,
    moved_words: usize,
    side: Side,
}

enum Side {
    Host(OnHost),
    #[cfg(not(target_arch = "wasm32"))]
    Device(Box<dyn DeviceRun>),
}

/// A network on a device. A trait object, because a proof that a network is `Send` would otherwise go through all of wgpu's
/// types, deeper than the compiler's default recursion limit.
#[cfg(not(target_arch = "wasm32"))]
pub(super) trait DeviceRun: Send + Sync {
    fn run(
        &mut self,
        context: &Context,
        inputs: &[Tensor],
        outputs: &[(WordKind, Shape)],
    ) -> Result<Vec<Tensor>, TensorError>;

    /// Records a run over buffers of the caller.
    fn record_over(
        &mut self,
        recording: &mut vramp_gpu::Recording,
        inputs: &[&vramp_gpu::Buffer],
        outputs: &[&vramp_gpu::Buffer],
    ) -> Result<(), TensorError>;

    /// Dispatches of a run.
    fn dispatches(&self) -> usize;

    /// True if the network was compiled for this device.
    fn is_on(&self, side: &Arc<DeviceSide>) -> bool;
}

/// Where the words of a memory are during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Input(usize),
    Constant(usize),
    Slot(usize),
    Output(usize),
}

/// The steps of a network with the places of what they read and write.
pub(super) struct Laid {
    pub(super) steps: Vec<LaidStep>,
    /// Words of each slot.
    pub(super) slots: Vec<usize>,
    /// Words of each output.
    pub(super) outputs: Vec<usize>,
}

pub(super) struct LaidStep {
    pub(super) step: Box<dyn Step>,
    /// Places and their numbers of words.
    pub(super) inputs: Vec<(Place, usize)>,
    pub(super) outputs: Vec<(Place, usize)>,
    /// Slots of temporary memory.
    pub(super) temporary: Vec<(Place, usize)>,
}

impl Network {
    pub(super) fn of(
        mut builder: NetworkBuilder,
        outputs: &[MemoryId],
        shapes: Vec<Shape>,
        shelf: Option<&dyn ConstantShelf>,
    ) -> Result<Network, TensorError> {
        let outputs = own_outputs(&mut builder, outputs);
        let NetworkBuilder { context, memories, steps, inputs, .. } = builder;
        #[cfg(not(target_arch = "wasm32"))]
        let device = context.side();
        #[cfg(not(target_arch = "wasm32"))]
        let facts = device.as_ref().map(super::on_device::facts);
        #[cfg(not(target_arch = "wasm32"))]
        let most_bound = facts.as_ref().map_or(8, |facts| facts.limits.storage_buffers_per_stage as usize);
        #[cfg(target_arch = "wasm32")]
        let most_bound = 8;
        let steps = fuse(steps, &memories, &outputs, most_bound);
        let names = steps.iter().map(|placed| placed.work.step().name()).collect();

        let mut constants = Vec::new();
        let mut places: Vec<Option<Place>> = vec![None; memories.len()];
        for (at, output) in outputs.iter().enumerate() {
            places[*output] = Some(Place::Output(at));
        }
        for (at, input) in inputs.iter().enumerate() {
            places[*input] = Some(Place::Input(at));
        }
        for memory in steps.iter().flat_map(|step| &step.inputs) {
            let (Source::Known(words), None) = (&memories[*memory].source, places[*memory]) else { continue };
            let tensor = constant(&context, memories[*memory].kind, words, shelf)?;
            places[*memory] = Some(Place::Constant(constants.len()));
            constants.push(tensor);
        }

        #[cfg(not(target_arch = "wasm32"))]
        let works: Option<Vec<_>> =
            facts.as_ref().map(|facts| steps.iter().map(|placed| placed.work.step().device(facts)).collect());
        let temporary: Vec<Vec<usize>> = steps
            .iter()
            .enumerate()
            .map(|(at, placed)| {
                #[cfg(not(target_arch = "wasm32"))]
                if let Some(works) = &works {
                    return works[at].temporary.clone();
                }
                let _ = at;
                let words = placed.work.step().scratch(context.threads());
                if words > 0 { vec![words] } else { Vec::new() }
            })
            .collect();
        let moved_words = steps
            .iter()
            .flat_map(|step| step.inputs.iter().chain(&step.outputs))
            .map(|memory| memories[*memory].words)
            .sum();
        let laid = lay(steps, &memories, &outputs, places, &temporary);
        let planned_words = laid.slots.iter().sum::<usize>() + laid.outputs.iter().sum::<usize>();
        let kinds = |of: &[MemoryId]| of.iter().map(|memory| memories[*memory].kind).collect::<Vec<_>>();
        let input_shapes = inputs.iter().map(|memory| Shape::new(&[memories[*memory].words]));
        let input_shapes = input_shapes.collect::<Result<Vec<_>, _>>()?;

        #[cfg(not(target_arch = "wasm32"))]
        let side = match (device, works) {
            (Some(device), Some(works)) => {
                Side::Device(Box::new(OnDevice::prepare(&context, &device, laid, works, &constants)?))
            }
            _ => Side::Host(OnHost::prepare(&context, laid, &constants)?),
        };
        #[cfg(target_arch = "wasm32")]
        let side = Side::Host(OnHost::prepare(&context, laid, &constants)?);
        Ok(Network {
            inputs: kinds(&inputs).into_iter().zip(input_shapes).collect(),
            outputs: kinds(&outputs).into_iter().zip(shapes).collect(),
            context,
            names,
            constants,
            planned_words,
            moved_words,
            side,
        })
    }

    /// Runs the network. An input is a tensor of f32 or i32, as declared, with as many values as declared. The results
    /// are new tensors; on a device they are computed when they are read, or when the context is flushed.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, TensorError> {
        let op = "network";
        if inputs.len() != self.inputs.len() {
            let problem = format!("it has {} inputs, got {}", self.inputs.len(), inputs.len());
            return Err(TensorError::Setting { op, problem });
        }
        for (tensor, (kind, shape)) in inputs.iter().zip(&self.inputs) {
            tensor.check(op)?;
            if tensor.dtype() != kind.dtype() {
                let wants = kind.dtype().name();
                return Err(TensorError::WrongType { op, has: tensor.dtype(), wants });
            }
            if tensor.count() != shape.count() {
                let shape = shape.clone();
                return Err(TensorError::WrongCount { wants: shape.count(), shape, has: tensor.count() });
            }
            if !tensor.context().is(&self.context) {
                return Err(TensorError::Foreign { op });
            }
        }
        match &mut self.side {
            Side::Host(host) => host.run(&self.context, inputs, &self.outputs),
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => device.run(&self.context, inputs, &self.outputs),
        }
    }

    /// Runs a network on the host over words of the caller, which are f32 bits or i32: as many as each input and output
    /// has. Allocates nothing in the second run. Fails if the network is on a device.
    pub fn run_words(&mut self, inputs: &[&[u32]], outputs: &mut [&mut [u32]]) -> Result<(), TensorError> {
        let given = inputs.iter().map(|words| words.len()).chain(outputs.iter().map(|words| words.len()));
        self.check_words((inputs.len(), outputs.len()), given, |given, wanted| given == wanted)?;
        match &mut self.side {
            Side::Host(host) => host.run_words(&self.context, inputs, outputs),
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(_) => {
                let problem = "it was built for a device, and words are on the host".to_owned();
                Err(TensorError::Setting { op: "network", problem })
            }
        }
    }

    /// Records a run on the device over buffers of the caller, as part of the caller's submit. Each buffer has the words of
    /// an input or output, which are f32 bits or i32, rounded up to whole groups of four. Allocates nothing. Fails if the
    /// network is on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn record(
        &mut self,
        recording: &mut vramp_gpu::Recording,
        inputs: &[&vramp_gpu::Buffer],
        outputs: &[&vramp_gpu::Buffer],
    ) -> Result<(), TensorError> {
        let given = inputs.iter().chain(outputs).map(|buffer| (buffer.bytes() / 4) as usize);
        self.check_words((inputs.len(), outputs.len()), given, |given, wanted| given >= wanted)?;
        match &mut self.side {
            Side::Host(_) => {
                let problem = "it was built for the host, and buffers are on a device".to_owned();
                Err(TensorError::Setting { op: "network", problem })
            }
            Side::Device(device) => device.record_over(recording, inputs, outputs),
        }
    }

    /// Fails unless there is memory for each input and output, and all of it fits.
    fn check_words(
        &self,
        counts: (usize, usize),
        given: impl Iterator<Item = usize> + Clone,
        fits: impl Fn(usize, usize) -> bool,
    ) -> Result<(), TensorError> {
        let wanted = self.inputs.iter().chain(&self.outputs).map(|(_, shape)| shape.count());
        let all_fit = given.clone().zip(wanted.clone()).all(|(given, wanted)| fits(given, wanted));
        if counts == (self.inputs.len(), self.outputs.len()) && all_fit {
            return Ok(());
        }
        let (given, wanted): (Vec<usize>, Vec<usize>) = (given.collect(), wanted.collect());
        let problem = format!("its inputs and outputs have {wanted:?} words, got {given:?}");
        Err(TensorError::Setting { op: "network", problem })
    }

    /// The type and shape of each output.
    pub fn outputs(&self) -> &[(WordKind, Shape)] {
        &self.outputs
    }

    /// True if the network runs on a device.
    pub fn is_on_device(&self) -> bool {
        match &self.side {
            Side::Host(_) => false,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(_) => true,
        }
    }

    /// True if the network can run on tensors of this context as the context is now. A network stays on the side for which
    /// it was built; the context may have moved since.
    pub fn is_for(&self, context: &Context) -> bool {
        let is_side = match &self.side {
            #[cfg(not(target_arch = "wasm32"))]
            Side::Host(_) => context.side().is_none(),
            #[cfg(target_arch = "wasm32")]
            Side::Host(_) => true,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => context.side().is_some_and(|side| device.is_on(&side)),
        };
        is_side && self.context.is(context)
    }

    /// The ops of the steps, in order, after fusion.
    pub fn steps(&self) -> &[&'static str] {
        &self.names
    }

    /// Dispatches of a run; 0 on the host.
    pub fn dispatches(&self) -> usize {
        match &self.side {
            Side::Host(_) => 0,
            #[cfg(not(target_arch = "wasm32"))]
            Side::Device(device) => device.dispatches(),
        }
    }

    /// Bytes that a run needs for intermediate and final values.
    pub fn working_bytes(&self) -> usize {
        self.planned_words * 4
    }

    /// Words that all steps of a run read and write together.
    pub fn moved_words(&self) -> usize {
        self.moved_words
    }

    /// The tensors of the known values.
    pub fn constants(&self) -> &[Tensor] {
        &self.constants
    }
}

fn constant(
    context: &Context,
    kind: WordKind,
    words: &Arc<Vec<u32>>,
    shelf: Option<&dyn ConstantShelf>,
) -> Result<Tensor, TensorError> {
    match shelf {
        Some(shelf) => shelf.constant(context, kind, words),
        None => context.tensor_from_bytes(bytemuck::cast_slice(words), &[words.len()], kind.dtype()),
    }
}

/// Gives every output a memory of its own that a step writes, because runs return new tensors.
fn own_outputs(builder: &mut NetworkBuilder, outputs: &[MemoryId]) -> Vec<MemoryId> {
    let mut own: Vec<MemoryId> = Vec::with_capacity(outputs.len());
    for output in outputs {
        if matches!(builder.memories[*output].source, Source::Step) && !own.contains(output) {
            own.push(*output);
            continue;
        }
        own.push(builder.copied_apart(*output));
    }
    own
}

impl NetworkBuilder {
    /// A copy of a memory that a step writes in every run, even if the words are known.
    fn copied_apart(&mut self, memory: MemoryId) -> MemoryId {
        let Memory { kind, words, .. } = self.memories[memory];
        let step = super::map::MapStep::copy(kind, words);
        self.memories.push(Memory { kind, words, source: Source::Step });
        let copy = self.memories.len() - 1;
        self.steps.push(Placed { work: Work::Map(step), inputs: vec![memory], outputs: vec![copy] });
        copy
    }
}

/// Assigns places to all memories.
fn lay(
    steps: Vec<Placed>,
    memories: &[Memory],
    outputs: &[MemoryId],
    mut places: Vec<Option<Place>>,
    temporary: &[Vec<usize>],
) -> Laid {
    let mut last_reads = vec![None; memories.len()];
    for (at, step) in steps.iter().enumerate() {
        for input in &step.inputs {
            last_reads[*input] = Some(at);
        }
    }
    let mut lifetimes = Vec::new();
    let mut owners = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        for output in &step.outputs {
            if places[*output].is_none() {
                owners.push(*output);
                let last = last_reads[*output].unwrap_or(at);
                lifetimes.push(Lifetime { words: memories[*output].words, first: at, last });
            }
        }
    }
    let made = lifetimes.len();
    for (at, sizes) in temporary.iter().enumerate() {
        lifetimes.extend(sizes.iter().map(|words| Lifetime { words: *words, first: at, last: at }));
    }
    let slots = plan(&lifetimes);
    for (owner, slot) in owners.iter().zip(&slots.slots) {
        places[*owner] = Some(Place::Slot(*slot));
    }
    let mut rest = slots.slots[made..].iter();
    let place = |memory: &MemoryId| {
        (places[*memory].expect("every memory that a step uses has a place"), memories[*memory].words)
    };
    let laid = |(placed, sizes): (Placed, &Vec<usize>)| LaidStep {
        inputs: placed.inputs.iter().map(place).collect(),
        outputs: placed.outputs.iter().map(place).collect(),
        temporary: sizes
            .iter()
            .map(|words| (Place::Slot(*rest.next().expect("a slot for each temporary memory")), *words))
            .collect(),
        step: match placed.work {
            Work::Map(map) => Box::new(map),
            Work::Other(step) => step,
        },
    };
    let steps = steps.into_iter().zip(temporary).map(laid).collect();
    Laid { steps, slots: slots.words, outputs: outputs.iter().map(|memory| memories[*memory].words).collect() }
}
