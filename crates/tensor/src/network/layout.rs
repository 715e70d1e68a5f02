//! The layout of a network: its fused steps, and where each memory lies while they run.
//!
//! A layout has no memory and copies no known values, so that the needs of a network can be found for any size.

use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::context::DeviceSide;

use super::builder::{NetworkBuilder, Placed, Work};
use super::fuse::fuse;
use super::slots::{Lifetime, plan};
#[cfg(not(target_arch = "wasm32"))]
use super::step::DeviceWork;
use super::step::{Step, WordKind};
use super::value::{Memory, MemoryId, Source};

/// What a network needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkLayout {
    /// The ops of the steps, in order, after fusion.
    pub steps: Vec<&'static str>,
    /// Bytes that a run needs for intermediate and final values.
    pub working_bytes: usize,
    /// Bytes of the known values, which networks may share.
    pub constant_bytes: usize,
    /// Words that all steps of a run read and write together.
    pub moved_words: usize,
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

/// A network before it has memory.
pub(super) struct LaidNetwork {
    pub(super) laid: Laid,
    pub(super) layout: NetworkLayout,
    /// The known values that steps read.
    pub(super) constants: Vec<(WordKind, Arc<Vec<u32>>)>,
    /// The type and the words of each input.
    pub(super) inputs: Vec<(WordKind, usize)>,
    pub(super) outputs: Vec<WordKind>,
    /// `None` on the host.
    pub(super) device: Option<DeviceWorks>,
}

/// The context's device, and the work of each step there.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct DeviceWorks {
    pub(super) device: Arc<DeviceSide>,
    pub(super) works: Vec<DeviceWork>,
}

/// There are no devices.
#[cfg(target_arch = "wasm32")]
pub(super) enum DeviceWorks {}

impl LaidNetwork {
    pub(super) fn of(mut builder: NetworkBuilder, outputs: &[MemoryId]) -> LaidNetwork {
        let outputs = own_outputs(&mut builder, outputs);
        let NetworkBuilder { context, memories, steps, inputs, .. } = builder;
        #[cfg(not(target_arch = "wasm32"))]
        let side = context.side().map(|device| (super::on_device::facts(&device), device));
        #[cfg(not(target_arch = "wasm32"))]
        let most_bound = side.as_ref().map_or(8, |(facts, _)| facts.limits.storage_buffers_per_stage as usize);
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
            places[*memory] = Some(Place::Constant(constants.len()));
            constants.push((memories[*memory].kind, Arc::clone(words)));
        }

        #[cfg(not(target_arch = "wasm32"))]
        let device = side.map(|(facts, device)| {
            let works = steps.iter().map(|placed| placed.work.step().device(&facts)).collect();
            DeviceWorks { device, works }
        });
        #[cfg(target_arch = "wasm32")]
        let device = None;
        let temporary: Vec<Vec<usize>> = steps
            .iter()
            .enumerate()
            .map(|(at, placed)| {
                #[cfg(not(target_arch = "wasm32"))]
                if let Some(DeviceWorks { works, .. }) = &device {
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
        let layout = NetworkLayout {
            steps: names,
            working_bytes: 4 * planned_words,
            constant_bytes: constants.iter().map(|(_, words)| 4 * words.len()).sum(),
            moved_words,
        };
        LaidNetwork {
            laid,
            layout,
            constants,
            inputs: inputs.iter().map(|memory| (memories[*memory].kind, memories[*memory].words)).collect(),
            outputs: outputs.iter().map(|memory| memories[*memory].kind).collect(),
            device,
        }
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
