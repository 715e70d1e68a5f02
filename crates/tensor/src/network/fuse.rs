//! Makes fewer steps of the steps of a network: drops steps without users, joins chains of elementwise steps, and lets a
//! product finish its results with the elementwise step that follows it.
//!
//! Invariants: a result that several steps read is computed once. A step moves only to the place of its single reader, so
//! that everything that it reads is still computed before it. A program ends a step only if it has a result for each word
//! of the step's result.

use std::collections::BTreeSet;

use crate::ops::program::{ElementwiseProgram, INLINE_STEPS, Instruction, ProgramInput, ProgramStep, Walk};

use super::builder::{Placed, Work};
use super::map::MapStep;
use super::value::{Memory, MemoryId};

/// Maximum number of steps of a program. Registers of longer programs leave the cache, and the host would allocate
/// memory to run them.
const MOST_PROGRAM_STEPS: usize = INLINE_STEPS;

/// Steps that may have been taken away, and the memories' makers and readers.
struct Fusing<'m> {
    steps: Vec<Option<Placed>>,
    makers: Vec<Option<usize>>,
    /// Reading steps; `usize::MAX` stands for the caller of the network.
    readers: Vec<BTreeSet<usize>>,
    /// The memories of the network.
    memories: &'m [Memory],
    /// Maximum number of memories that one dispatch may bind.
    most_bound: usize,
}

/// Fuses steps. `outputs` are the memories that the network returns.
pub(super) fn fuse(steps: Vec<Placed>, memories: &[Memory], outputs: &[MemoryId], most_bound: usize) -> Vec<Placed> {
    let steps = without_unused(steps, memories.len(), outputs);
    let mut fusing = Fusing {
        makers: vec![None; memories.len()],
        readers: vec![BTreeSet::new(); memories.len()],
        steps: steps.into_iter().map(Some).collect(),
        memories,
        most_bound,
    };
    for output in outputs {
        fusing.readers[*output].insert(usize::MAX);
    }
    for at in 0..fusing.steps.len() {
        fusing.enter(at);
    }
    for at in 0..fusing.steps.len() {
        while fusing.join(at) {}
    }
    for at in 0..fusing.steps.len() {
        fusing.finish(at);
    }
    fusing.steps.into_iter().flatten().collect()
}

/// The steps on which the outputs depend.
fn without_unused(steps: Vec<Placed>, memories: usize, outputs: &[MemoryId]) -> Vec<Placed> {
    let mut is_used = vec![false; memories];
    for output in outputs {
        is_used[*output] = true;
    }
    let mut kept: Vec<Placed> = Vec::with_capacity(steps.len());
    for step in steps.into_iter().rev() {
        if step.outputs.iter().any(|output| is_used[*output]) {
            for input in &step.inputs {
                is_used[*input] = true;
            }
            kept.push(step);
        }
    }
    kept.reverse();
    kept
}

impl Fusing<'_> {
    /// Notes what a step reads and writes.
    fn enter(&mut self, at: usize) {
        let Some(step) = &self.steps[at] else { return };
        for output in &step.outputs {
            self.makers[*output] = Some(at);
        }
        for input in &step.inputs {
            self.readers[*input].insert(at);
        }
    }

    /// Takes a step away, with its notes.
    fn take(&mut self, at: usize) -> Placed {
        let step = self.steps[at].take().expect("a step that is taken is there");
        for input in &step.inputs {
            self.readers[*input].remove(&at);
        }
        for output in &step.outputs {
            self.makers[*output] = None;
        }
        step
    }

    fn put(&mut self, at: usize, step: Placed) {
        self.steps[at] = Some(step);
        self.enter(at);
    }

    fn map(&self, at: usize) -> Option<(&MapStep, &[MemoryId])> {
        match &self.steps[at] {
            Some(Placed { work: Work::Map(map), inputs, .. }) => Some((map, inputs)),
            _ => None,
        }
    }

    /// The step that makes a memory which only step `reader` reads, in the order in which the memory was made.
    fn only_for(&self, reader: usize, memory: MemoryId) -> Option<usize> {
        let (map, inputs) = self.map(reader)?;
        let is_run = |input: &ProgramInput| input.walk == Walk::Run && input.offset == 0;
        let mut reads = inputs.iter().zip(&map.program.inputs).filter(|(read, _)| **read == memory);
        if self.readers[memory].len() != 1 || !reads.all(|(_, input)| is_run(input)) {
            return None;
        }
        self.makers[memory]
    }

    /// Joins one elementwise step with the elementwise step at `at` that reads it. Returns whether there was one.
    fn join(&mut self, at: usize) -> bool {
        let Some((map, inputs)) = self.map(at) else { return false };
        for memory in inputs {
            let Some(maker) = self.only_for(at, *memory) else { continue };
            let Some((before, before_inputs)) = self.map(maker) else { continue };
            if before.count != map.count {
                continue;
            }
            let mut joined = Joined::default();
            let last = joined.append(&before.program, before_inputs, None);
            joined.append(&map.program, inputs, Some((*memory, last)));
            if joined.program_steps() > MOST_PROGRAM_STEPS || joined.memories.len() + 1 > self.most_bound {
                continue;
            }
            let (program, memories) = joined.into_program(map.program.out);
            let step = MapStep { program, count: map.count };
            self.take(maker);
            let Placed { outputs, .. } = self.take(at);
            self.put(at, Placed { work: Work::Map(step), inputs: memories, outputs });
            return true;
        }
        false
    }

    /// Lets the step before an elementwise step apply it to its results.
    fn finish(&mut self, at: usize) {
        let Some((map, inputs)) = self.map(at) else { return };
        let is_whole = |memory: &&MemoryId| self.memories[**memory].words == map.count;
        let whole = inputs.iter().filter(is_whole);
        let mut makers: Vec<(usize, MemoryId)> =
            whole.filter_map(|memory| Some((self.only_for(at, *memory)?, *memory))).collect();
        // The last of several: the results of the others exist by then.
        makers.sort_unstable();
        makers.dedup();
        let mut finishing = Vec::new();
        for (maker, memory) in makers.into_iter().rev() {
            let Some(Placed { work: Work::Other(_), outputs, inputs: own }) = &self.steps[maker] else { continue };
            let mut given = Joined { given: Some(memory), ..Joined::default() };
            let out = map.program.out;
            given.append(&map.program, inputs, None);
            let bound = own.len() + given.memories.len() + 1;
            if outputs.len() != 1 || bound > self.most_bound || given.program_steps() > MOST_PROGRAM_STEPS {
                continue;
            }
            let (program, sides) = given.into_program(out);
            finishing.push((maker, program, sides));
        }
        for (maker, program, sides) in finishing {
            let Some(Placed { work: Work::Other(step), .. }) = &mut self.steps[maker] else { continue };
            if !step.finish_with(&program) {
                continue;
            }
            let Placed { work, mut inputs, .. } = self.take(maker);
            let Placed { outputs, .. } = self.take(at);
            inputs.extend(sides);
            self.put(at, Placed { work, inputs, outputs });
            return;
        }
    }
}

/// A program that is being joined from others. Equal inputs, constants and steps are kept once.
#[derive(Default)]
struct Joined {
    inputs: Vec<ProgramInput>,
    memories: Vec<MemoryId>,
    steps: Vec<ProgramStep>,
    constants: Vec<u32>,
    /// The memory whose values the program is given.
    given: Option<MemoryId>,
}

impl Joined {
    /// Adds a program. `known` is a memory and the step that computes its values. Returns the last step.
    fn append(&mut self, program: &ElementwiseProgram, memories: &[MemoryId], known: Option<(MemoryId, u16)>) -> u16 {
        let mut numbers: Vec<u16> = Vec::with_capacity(program.steps.len());
        for ProgramStep { act, dtype } in &program.steps {
            let number = |old: u16| numbers[usize::from(old)];
            let act = match *act {
                Instruction::Input(old) => {
                    let (input, memory) = (&program.inputs[usize::from(old)], memories[usize::from(old)]);
                    match known {
                        Some((of, step)) if of == memory => {
                            numbers.push(step);
                            continue;
                        }
                        _ if self.given == Some(memory) => Instruction::Given,
                        _ => self.input(input, memory),
                    }
                }
                Instruction::Constant(old) => self.constant(program.constants[usize::from(old)]),
                Instruction::Given => Instruction::Given,
                Instruction::Unary(op, a) => Instruction::Unary(op, number(a)),
                Instruction::Binary(op, a, b) => Instruction::Binary(op, number(a), number(b)),
                Instruction::Select(c, a, b) => Instruction::Select(number(c), number(a), number(b)),
                Instruction::Cast(a) => Instruction::Cast(number(a)),
            };
            let step = ProgramStep { act, dtype: *dtype };
            let same = self.steps.iter().position(|other| *other == step);
            numbers.push(same.unwrap_or_else(|| {
                self.steps.push(step);
                self.steps.len() - 1
            }) as u16);
        }
        *numbers.last().expect("a program has a last step")
    }

    fn input(&mut self, input: &ProgramInput, memory: MemoryId) -> Instruction {
        let mut known = self.inputs.iter().zip(&self.memories);
        let at = known.position(|(other, of)| other == input && *of == memory).unwrap_or_else(|| {
            self.inputs.push(input.clone());
            self.memories.push(memory);
            self.inputs.len() - 1
        });
        Instruction::Input(at as u16)
    }

    fn constant(&mut self, bits: u32) -> Instruction {
        let at = self.constants.iter().position(|other| *other == bits).unwrap_or_else(|| {
            self.constants.push(bits);
            self.constants.len() - 1
        });
        Instruction::Constant(at as u16)
    }

    fn program_steps(&self) -> usize {
        self.steps.len()
    }

    fn into_program(self, out: crate::ops::dtype::DType) -> (ElementwiseProgram, Vec<MemoryId>) {
        let Joined { inputs, memories, steps, constants, .. } = self;
        (ElementwiseProgram { inputs, steps, constants, out }, memories)
    }
}
