//! Runs a program on the host, in blocks that stay in the first cache.
//!
//! Owns the registers of each thread: one row of values per step.
//! Does not spread work over threads: whoever runs it gives each of them a part.
//!
//! Always: a block goes through all steps before the next is begun; what lies in memory as it is needed is not copied.

use std::cell::RefCell;

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{Act, Binary, Input, Program, Step, Unary, Walk};
use crate::dtype::DType;
use crate::host::math;
use crate::host::rows::Rows;
use crate::host::vector::vectorised;

/// Values that go through all steps together: 2 KiB a step, of which a chain of sixteen stays in 32 KiB.
const BLOCK: usize = 512;

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
}

impl<'a> Running<'a> {
    pub(crate) fn new(program: &'a Program, inputs: Vec<&'a [u8]>) -> Running<'a> {
        Running { program, inputs, given: None }
    }

    /// Makes values from `start` on, as many as `out` has bytes for.
    pub(crate) fn fill(&self, start: usize, out: &mut [u8]) {
        self.run(start, out.len() / self.program.out.bytes(), Sink::Bytes(out));
    }

    /// Ends what a kernel has computed, in place; `start` is the number of its first value.
    pub(crate) fn end(program: &Program, inputs: Vec<&[u8]>, start: usize, values: &mut [f32]) {
        // One block at a time: what was given is overwritten by what it becomes.
        let mut given = [0.0; BLOCK];
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            let given = &mut given[..values.len()];
            given.copy_from_slice(values);
            let running = Running { program, inputs: inputs.clone(), given: Some(given) };
            running.run(start + block * BLOCK, values.len(), Sink::Bytes(cast_slice_mut(values)));
        }
    }

    fn run(&self, start: usize, count: usize, mut sink: Sink<'_>) {
        REGISTERS.with_borrow_mut(|registers| {
            let steps = self.program.steps.len();
            if registers.len() < steps {
                registers.resize_with(steps, || vec![0; BLOCK]);
            }
            self.fill_constants(&mut registers[..steps]);
            let mut done = 0;
            while done < count {
                let length = BLOCK.min(count - done);
                self.block(&mut registers[..steps], start + done, done, length, &mut sink);
                done += length;
            }
        });
    }

    /// What does not change from value to value is put down once.
    fn fill_constants(&self, registers: &mut [Vec<u32>]) {
        for (Step { act, .. }, register) in self.program.steps.iter().zip(registers) {
            match act {
                Act::Constant(number) => register.fill(self.program.constants[usize::from(*number)]),
                Act::Input(number) => {
                    let input = &self.program.inputs[usize::from(*number)];
                    if input.walk == Walk::Stay {
                        let bits = load_one(input.dtype, self.inputs[usize::from(*number)], input.offset);
                        register.fill(bits);
                    }
                }
                _ => {}
            }
        }
    }

    fn block(&self, registers: &mut [Vec<u32>], start: usize, done: usize, length: usize, sink: &mut Sink<'_>) {
        let last = self.program.steps.len() - 1;
        for (at, step) in self.program.steps.iter().enumerate() {
            if self.stays(step) && at != last {
                continue;
            }
            // A register is never one of its own arguments, so it can be taken out while the others are read.
            let mut own = std::mem::take(&mut registers[at]);
            if at == last {
                sink.take(self.program.out, done, length, |out| {
                    let out = out.unwrap_or(&mut own[..length]);
                    self.step(step, registers, start, &mut out[..length]);
                });
                sink.store(self.program.out, done, &own[..length]);
            } else if self.in_place(step, start, length).is_none() {
                self.step(step, registers, start, &mut own[..length]);
            }
            registers[at] = own;
        }
    }

    /// Whether the register was filled once for all blocks.
    fn stays(&self, step: &Step) -> bool {
        match step.act {
            Act::Constant(_) => true,
            Act::Input(number) => self.program.inputs[usize::from(number)].walk == Walk::Stay,
            _ => false,
        }
    }

    /// The values of a step where they lie in memory already, as words.
    fn in_place(&self, step: &Step, start: usize, length: usize) -> Option<&[u32]> {
        match step.act {
            Act::Given => self.given.map(|given| cast_slice(&given[..length])),
            Act::Input(number) => {
                let Input { dtype, offset, walk } = &self.program.inputs[usize::from(number)];
                let whole = dtype.bytes() == 4 && *walk == Walk::Run;
                whole.then(|| &cast_slice(self.inputs[usize::from(number)])[offset + start..offset + start + length])
            }
            _ => None,
        }
    }

    fn step(&self, step: &Step, registers: &[Vec<u32>], start: usize, out: &mut [u32]) {
        let length = out.len();
        let arg = |number: u16| {
            let at = usize::from(number);
            self.in_place(&self.program.steps[at], start, length).unwrap_or_else(|| &registers[at][..length])
        };
        let dtype = step.dtype;
        match step.act {
            Act::Constant(number) => out.fill(self.program.constants[usize::from(number)]),
            Act::Given => out.copy_from_slice(self.in_place(step, start, length).unwrap_or(&[])),
            Act::Input(number) => {
                let (input, memory) = (&self.program.inputs[usize::from(number)], self.inputs[usize::from(number)]);
                load(input, memory, start, out);
            }
            Act::Unary(op, a) => match dtype {
                DType::F32 | DType::F16 => unary(op, cast_slice(arg(a)), cast_slice_mut(out)),
                _ => whole_unary(op, dtype, arg(a), out),
            },
            Act::Binary(op, a, b) => match self.program.steps[usize::from(a)].dtype {
                DType::F32 | DType::F16 => binary(op, cast_slice(arg(a)), cast_slice(arg(b)), cast_slice_mut(out)),
                from => whole_binary(op, from, arg(a), arg(b), out),
            },
            Act::Select(c, a, b) => {
                let (c, a, b) = (arg(c), arg(a), arg(b));
                let is_float = self.program.steps[usize::from(match step.act {
                    Act::Select(c, ..) => c,
                    _ => 0,
                })]
                .dtype
                .is_float();
                // A float that is -0 is 0 too.
                let zero = if is_float { 0x7fff_ffff } else { u32::MAX };
                vectorised!(for (((out, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
                    *out = if c & zero == 0 { *b } else { *a };
                });
            }
            Act::Cast(a) => cast(self.program.steps[usize::from(a)].dtype, dtype, arg(a), out),
        }
        if dtype == DType::F16 && !matches!(step.act, Act::Input(_) | Act::Constant(_)) {
            round_to_half(cast_slice_mut(out));
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
    Bytes(&'a mut [u8]),
    /// Into floats, whatever the type is.
    Floats(&'a mut [u32], DType),
}

impl Sink<'_> {
    /// Hands out the place for so many words, where they go there as they are.
    fn take(&mut self, dtype: DType, done: usize, length: usize, write: impl FnOnce(Option<&mut [u32]>)) {
        match self {
            Sink::Bytes(bytes) if dtype.bytes() == 4 => {
                write(Some(&mut cast_slice_mut(bytes)[done..done + length]));
            }
            Sink::Floats(words, dtype) if dtype.is_float() => write(Some(&mut words[done..done + length])),
            _ => write(None),
        }
    }

    /// Stores what was not handed a place.
    fn store(&mut self, dtype: DType, done: usize, from: &[u32]) {
        let end = done + from.len();
        match self {
            Sink::Bytes(bytes) => match dtype {
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

fn binary(op: Binary, a: &[f32], b: &[f32], out: &mut [f32]) {
    macro_rules! each {
        (|$x:ident, $y:ident| $value:expr) => {
            vectorised!(for ((out, $x), $y) in out.iter_mut().zip(a).zip(b) {
                let ($x, $y) = (*$x, *$y);
                *out = $value;
            })
        };
    }
    match op {
        Binary::Add => each!(|x, y| x + y),
        Binary::Sub => each!(|x, y| x - y),
        Binary::Mul => each!(|x, y| x * y),
        Binary::Div => each!(|x, y| x / y),
        // A comparison with NaN is false; x + y is NaN where either is.
        Binary::Min => each!(|x, y| if x <= y { x } else if y < x { y } else { x + y }),
        Binary::Max => each!(|x, y| if x >= y { x } else if y > x { y } else { x + y }),
        Binary::Pow => each!(|x, y| power(x, y)),
        Binary::Less => each!(|x, y| if x < y { 1.0 } else { 0.0 }),
        Binary::Greater => each!(|x, y| if x > y { 1.0 } else { 0.0 }),
        Binary::Equal => each!(|x, y| if x == y { 1.0 } else { 0.0 }),
        Binary::Quantized => each!(|x, y| {
            let whole = (x / y).round_ties_even();
            let whole = if whole > 127.0 { 127.0 } else { whole };
            let whole = if whole < -127.0 { -127.0 } else { whole };
            if whole == whole { whole } else { 0.0 }
        }),
    }
}

/// x to the power of y, by exp and log: within 1e-5 of it, as long as y is not huge.
#[inline(always)]
fn power(x: f32, y: f32) -> f32 {
    let size = math::exp(y * math::log(x.abs()));
    let half = y * 0.5;
    let is_whole = y.floor() == y;
    let is_odd = is_whole & (half.floor() != half);
    let signed = if is_odd { size.copysign(x) } else { size };
    let value = if (x < 0.0) & !is_whole { f32::NAN } else { signed };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { value }
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
            Binary::Min => if less { x } else { y },
            Binary::Max => if less { y } else { x },
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
        (true, DType::F32 | DType::F16) => out.copy_from_slice(a),
        (true, DType::I32) => each!(|x| (f32::from_bits(x) as i32).cast_unsigned()),
        (true, DType::U32) => each!(|x| f32::from_bits(x) as u32),
        (true, DType::U8) => each!(|x| u32::from(f32::from_bits(x) as u8)),
        (true, DType::I8) => each!(|x| i32::from(f32::from_bits(x) as i8).cast_unsigned()),
        (false, DType::F32 | DType::F16) => match from {
            DType::I32 | DType::I8 => each!(|x| (x.cast_signed() as f32).to_bits()),
            _ => each!(|x| (x as f32).to_bits()),
        },
        (false, DType::I32 | DType::U32) => out.copy_from_slice(a),
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
