//! Interprets a program on the host, in blocks that stay in the L1 cache. Each thread has registers, each of which
//! holds the values of one step for one block.
//!
//! The caller splits the work over threads; `rows` computes single steps.
//!
//! Invariants: a block goes through all steps before the next block begins. Inputs whose memory can be used directly
//! are not copied, even if they repeat along an axis.

#![expect(
    clippy::inline_always,
    reason = "functions that are not inlined into `vectorised!` lose its vector instructions"
)]
#![expect(clippy::float_cmp, reason = "compared values are meant to be identical")]

mod load;
mod rows;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use smallvec::SmallVec;

use super::{ElementwiseProgram, Instruction, ProgramInput, ProgramStep, Walk};
use crate::ops::dtype::DType;
use crate::ops::host::convert;
use crate::ops::host::rows::RowValues;
use load::{load, load_as_floats, load_one};
use rows::Arg;

/// Values per block. A register takes 4 KiB, so that the few registers of a chain stay in a cache of 32 KiB, and the
/// overhead of a step is small (with 512 values, a chain of eight steps took a fifth longer).
const BLOCK: usize = 1024;

/// Block size of a program without registers. Nothing has to stay in a cache, and in blocks of 1024 values a fifth of
/// the time of a negation would be the overhead of its step.
const BLOCK_WITHOUT_REGISTERS: usize = 16 * BLOCK;

/// Minimum line length of a repeated input that is used in place, with blocks that end at the ends of lines. Shorter
/// lines are copied: starting a step costs about as much as copying this many values.
const SHORTEST_LINE: usize = 128;

/// Programs with at most this many steps start without an allocation.
pub(crate) const INLINE_STEPS: usize = 24;

thread_local! {
    static REGISTERS: RefCell<Vec<Register>> = const { RefCell::new(Vec::new()) };
}

/// A row of values between steps, aligned to a cache line. Seven cheap steps on 1024 x 1024 values take 0.53 ms, and
/// 1.50 ms if vectors cross cache lines.
type Register = Vec<RegisterLine>;

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct RegisterLine([u32; 16]);

/// A program with the memory of its inputs.
pub(crate) struct Running<'a> {
    program: &'a ElementwiseProgram,
    /// The whole memory of each input; the input begins at its offset.
    inputs: SmallVec<[&'a [u8]; 8]>,
    /// Where the values of each step are.
    homes: SmallVec<[Home; INLINE_STEPS]>,
    registers: usize,
    /// The step whose floats are stored, if the last step only casts these floats and storing can perform that cast.
    stored: Option<u16>,
    /// Lengths of lines whose ends no block may cross.
    lines: SmallVec<[usize; 2]>,
}

/// Where the values of a step are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In a register. After the last read of these values, another step may use the register.
    Register(usize),
    /// In memory, all contiguous.
    Memory,
    /// In memory, in lines: the values of a line are contiguous, or the line is one repeated value.
    Line,
    /// All values are the same and have these bits.
    One(u32),
    /// Nowhere: the cast that follows reads the input itself, as floats.
    ReadByCast,
}

impl<'a> Running<'a> {
    pub(crate) fn new(program: &'a ElementwiseProgram, inputs: impl IntoIterator<Item = &'a [u8]>) -> Running<'a> {
        let inputs = inputs.into_iter().collect();
        let mut running =
            Running { program, inputs, homes: SmallVec::new(), registers: 0, stored: None, lines: SmallVec::new() };
        running.settle();
        running
    }

    /// Computes values from `start` on, as many as `out` has bytes for.
    pub(crate) fn fill(&self, start: usize, out: &mut [u8]) {
        self.run(start, out.len() / self.program.out.bytes(), &[], &mut Sink::Bytes(out, self.program.out));
    }

    /// Finishes the results of a kernel in place; `start` is the index of the first result.
    pub(crate) fn end(&self, start: usize, values: &mut [f32]) {
        // One block at a time, because results overwrite the given values.
        let mut given = [0; BLOCK];
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            let (given, values) = (&mut given[..values.len()], cast_slice_mut(values));
            given.copy_from_slice(cast_slice(values));
            let count = given.len();
            self.run(start + block * BLOCK, count, given, &mut Sink::Bytes(values, self.program.out));
        }
    }

    /// Decides where the values of each step are kept.
    fn settle(&mut self) {
        let steps = &self.program.steps;
        let mut last_use: SmallVec<[usize; INLINE_STEPS]> = SmallVec::from_elem(0, steps.len());
        let mut uses: SmallVec<[usize; INLINE_STEPS]> = SmallVec::from_elem(0, steps.len());
        for (at, step) in steps.iter().enumerate() {
            for used in step.act.uses() {
                last_use[usize::from(used)] = at;
                uses[usize::from(used)] += 1;
            }
        }
        let mut free: SmallVec<[usize; INLINE_STEPS]> = SmallVec::new();
        for (at, step) in steps.iter().enumerate() {
            let mut home = match step.act {
                Instruction::Constant(number) => Some(Home::One(self.program.constants[usize::from(number)])),
                Instruction::Given => Some(Home::Memory),
                Instruction::Input(number) => self.home_of_input(usize::from(number)).or_else(|| {
                    let cast = matches!(steps.get(at + 1)?.act, Instruction::Cast(of) if usize::from(of) == at);
                    (cast && uses[at] == 1 && steps[at + 1].dtype.is_float()).then_some(Home::ReadByCast)
                }),
                _ => None,
            };
            // The last step writes to the output.
            if home.is_none() && at + 1 < steps.len() {
                let register = free.pop().unwrap_or_else(|| {
                    self.registers += 1;
                    self.registers - 1
                });
                home = Some(Home::Register(register));
            }
            self.homes.push(home.unwrap_or(Home::Memory));
            // The arguments' registers are freed only after the step's own register is chosen, because a step must not
            // write to a register that it reads.
            for used in step.act.uses() {
                if let (Home::Register(register), true) =
                    (self.homes[usize::from(used)], last_use[usize::from(used)] == at)
                    && !free.contains(&register)
                {
                    free.push(register);
                }
            }
        }
        if let Some(ProgramStep { act: Instruction::Cast(of), dtype: DType::F16 | DType::U8 | DType::I8 }) =
            steps.last()
        {
            let of_floats = steps[usize::from(*of)].dtype.is_float();
            let is_row = matches!(self.homes[usize::from(*of)], Home::Register(_) | Home::Memory);
            self.stored = (of_floats && is_row).then_some(*of);
        }
    }

    /// Where the values of an input are, if they can be used in place.
    fn home_of_input(&mut self, number: usize) -> Option<Home> {
        let ProgramInput { dtype, offset, walk } = &self.program.inputs[number];
        match walk {
            Walk::Stay => Some(Home::One(load_one(*dtype, self.inputs[number], *offset))),
            Walk::Run => (dtype.bytes() == 4).then_some(Home::Memory),
            Walk::Stride(axes) => {
                let (length, stride) = axes[axes.len() - 1];
                let is_line = stride == 0 || (stride == 1 && dtype.bytes() == 4);
                if length < SHORTEST_LINE || !is_line {
                    return None;
                }
                if !self.lines.contains(&length) {
                    self.lines.push(length);
                }
                Some(Home::Line)
            }
        }
    }

    fn run(&self, start: usize, count: usize, given: &[u32], sink: &mut Sink<'_>) {
        REGISTERS.with_borrow_mut(|registers| {
            // One more register than the steps need, for results that must be converted before they are stored.
            if registers.len() <= self.registers {
                registers.resize_with(self.registers + 1, || vec![RegisterLine::zeroed(); BLOCK / 16]);
            }
            let goes_straight = sink.is_direct() || self.stored_from(sink).is_some();
            let most = if self.registers == 0 && goes_straight { BLOCK_WITHOUT_REGISTERS } else { BLOCK };
            let mut done = 0;
            while done < count {
                let at = start + done;
                let ends = self.lines.iter().map(|line| line - at % line);
                let length = ends.fold(most.min(count - done), usize::min);
                self.block(registers, at, done..done + length, given, sink);
                done += length;
            }
        });
    }

    /// Computes one block: the values whose positions among the requested values are `done`. The first of them is value
    /// `start` of the program's output.
    fn block(
        &self,
        registers: &mut [Register],
        start: usize,
        done: std::ops::Range<usize>,
        given: &[u32],
        sink: &mut Sink<'_>,
    ) {
        let length = done.len();
        // Lines may end blocks in the middle of the given values.
        let given = if given.is_empty() { given } else { &given[done.clone()] };
        let block = Block { start, length, given };
        let (last, before) =
            self.program.steps.split_last().expect("a program has a last step, which makes its values");
        for (step, home) in before.iter().zip(&self.homes) {
            if let Home::Register(register) = *home {
                // The register is never one of the step's arguments, so the register can be taken out while the
                // arguments are read.
                let mut own = std::mem::take(&mut registers[register]);
                let out = &mut cast_slice_mut(&mut own)[..length];
                self.step(step, registers, &block, out);
                round(step, out);
                registers[register] = own;
            }
        }
        if let Some(out) = sink.place(&done) {
            self.step(last, registers, &block, out);
            return round(last, out);
        }
        if let Some(of) = self.stored_from(sink)
            && let Arg::Row(row) = self.arg(of, registers, &block)
        {
            return sink.store(&done, DType::F32, row);
        }
        // No `round` here: storing values as f16 rounds them.
        let mut own = std::mem::take(&mut registers[self.registers]);
        let out = &mut cast_slice_mut(&mut own)[..length];
        self.step(last, registers, &block, out);
        sink.store(&done, last.dtype, out);
        registers[self.registers] = own;
    }

    /// The step whose floats are stored, if storing the floats performs the last cast.
    fn stored_from(&self, sink: &Sink<'_>) -> Option<u16> {
        self.stored.filter(|_| matches!(sink, Sink::Bytes(..)))
    }

    /// The values of an earlier step.
    fn arg<'r>(&'r self, number: u16, registers: &'r [Register], block: &Block<'r>) -> Arg<'r> {
        let at = usize::from(number);
        match (self.homes[at], self.program.steps[at].act) {
            (Home::Register(register), _) => Arg::Row(&cast_slice(&registers[register])[..block.length]),
            (Home::One(bits), _) => Arg::One(bits),
            (_, Instruction::Input(number)) => {
                let ProgramInput { dtype, offset, walk } = &self.program.inputs[usize::from(number)];
                let memory = self.inputs[usize::from(number)];
                let first = offset + walk.place(block.start);
                match walk {
                    Walk::Stride(axes) if axes[axes.len() - 1].1 == 0 => Arg::One(load_one(*dtype, memory, first)),
                    _ => Arg::Row(&cast_slice(memory)[first..first + block.length]),
                }
            }
            _ => Arg::Row(&block.given[..block.length]),
        }
    }

    fn step(&self, step: &ProgramStep, registers: &[Register], block: &Block<'_>, out: &mut [u32]) {
        let arg = |number: u16| self.arg(number, registers, block);
        let dtype_of = |number: u16| self.program.steps[usize::from(number)].dtype;
        let dtype = step.dtype;
        match step.act {
            Instruction::Constant(number) => out.fill(self.program.constants[usize::from(number)]),
            Instruction::Given => out.copy_from_slice(&block.given[..block.length]),
            Instruction::Input(number) => {
                let (input, memory) = (&self.program.inputs[usize::from(number)], self.inputs[usize::from(number)]);
                load(input, memory, block.start, out);
            }
            Instruction::Unary(op, a) => arg(a).with(out, |a, out| match dtype {
                DType::F32 | DType::F16 => rows::unary(op, cast_slice(a), cast_slice_mut(out)),
                _ => rows::whole_unary(op, dtype, a, out),
            }),
            Instruction::Binary(op, a, b) => match dtype_of(a) {
                DType::F32 | DType::F16 => rows::binary(op, arg(a), arg(b), out),
                from => rows::whole_binary(op, from, arg(a), arg(b), out),
            },
            Instruction::Select(c, a, b) => {
                // -0.0 counts as 0.
                let mask = if dtype_of(c).is_float() { 0x7fff_ffff } else { u32::MAX };
                rows::select(mask, [c, a, b].map(arg), out);
            }
            Instruction::Cast(a) if self.homes[usize::from(a)] == Home::ReadByCast => {
                let Instruction::Input(number) = self.program.steps[usize::from(a)].act else {
                    unreachable!("only inputs are read by casts")
                };
                let (input, memory) = (&self.program.inputs[usize::from(number)], self.inputs[usize::from(number)]);
                load_as_floats(input, memory, block.start, out);
            }
            Instruction::Cast(a) => arg(a).with(out, |row, out| rows::cast(dtype_of(a), dtype, row, out)),
        }
    }
}

/// Values that go through all steps together.
struct Block<'a> {
    /// The index of the block's first value.
    start: usize,
    length: usize,
    /// The results of a kernel that the program finishes.
    given: &'a [u32],
}

/// Rounds the results of a step to f16 if the step's type is f16 and the results may have more precision.
fn round(step: &ProgramStep, out: &mut [u32]) {
    if step.dtype == DType::F16 && !matches!(step.act, Instruction::Input(_) | Instruction::Constant(_)) {
        rows::round_to_half(out);
    }
}

impl RowValues for Running<'_> {
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        let scratch = &mut scratch[..len];
        self.run(start, len, &[], &mut Sink::Floats(cast_slice_mut(scratch), self.program.out));
        scratch
    }
}

/// Where results go.
enum Sink<'a> {
    /// Memory, in the type of the program.
    Bytes(&'a mut [u8], DType),
    /// Floats, to which results of any type are converted.
    Floats(&'a mut [u32], DType),
}

impl Sink<'_> {
    /// True if words are stored unchanged.
    fn is_direct(&self) -> bool {
        match self {
            Sink::Bytes(_, dtype) => dtype.bytes() == 4,
            Sink::Floats(_, dtype) => dtype.is_float(),
        }
    }

    /// The part of the output for these values, if words are stored unchanged.
    fn place(&mut self, range: &std::ops::Range<usize>) -> Option<&mut [u32]> {
        match self {
            _ if !self.is_direct() => None,
            Sink::Bytes(bytes, _) => Some(&mut cast_slice_mut(bytes)[range.clone()]),
            Sink::Floats(words, _) => Some(&mut words[range.clone()]),
        }
    }

    /// Stores words that could not be written to the output directly.
    fn store(&mut self, range: &std::ops::Range<usize>, from: DType, words: &[u32]) {
        match self {
            Sink::Bytes(bytes, DType::F16) => {
                convert::halves_of_floats(cast_slice(words), &mut cast_slice_mut(bytes)[range.clone()]);
            }
            Sink::Bytes(bytes, dtype) => rows::bytes(from, *dtype, words, &mut bytes[range.clone()]),
            Sink::Floats(floats, _) => rows::cast(from, DType::F32, words, &mut floats[range.clone()]),
        }
    }
}
