//! Runs a program on the host, in blocks that stay in the first cache.
//!
//! Owns the registers of each thread: one row of values per step.
//! Does not spread work over threads: whoever runs it gives each of them a part.
//!
//! Always: a block goes through all steps before the next is begun; what lies in memory as it is needed is not copied.

#![expect(clippy::inline_always, reason = "what is not inlined into `vectorised!` runs without its vectors")]
#![expect(clippy::float_cmp, reason = "where values are compared, they are meant to be the same")]

use std::borrow::Cow;
use std::cell::RefCell;

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{Act, Binary, Input, Program, Step, Unary, Walk};
use crate::dtype::DType;
use crate::host::math;
use crate::host::rows::Rows;
use crate::host::vector::vectorised;

/// Values that go through all steps together: 4 KiB a register, so that the few that a chain needs stay in 32 KiB, and
/// beginning a step costs little beside computing it (512 values took a fifth longer for a chain of eight).
const BLOCK: usize = 1024;

thread_local! {
    static REGISTERS: RefCell<Vec<Vec<u32>>> = const { RefCell::new(Vec::new()) };
}

/// A program with the memory of its inputs.
pub(crate) struct Running<'a> {
    program: &'a Program,
    /// Whole memories; inputs begin at their offsets.
    inputs: Vec<&'a [u8]>,
    /// What a kernel has computed that the program ends.
    given: Option<&'a [f32]>,
    /// Where the values of each step are.
    homes: Vec<Home>,
    registers: usize,
}

/// Where the values of a step are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// In a register, which others use when nobody needs them any more.
    Register(usize),
    /// In memory, as they are needed.
    Memory,
    /// They are all the same: these bits.
    One(u32),
}

/// The values that a step is given.
#[derive(Clone, Copy)]
enum Arg<'a> {
    Row(&'a [u32]),
    One(u32),
}

impl<'a> Running<'a> {
    pub(crate) fn new(program: &'a Program, inputs: Vec<&'a [u8]>) -> Running<'a> {
        Self::ending(program, inputs, None)
    }

    fn ending(program: &'a Program, inputs: Vec<&'a [u8]>, given: Option<&'a [f32]>) -> Running<'a> {
        let mut running = Running { program, inputs, given, homes: Vec::new(), registers: 0 };
        running.settle();
        running
    }

    /// Makes values from `start` on, as many as `out` has bytes for.
    pub(crate) fn fill(&self, start: usize, out: &mut [u8]) {
        self.run(start, out.len() / self.program.out.bytes(), Sink::Bytes(out, self.program.out));
    }

    /// Ends what a kernel has computed, in place; `start` is the number of its first value.
    pub(crate) fn end(program: &Program, inputs: &[&[u8]], start: usize, values: &mut [f32]) {
        // One block at a time: what was given is overwritten by what it becomes.
        let mut given = [0.0; BLOCK];
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            let given = &mut given[..values.len()];
            given.copy_from_slice(values);
            let running = Running::ending(program, inputs.to_vec(), Some(given));
            running.run(start + block * BLOCK, values.len(), Sink::Bytes(cast_slice_mut(values), program.out));
        }
    }

    /// Decides where the values of each step are.
    fn settle(&mut self) {
        let steps = &self.program.steps;
        let mut last_use = vec![0; steps.len()];
        for (at, step) in steps.iter().enumerate() {
            for used in step.act.uses() {
                last_use[usize::from(used)] = at;
            }
        }
        let mut free: Vec<usize> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let home = match step.act {
                Act::Constant(number) => Home::One(self.program.constants[usize::from(number)]),
                Act::Given => Home::Memory,
                Act::Input(number) => {
                    let Input { dtype, offset, walk } = &self.program.inputs[usize::from(number)];
                    match walk {
                        Walk::Stay => Home::One(load_one(*dtype, self.inputs[usize::from(number)], *offset)),
                        Walk::Run if dtype.bytes() == 4 => Home::Memory,
                        _ => Home::Register(self.register(&mut free)),
                    }
                }
                _ => Home::Register(self.register(&mut free)),
            };
            self.homes.push(home);
            // Only from now on: a step does not write where it reads.
            for used in step.act.uses() {
                if let (Home::Register(register), true) =
                    (self.homes[usize::from(used)], last_use[usize::from(used)] == at)
                    && !free.contains(&register)
                {
                    free.push(register);
                }
            }
        }
    }

    fn register(&mut self, free: &mut Vec<usize>) -> usize {
        free.pop().unwrap_or_else(|| {
            self.registers += 1;
            self.registers - 1
        })
    }

    fn run(&self, start: usize, count: usize, mut sink: Sink<'_>) {
        REGISTERS.with_borrow_mut(|registers| {
            // One more than steps need: for results on their way to where they are stored.
            if registers.len() <= self.registers {
                registers.resize_with(self.registers + 1, || vec![0; BLOCK]);
            }
            let mut done = 0;
            while done < count {
                let length = BLOCK.min(count - done);
                self.block(registers, start + done, done, length, &mut sink);
                done += length;
            }
        });
    }

    fn block(&self, registers: &mut [Vec<u32>], start: usize, done: usize, length: usize, sink: &mut Sink<'_>) {
        let last = self.program.steps.len() - 1;
        for (at, step) in self.program.steps.iter().enumerate() {
            match self.homes[at] {
                _ if at == last => match sink.place(done, length) {
                    Some(out) => self.step(step, registers, start, out),
                    None => {
                        let mut own = std::mem::take(&mut registers[self.registers]);
                        self.step(step, registers, start, &mut own[..length]);
                        sink.store(done, &own[..length]);
                        registers[self.registers] = own;
                    }
                },
                Home::Register(register) => {
                    // Never one of the step's own arguments, so it can be taken out while the others are read.
                    let mut own = std::mem::take(&mut registers[register]);
                    self.step(step, registers, start, &mut own[..length]);
                    registers[register] = own;
                }
                Home::Memory | Home::One(_) => {}
            }
        }
    }

    /// The values of a step where they lie in memory already, as words.
    fn in_memory(&self, step: &Step, start: usize, length: usize) -> &[u32] {
        match step.act {
            Act::Input(number) => {
                let first = self.program.inputs[usize::from(number)].offset + start;
                &cast_slice(self.inputs[usize::from(number)])[first..first + length]
            }
            _ => cast_slice(&self.given.unwrap_or(&[])[..length]),
        }
    }

    fn arg<'r>(&'r self, number: u16, registers: &'r [Vec<u32>], start: usize, length: usize) -> Arg<'r> {
        let at = usize::from(number);
        match self.homes[at] {
            Home::Register(register) => Arg::Row(&registers[register][..length]),
            Home::Memory => Arg::Row(self.in_memory(&self.program.steps[at], start, length)),
            Home::One(bits) => Arg::One(bits),
        }
    }

    fn step(&self, step: &Step, registers: &[Vec<u32>], start: usize, out: &mut [u32]) {
        let length = out.len();
        let arg = |number: u16| self.arg(number, registers, start, length);
        let dtype_of = |number: u16| self.program.steps[usize::from(number)].dtype;
        let dtype = step.dtype;
        match step.act {
            Act::Constant(number) => out.fill(self.program.constants[usize::from(number)]),
            Act::Given => out.copy_from_slice(self.in_memory(step, start, length)),
            Act::Input(number) => {
                let (input, memory) = (&self.program.inputs[usize::from(number)], self.inputs[usize::from(number)]);
                load(input, memory, start, out);
            }
            Act::Unary(op, a) => arg(a).with(out, |a, out| match dtype {
                DType::F32 | DType::F16 => unary(op, cast_slice(a), cast_slice_mut(out)),
                _ => whole_unary(op, dtype, a, out),
            }),
            Act::Binary(op, a, b) => match dtype_of(a) {
                DType::F32 | DType::F16 => binary(op, arg(a), arg(b), cast_slice_mut(out)),
                from => {
                    let (a, b) = (arg(a).rows(length), arg(b).rows(length));
                    whole_binary(op, from, &a, &b, out);
                }
            },
            Act::Select(c, a, b) => {
                // A float that is -0 is 0 too.
                let zero = if dtype_of(c).is_float() { 0x7fff_ffff } else { u32::MAX };
                let (c, a, b) = (arg(c).rows(length), arg(a).rows(length), arg(b).rows(length));
                vectorised!(for (((out, c), a), b) in out.iter_mut().zip(&*c).zip(&*a).zip(&*b) {
                    *out = if c & zero == 0 { *b } else { *a };
                });
            }
            Act::Cast(a) => arg(a).with(out, |row, out| cast(dtype_of(a), dtype, row, out)),
        }
        if dtype == DType::F16 && !matches!(step.act, Act::Input(_) | Act::Constant(_)) {
            round_to_half(cast_slice_mut(out));
        }
    }
}

impl<'a> Arg<'a> {
    /// Computes a row of results; one value where all are the same.
    fn with(self, out: &mut [u32], compute: impl FnOnce(&[u32], &mut [u32])) {
        match self {
            Arg::Row(row) => compute(row, out),
            Arg::One(bits) => {
                let mut one = [0];
                compute(&[bits], &mut one);
                out.fill(one[0]);
            }
        }
    }

    /// As a row, for ops that take nothing else.
    fn rows(self, length: usize) -> Cow<'a, [u32]> {
        match self {
            Arg::Row(row) => Cow::Borrowed(row),
            Arg::One(bits) => Cow::Owned(vec![bits; length]),
        }
    }
}

impl Rows for Running<'_> {
    fn part<'a>(&'a self, start: usize, len: usize, scratch: &'a mut [f32]) -> &'a [f32] {
        let scratch = &mut scratch[..len];
        self.run(start, len, Sink::Floats(cast_slice_mut(scratch), self.program.out));
        scratch
    }
}

/// Where results go.
enum Sink<'a> {
    /// Into memory, in the type of the program.
    Bytes(&'a mut [u8], DType),
    /// Into floats, whatever the type is.
    Floats(&'a mut [u32], DType),
}

impl Sink<'_> {
    /// The place for so many words, where they go there as they are.
    fn place(&mut self, done: usize, length: usize) -> Option<&mut [u32]> {
        match self {
            Sink::Bytes(bytes, dtype) if dtype.bytes() == 4 => Some(&mut cast_slice_mut(bytes)[done..done + length]),
            Sink::Floats(words, dtype) if dtype.is_float() => Some(&mut words[done..done + length]),
            _ => None,
        }
    }

    /// Stores what was not handed a place.
    fn store(&mut self, done: usize, from: &[u32]) {
        let end = done + from.len();
        match self {
            Sink::Bytes(bytes, dtype) => match dtype {
                DType::F16 => {
                    let out: &mut [f16] = &mut cast_slice_mut(bytes)[done..end];
                    out.convert_from_f32_slice(cast_slice(from));
                }
                DType::U8 | DType::I8 => {
                    for (out, from) in bytes[done..end].iter_mut().zip(from) {
                        *out = *from as u8;
                    }
                }
                _ => {}
            },
            Sink::Floats(words, dtype) => match dtype {
                DType::I32 | DType::I8 => {
                    for (out, from) in words[done..end].iter_mut().zip(from) {
                        *out = (from.cast_signed() as f32).to_bits();
                    }
                }
                DType::U32 | DType::U8 => {
                    for (out, from) in words[done..end].iter_mut().zip(from) {
                        *out = (*from as f32).to_bits();
                    }
                }
                DType::F32 | DType::F16 => {}
            },
        }
    }
}

/// One value as a register holds it: a float's bits, or a whole number with its sign.
fn load_one(dtype: DType, memory: &[u8], at: usize) -> u32 {
    match dtype {
        DType::F32 | DType::I32 | DType::U32 => cast_slice::<u8, u32>(&memory[at * 4..at * 4 + 4])[0],
        DType::F16 => cast_slice::<u8, f16>(&memory[at * 2..at * 2 + 2])[0].to_f32().to_bits(),
        DType::U8 => u32::from(memory[at]),
        DType::I8 => i32::from(memory[at].cast_signed()).cast_unsigned(),
    }
}

fn load(input: &Input, memory: &[u8], start: usize, out: &mut [u32]) {
    let Input { dtype, offset, walk } = input;
    let first = offset + start;
    match (walk, dtype) {
        (Walk::Stay, _) => out.fill(load_one(*dtype, memory, *offset)),
        (Walk::Run, DType::F32 | DType::I32 | DType::U32) => {
            out.copy_from_slice(&cast_slice(memory)[first..first + out.len()]);
        }
        (Walk::Run, DType::F16) => {
            let halves: &[f16] = &cast_slice(memory)[first..first + out.len()];
            halves.convert_to_f32_slice(cast_slice_mut(out));
        }
        (Walk::Run, DType::U8) => {
            let bytes = &memory[first..first + out.len()];
            vectorised!(out.iter_mut().zip(bytes).for_each(|(out, byte)| *out = u32::from(*byte)));
        }
        (Walk::Run, DType::I8) => {
            let bytes = &memory[first..first + out.len()];
            vectorised!(for (out, byte) in out.iter_mut().zip(bytes) {
                *out = i32::from(byte.cast_signed()).cast_unsigned();
            });
        }
        (Walk::Stride(axes), _) => {
            // Along the fastest axis in runs; the place is looked for once a run.
            let (length, stride) = axes[axes.len() - 1];
            let (mut at, mut done) = (start, 0);
            while done < out.len() {
                let within = at % length;
                let run = (length - within).min(out.len() - done);
                let first = offset + walk.place(at);
                for (step, out) in out[done..done + run].iter_mut().enumerate() {
                    *out = load_one(*dtype, memory, first + step * stride);
                }
                (at, done) = (at + run, done + run);
            }
        }
    }
}

fn unary(op: Unary, a: &[f32], out: &mut [f32]) {
    macro_rules! each {
        (|$x:ident| $value:expr) => {
            vectorised!(for (out, $x) in out.iter_mut().zip(a) {
                let $x = *$x;
                *out = $value;
            })
        };
    }
    match op {
        Unary::Neg => each!(|x| -x),
        Unary::Abs => each!(|x| x.abs()),
        Unary::Relu => each!(|x| if x < 0.0 { 0.0 } else { x }),
        Unary::Sigmoid => each!(|x| math::sigmoid(x)),
        Unary::Tanh => each!(|x| math::tanh(x)),
        Unary::Gelu => each!(|x| math::gelu(x)),
        Unary::Silu => each!(|x| math::silu(x)),
        Unary::Exp => each!(|x| math::exp(x)),
        Unary::Log => each!(|x| math::log(x)),
        Unary::Sqrt => each!(|x| x.sqrt()),
        Unary::Square => each!(|x| x * x),
        Unary::Reciprocal => each!(|x| 1.0 / x),
        Unary::Floor => each!(|x| x.floor()),
        Unary::Round => each!(|x| x.round_ties_even()),
        Unary::FiniteSize => each!(|x| if x.abs() < f32::INFINITY { x.abs() } else { 0.0 }),
        Unary::ScaleOf => each!(|x| if x > 0.0 { (x / 127.0).max(f32::MIN_POSITIVE) } else { 1.0 }),
    }
}

fn binary(op: Binary, a: Arg<'_>, b: Arg<'_>, out: &mut [f32]) {
    macro_rules! each {
        (|$x:ident, $y:ident| $value:expr) => {
            match (a, b) {
                (Arg::Row(a), Arg::Row(b)) => {
                    let (a, b): (&[f32], &[f32]) = (cast_slice(a), cast_slice(b));
                    vectorised!(for ((out, $x), $y) in out.iter_mut().zip(a).zip(b) {
                        let ($x, $y) = (*$x, *$y);
                        *out = $value;
                    });
                }
                (Arg::Row(a), Arg::One(b)) => {
                    let (a, $y): (&[f32], f32) = (cast_slice(a), f32::from_bits(b));
                    vectorised!(for (out, $x) in out.iter_mut().zip(a) {
                        let $x = *$x;
                        *out = $value;
                    });
                }
                (Arg::One(a), Arg::Row(b)) => {
                    let ($x, b): (f32, &[f32]) = (f32::from_bits(a), cast_slice(b));
                    vectorised!(for (out, $y) in out.iter_mut().zip(b) {
                        let $y = *$y;
                        *out = $value;
                    });
                }
                (Arg::One(a), Arg::One(b)) => {
                    let ($x, $y) = (f32::from_bits(a), f32::from_bits(b));
                    out.fill($value);
                }
            }
        };
    }
    match op {
        Binary::Add => each!(|x, y| x + y),
        Binary::Sub => each!(|x, y| x - y),
        Binary::Mul => each!(|x, y| x * y),
        Binary::Div => each!(|x, y| x / y),
        // A comparison with NaN is false; x + y is NaN where either is.
        Binary::Min => each!(|x, y| if x <= y {
            x
        } else if y < x {
            y
        } else {
            x + y
        }),
        Binary::Max => each!(|x, y| if x >= y {
            x
        } else if y > x {
            y
        } else {
            x + y
        }),
        Binary::Pow => each!(|x, y| power(x, y)),
        Binary::Less => each!(|x, y| if x < y { 1.0 } else { 0.0 }),
        Binary::Greater => each!(|x, y| if x > y { 1.0 } else { 0.0 }),
        Binary::Equal => each!(|x, y| if x == y { 1.0 } else { 0.0 }),
        Binary::Quantized => each!(|x, y| {
            let whole = (x / y).round_ties_even();
            let whole = if whole > 127.0 { 127.0 } else { whole };
            let whole = if whole < -127.0 { -127.0 } else { whole };
            if whole.is_nan() { 0.0 } else { whole }
        }),
    }
}

/// x to the power of y, by exp and log: within 1e-5 of it, as long as y is not huge.
#[inline(always)]
fn power(x: f32, y: f32) -> f32 {
    let size = math::exp(y * math::log(x.abs()));
    let half = y * 0.5;
    let is_whole = y.floor() == y;
    let is_odd = is_whole && half.floor() != half;
    let signed = if is_odd { size.copysign(x) } else { size };
    let value = if x < 0.0 && !is_whole { f32::NAN } else { signed };
    if y == 0.0 || x == 1.0 { 1.0 } else { value }
}

fn whole_unary(op: Unary, dtype: DType, a: &[u32], out: &mut [u32]) {
    let signed = dtype == DType::I32;
    for (out, x) in out.iter_mut().zip(a) {
        *out = match op {
            Unary::Neg => x.wrapping_neg(),
            Unary::Abs if signed => x.cast_signed().wrapping_abs().cast_unsigned(),
            Unary::Relu if signed => x.cast_signed().max(0).cast_unsigned(),
            Unary::Square => x.wrapping_mul(*x),
            _ => *x,
        };
    }
}

fn whole_binary(op: Binary, dtype: DType, a: &[u32], b: &[u32], out: &mut [u32]) {
    let signed = dtype == DType::I32;
    for ((out, x), y) in out.iter_mut().zip(a).zip(b) {
        let (x, y) = (*x, *y);
        let (sx, sy) = (x.cast_signed(), y.cast_signed());
        let less = if signed { sx < sy } else { x < y };
        *out = match op {
            Binary::Add => x.wrapping_add(y),
            Binary::Sub => x.wrapping_sub(y),
            Binary::Mul => x.wrapping_mul(y),
            Binary::Div if y == 0 => x,
            Binary::Div if signed => sx.wrapping_div(sy).cast_unsigned(),
            Binary::Div => x / y,
            Binary::Min => {
                if less {
                    x
                } else {
                    y
                }
            }
            Binary::Max => {
                if less {
                    y
                } else {
                    x
                }
            }
            Binary::Less => u32::from(less),
            Binary::Greater => u32::from(!less && x != y),
            Binary::Equal => u32::from(x == y),
            Binary::Pow | Binary::Quantized => unreachable!("refused for whole numbers"),
        };
    }
}

/// As Rust's `as`: floats are cut towards 0 and held within the type, whole numbers wrap.
fn cast(from: DType, to: DType, a: &[u32], out: &mut [u32]) {
    macro_rules! each {
        (|$x:ident| $value:expr) => {
            vectorised!(for (out, $x) in out.iter_mut().zip(a) {
                let $x = *$x;
                *out = $value;
            })
        };
    }
    match (from.is_float(), to) {
        (true, DType::F32 | DType::F16) | (false, DType::I32 | DType::U32) => out.copy_from_slice(a),
        (true, DType::I32) => each!(|x| (f32::from_bits(x) as i32).cast_unsigned()),
        (true, DType::U32) => each!(|x| f32::from_bits(x) as u32),
        (true, DType::U8) => each!(|x| u32::from(f32::from_bits(x) as u8)),
        (true, DType::I8) => each!(|x| i32::from(f32::from_bits(x) as i8).cast_unsigned()),
        (false, DType::F32 | DType::F16) => match from {
            DType::I32 | DType::I8 => each!(|x| (x.cast_signed() as f32).to_bits()),
            _ => each!(|x| (x as f32).to_bits()),
        },
        (false, DType::U8) => each!(|x| x & 0xff),
        (false, DType::I8) => each!(|x| i32::from((x as u8).cast_signed()).cast_unsigned()),
    }
}

fn round_to_half(values: &mut [f32]) {
    let mut halves = [f16::ZERO; BLOCK];
    let halves = &mut halves[..values.len()];
    halves.convert_from_f32_slice(values);
    halves.convert_to_f32_slice(values);
}
