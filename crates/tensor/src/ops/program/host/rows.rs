//! One step on a row of values: the loops of each op, compiled for each set of vector instructions.
//!
//! Invariant: a value depends only on its own arguments, so that rows may be split anywhere.

use bytemuck::{cast_slice, cast_slice_mut};
use half::f16;
use vramp_kernels::vectorised;

use super::super::{Binary, Unary};
use super::BLOCK;
use crate::ops::dtype::DType;
use crate::ops::host::convert;
use crate::ops::host::math::{self, ROUNDING};

/// An argument of a step: words that are floats or integers.
#[derive(Clone, Copy)]
pub(super) enum Arg<'a> {
    Row(&'a [u32]),
    One(u32),
}

impl<'a> Arg<'a> {
    /// Computes a row of results. If the argument is a single value, computes one result and repeats it.
    pub(super) fn with(self, out: &mut [u32], compute: impl FnOnce(&[u32], &mut [u32])) {
        match self {
            Arg::Row(row) => compute(row, out),
            Arg::One(bits) => {
                let mut one = [0];
                compute(&[bits], &mut one);
                out.fill(one[0]);
            }
        }
    }

    /// A part of the argument as a row; `room` is filled if the argument is a single value.
    fn part(self, start: usize, room: &'a mut [u32]) -> &'a [u32] {
        match self {
            Arg::Row(row) => &row[start..start + room.len()],
            Arg::One(bits) => {
                room.fill(bits);
                room
            }
        }
    }
}

/// Maps every value of a row.
macro_rules! each {
    ($from:expr => $out:expr, |$x:ident| $value:expr) => {{
        let (from, out) = ($from, $out);
        vectorised!(for (out, $x) in out.iter_mut().zip(from) {
            let $x = *$x;
            *out = $value;
        })
    }};
}

pub(super) fn unary(op: Unary, a: &[f32], out: &mut [f32]) {
    match op {
        Unary::Neg => each!(a => out, |x| -x),
        Unary::Abs => each!(a => out, |x| x.abs()),
        Unary::Relu => each!(a => out, |x| if x < 0.0 { 0.0 } else { x }),
        Unary::Sigmoid => each!(a => out, |x| math::sigmoid(x)),
        Unary::Tanh => each!(a => out, |x| math::tanh(x)),
        Unary::Gelu => each!(a => out, |x| math::gelu(x)),
        Unary::Silu => each!(a => out, |x| math::silu(x)),
        Unary::Erf => each!(a => out, |x| math::erf(x)),
        Unary::Exp => each!(a => out, |x| math::exp(x)),
        Unary::Log if are_ordinary(a) => each!(a => out, |x| math::log_of_ordinary(x)),
        Unary::Log => each!(a => out, |x| math::log(x)),
        Unary::Sqrt => each!(a => out, |x| x.sqrt()),
        Unary::Square => each!(a => out, |x| x * x),
        Unary::Reciprocal => each!(a => out, |x| 1.0 / x),
        Unary::Floor => each!(a => out, |x| x.floor()),
        Unary::Round => each!(a => out, |x| x.round_ties_even()),
        Unary::FiniteSize => each!(a => out, |x| if x.abs() < f32::INFINITY { x.abs() } else { 0.0 }),
        Unary::ScaleOf => each!(a => out, |x| if x > 0.0 { (x / 127.0).max(f32::MIN_POSITIVE) } else { 1.0 }),
    }
}

/// Maps every pair of values of two rows, or of a row and one value.
macro_rules! both {
    ($a:expr, $b:expr => $out:expr, $type:ident, |$x:ident, $y:ident| $value:expr) => {{
        let out = $out;
        match ($a, $b) {
            (Arg::Row(a), Arg::Row(b)) => vectorised!(for ((out, x), y) in out.iter_mut().zip(a).zip(b) {
                let ($x, $y) = ($type(*x), $type(*y));
                *out = $value;
            }),
            (Arg::Row(a), Arg::One(y)) => {
                let $y = $type(y);
                vectorised!(for (out, x) in out.iter_mut().zip(a) {
                    let $x = $type(*x);
                    *out = $value;
                });
            }
            (Arg::One(x), Arg::Row(b)) => {
                let $x = $type(x);
                vectorised!(for (out, y) in out.iter_mut().zip(b) {
                    let $y = $type(*y);
                    *out = $value;
                });
            }
            (Arg::One(x), Arg::One(y)) => {
                let ($x, $y) = ($type(x), $type(y));
                out.fill($value);
            }
        }
    }};
}

#[inline(always)]
const fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

#[inline(always)]
const fn signed(bits: u32) -> i32 {
    bits.cast_signed()
}

#[inline(always)]
const fn unsigned(bits: u32) -> u32 {
    bits
}

pub(super) fn binary(op: Binary, a: Arg<'_>, b: Arg<'_>, out: &mut [u32]) {
    /// 1 or 0, as a float.
    const fn truth(is: bool) -> u32 {
        if is { 1.0_f32.to_bits() } else { 0 }
    }
    match op {
        Binary::Add => both!(a, b => out, float, |x, y| (x + y).to_bits()),
        Binary::Sub => both!(a, b => out, float, |x, y| (x - y).to_bits()),
        Binary::Mul => both!(a, b => out, float, |x, y| (x * y).to_bits()),
        Binary::Div => both!(a, b => out, float, |x, y| (x / y).to_bits()),
        // Comparisons with NaN are false, so a NaN in x stays; a NaN in y needs its own test.
        Binary::Min => both!(a, b => out, float, |x, y| (if (y < x) | y.is_nan() { y } else { x }).to_bits()),
        Binary::Max => both!(a, b => out, float, |x, y| (if (y > x) | y.is_nan() { y } else { x }).to_bits()),
        Binary::Pow if matches!(a, Arg::Row(a) if are_ordinary(cast_slice(a))) => {
            both!(a, b => out, float, |x, y| power_of_ordinary(x, y).to_bits());
        }
        Binary::Pow => both!(a, b => out, float, |x, y| power(x, y).to_bits()),
        Binary::Less => both!(a, b => out, float, |x, y| truth(x < y)),
        Binary::Greater => both!(a, b => out, float, |x, y| truth(x > y)),
        Binary::Equal => both!(a, b => out, float, |x, y| truth(x == y)),
        Binary::Quantized => both!(a, b => out, float, |x, y| {
            let whole = (x / y).round_ties_even();
            let whole = if whole > 127.0 { 127.0 } else { whole };
            let whole = if whole < -127.0 { -127.0 } else { whole };
            (if whole.is_nan() { 0.0 } else { whole }).to_bits()
        }),
    }
}

/// True if all values are positive, finite and not subnormal.
fn are_ordinary(values: &[f32]) -> bool {
    vectorised!(values.iter().fold(true, |all, x| all & math::is_ordinary(*x)))
}

/// x to the power of y, by exp and log: within 1e-5 unless y is huge.
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

/// Like [`power`] for an x that is positive, finite and not subnormal.
#[inline(always)]
fn power_of_ordinary(x: f32, y: f32) -> f32 {
    // If y is 0, the product is 0, and the result is e^0 = 1.
    let value = math::exp(y * math::log_of_ordinary(x));
    if x == 1.0 { 1.0 } else { value }
}

pub(super) fn whole_unary(op: Unary, dtype: DType, a: &[u32], out: &mut [u32]) {
    match (op, dtype) {
        (Unary::Neg, _) => each!(a => out, |x| x.wrapping_neg()),
        (Unary::Abs, DType::I32) => each!(a => out, |x| x.cast_signed().wrapping_abs().cast_unsigned()),
        (Unary::Relu, DType::I32) => each!(a => out, |x| x.cast_signed().max(0).cast_unsigned()),
        (Unary::Square, _) => each!(a => out, |x| x.wrapping_mul(x)),
        _ => out.copy_from_slice(a),
    }
}

pub(super) fn whole_binary(op: Binary, dtype: DType, a: Arg<'_>, b: Arg<'_>, out: &mut [u32]) {
    let is_signed = dtype == DType::I32;
    match op {
        Binary::Add => both!(a, b => out, unsigned, |x, y| x.wrapping_add(y)),
        Binary::Sub => both!(a, b => out, unsigned, |x, y| x.wrapping_sub(y)),
        Binary::Mul => both!(a, b => out, unsigned, |x, y| x.wrapping_mul(y)),
        Binary::Div if is_signed => {
            both!(a, b => out, signed, |x, y| (if y == 0 { x } else { x.wrapping_div(y) }).cast_unsigned());
        }
        Binary::Div => both!(a, b => out, unsigned, |x, y| x.checked_div(y).unwrap_or(x)),
        Binary::Min if is_signed => both!(a, b => out, signed, |x, y| x.min(y).cast_unsigned()),
        Binary::Min => both!(a, b => out, unsigned, |x, y| x.min(y)),
        Binary::Max if is_signed => both!(a, b => out, signed, |x, y| x.max(y).cast_unsigned()),
        Binary::Max => both!(a, b => out, unsigned, |x, y| x.max(y)),
        Binary::Less if is_signed => both!(a, b => out, signed, |x, y| u32::from(x < y)),
        Binary::Less => both!(a, b => out, unsigned, |x, y| u32::from(x < y)),
        Binary::Greater if is_signed => both!(a, b => out, signed, |x, y| u32::from(x > y)),
        Binary::Greater => both!(a, b => out, unsigned, |x, y| u32::from(x > y)),
        Binary::Equal => both!(a, b => out, unsigned, |x, y| u32::from(x == y)),
        Binary::Pow | Binary::Quantized => unreachable!("refused for integers"),
    }
}

/// Takes the word of `a` where the word of `c`, masked, is not 0, and the word of `b` elsewhere.
pub(super) fn select(mask: u32, [c, a, b]: [Arg<'_>; 3], out: &mut [u32]) {
    let mut room = [[0; BLOCK]; 3];
    for (block, out) in out.chunks_mut(BLOCK).enumerate() {
        let start = block * BLOCK;
        let [for_c, for_a, for_b] = room.each_mut().map(|room| &mut room[..out.len()]);
        let (c, a, b) = (c.part(start, for_c), a.part(start, for_a), b.part(start, for_b));
        vectorised!(for (((out, c), a), b) in out.iter_mut().zip(c).zip(a).zip(b) {
            *out = if c & mask == 0 { *b } else { *a };
        });
    }
}

/// Converts like Rust's `as`: floats truncate and saturate, integers wrap.
pub(super) fn cast(from: DType, to: DType, a: &[u32], out: &mut [u32]) {
    match (from.is_float(), to) {
        (true, DType::F32 | DType::F16) | (false, DType::I32 | DType::U32) => out.copy_from_slice(a),
        (true, DType::I32) => convert::signed_of_floats(a, out),
        (true, DType::U32) => convert::unsigned_of_floats(a, out),
        (true, DType::U8) => each!(a => out, |x| cut(f32::from_bits(x), 0.0, 255.0)),
        (true, DType::I8) => each!(a => out, |x| cut(f32::from_bits(x), -128.0, 127.0)),
        (false, DType::F32 | DType::F16) => match from {
            DType::I32 | DType::I8 => each!(a => out, |x| (x.cast_signed() as f32).to_bits()),
            _ => each!(a => out, |x| (x as f32).to_bits()),
        },
        (false, DType::U8) => each!(a => out, |x| x & 0xff),
        (false, DType::I8) => each!(a => out, |x| i32::from((x as u8).cast_signed()).cast_unsigned()),
    }
}

/// A float, limited to the range between two small integers and truncated; 0 for NaN. Every operation of this function
/// has a vector instruction.
#[inline(always)]
fn cut(x: f32, least: f32, most: f32) -> u32 {
    let x = if x > most { most } else { x };
    let x = if x < least { least } else { x };
    let x = if x.is_nan() { 0.0 } else { x };
    (x.trunc() + ROUNDING).to_bits().wrapping_sub(ROUNDING.to_bits())
}

/// Writes words to `out` as bytes of type `to`. The words are floats, or integers that are in the range of `to`.
pub(super) fn bytes(from: DType, to: DType, words: &[u32], out: &mut [u8]) {
    match (from.is_float(), to) {
        (true, DType::U8) => each!(words => out, |x| cut(f32::from_bits(x), 0.0, 255.0) as u8),
        (true, _) => each!(words => out, |x| cut(f32::from_bits(x), -128.0, 127.0) as u8),
        (false, _) => each!(words => out, |x| x as u8),
    }
}

pub(super) fn round_to_half(values: &mut [u32]) {
    let mut halves = [f16::ZERO; BLOCK];
    for values in values.chunks_mut(BLOCK) {
        let halves = &mut halves[..values.len()];
        convert::halves_of_floats(cast_slice(values), halves);
        convert::floats_of_halves(halves, cast_slice_mut(values));
    }
}
