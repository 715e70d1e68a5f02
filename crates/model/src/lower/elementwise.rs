//! Ops on each value: arithmetic, comparisons, logic, activations, casts.

use vramp_tensor::network::{ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::error::{Fault, problem};
use super::node::NodeLowering;
use super::{Typed, word_kind};
use crate::onnx::{OnnxType, Weight};

type Lowers = Result<(), Fault>;

pub(super) fn unary(n: &mut NodeLowering<'_, '_>, op: Unary) -> Lowers {
    let x = n.x(0)?;
    let made = n.un(op, x.id)?;
    let made = n.wrapped(made, x.dtype)?;
    n.put(0, made, x.dtype)
}

pub(super) fn ceil(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let below = n.un(Unary::Neg, x.id)?;
    let floor = n.un(Unary::Floor, below)?;
    let made = n.un(Unary::Neg, floor)?;
    n.put(0, made, x.dtype)
}

fn same_types(one: Typed, two: Typed) -> Lowers {
    if one.dtype == two.dtype {
        return Ok(());
    }
    problem(format!("the inputs are {} and {}, expected the same type", one.dtype.name(), two.dtype.name()))
}

/// Add, Sub, Mul, Div.
pub(super) fn arithmetic(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.moved(0)?, n.moved(1)?);
    same_types(a, b)?;
    if let Some(made) = n.wide_binary(op, a, b)? {
        return n.put_typed(0, made);
    }
    let (a, b) = (n.x(0)?, n.x(1)?);
    let made = n.bin(op, a.id, b.id)?;
    let made = n.wrapped(made, a.dtype)?;
    n.put(0, made, a.dtype)
}

/// Max, Min and Sum of any number of inputs.
pub(super) fn variadic(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let mut made = n.moved(0)?;
    for at in 1..n.node.inputs.len() {
        let next = n.moved(at)?;
        same_types(made, next)?;
        if let Some(wide) = n.wide_binary(op, made, next)? {
            made = wide;
            continue;
        }
        // Computed values are within 32 bits, so a limit that was limited to 32 bits has the same effect.
        if op == Binary::Add && (made.is_limited || next.is_limited) {
            return problem("a value that is known exceeds 32 bits, and one that is computed has 32 bits");
        }
        let both = n.bin(op, made.id, next.id)?;
        made = Typed::of(n.wrapped(both, made.dtype)?, made.dtype);
    }
    n.put_typed(0, made)
}

/// Less, Greater and Equal.
pub(super) fn comparison(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.moved(0)?, n.moved(1)?);
    same_types(a, b)?;
    if let Some(made) = n.wide_binary(op, a, b)? {
        return n.put(0, made.id, OnnxType::Bool);
    }
    let (a, b) = (n.x(0)?, n.x(1)?);
    let made = n.bin(op, a.id, b.id)?;
    n.put(0, made, OnnxType::Bool)
}

/// `LessOrEqual` and `GreaterOrEqual`. The opposite of the other comparison would be true for NaN.
pub(super) fn or_equal(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.moved(0)?, n.moved(1)?);
    same_types(a, b)?;
    let (strict, equal) = match (n.wide_binary(op, a, b)?, n.wide_binary(Binary::Equal, a, b)?) {
        (Some(strict), Some(equal)) => (strict.id, equal.id),
        _ => {
            let (a, b) = (n.x(0)?, n.x(1)?);
            (n.bin(op, a.id, b.id)?, n.bin(Binary::Equal, a.id, b.id)?)
        }
    };
    let made = n.bin(Binary::Max, strict, equal)?;
    n.put(0, made, OnnxType::Bool)
}

/// And and Or, of 0 and 1.
pub(super) fn logic(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.x(0)?, n.x(1)?);
    if (a.dtype, b.dtype) != (OnnxType::Bool, OnnxType::Bool) {
        return problem(format!("the inputs are {} and {}, expected bool", a.dtype.name(), b.dtype.name()));
    }
    let made = n.bin(op, a.id, b.id)?;
    n.put(0, made, OnnxType::Bool)
}

pub(super) fn not(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    if x.dtype != OnnxType::Bool {
        return problem(format!("the input is {}, expected bool", x.dtype.name()));
    }
    let one = n.i(1)?;
    let made = n.bin(Binary::Sub, one, x.id)?;
    n.put(0, made, OnnxType::Bool)
}

pub(super) fn select(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (condition, a, b) = (n.x(0)?, n.x(1)?, n.x(2)?);
    same_types(a, b)?;
    let made = n.b.select(condition.id, a.id, b.id)?;
    n.put(0, made, a.dtype)
}

pub(super) fn clip(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let (mut low, mut high) = (None, None);
    if n.opset() < 11 {
        for (name, bound) in [("min", &mut low), ("max", &mut high)] {
            if let Some(value) = n.node.attributes.float(name)? {
                *bound = Some(n.f(value)?);
            }
        }
    } else {
        // Computed values are within 32 bits, so a bound that was limited to 32 bits has the same effect.
        for (at, bound) in [(1, &mut low), (2, &mut high)] {
            if n.has(at) {
                let typed = n.moved(at)?;
                same_types(x, typed)?;
                *bound = Some(typed.id);
            }
        }
    }
    let mut made = x.id;
    for (bound, op) in [(low, Binary::Max), (high, Binary::Min)] {
        if let Some(bound) = bound {
            // Some writers store a bound as [1], which must not add an axis.
            let bound = n.b.reshaped(bound, &[])?;
            made = n.bin(op, made, bound)?;
        }
    }
    n.put(0, made, x.dtype)
}

// ---- activations

pub(super) fn gelu(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    if n.text("approximate", "none")? == "none" {
        let made = n.un(Unary::Gelu, x.id)?;
        return n.put(0, made, x.dtype);
    }
    let square = n.un(Unary::Square, x.id)?;
    let cube = n.bin(Binary::Mul, square, x.id)?;
    let bent = n.with(Binary::Mul, cube, 0.044_715)?;
    let sum = n.bin(Binary::Add, x.id, bent)?;
    let scaled = n.with(Binary::Mul, sum, (2.0 / std::f32::consts::PI).sqrt())?;
    let tanh = n.un(Unary::Tanh, scaled)?;
    let gate = n.with(Binary::Add, tanh, 1.0)?;
    let half = n.with(Binary::Mul, x.id, 0.5)?;
    let made = n.bin(Binary::Mul, half, gate)?;
    n.put(0, made, x.dtype)
}

/// x * scale + shift, limited to 0..=1.
fn ramp(n: &mut NodeLowering<'_, '_>, x: ValueId, scale: f32, shift: f32) -> Result<ValueId, Fault> {
    let scaled = n.with(Binary::Mul, x, scale)?;
    let shifted = n.with(Binary::Add, scaled, shift)?;
    let above = n.with(Binary::Max, shifted, 0.0)?;
    n.with(Binary::Min, above, 1.0)
}

pub(super) fn hard_sigmoid(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let (alpha, beta) = (n.float("alpha", 0.2)?, n.float("beta", 0.5)?);
    let made = ramp(n, x.id, alpha, beta)?;
    n.put(0, made, x.dtype)
}

pub(super) fn hard_swish(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let gate = ramp(n, x.id, 1.0 / 6.0, 0.5)?;
    let made = n.bin(Binary::Mul, x.id, gate)?;
    n.put(0, made, x.dtype)
}

pub(super) fn leaky_relu(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let alpha = n.float("alpha", 0.01)?;
    let slope = n.f(alpha)?;
    let made = bent(n, x.id, slope)?;
    n.put(0, made, x.dtype)
}

pub(super) fn prelu(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (x, slope) = (n.x(0)?, n.x(1)?);
    same_types(x, slope)?;
    let made = bent(n, x.id, slope.id)?;
    n.put(0, made, x.dtype)
}

/// x, or x times a slope below 0.
fn bent(n: &mut NodeLowering<'_, '_>, x: ValueId, slope: ValueId) -> Result<ValueId, Fault> {
    let zero = match n.b.kind(x) {
        WordKind::F32 => n.f(0.0)?,
        WordKind::I32 => n.i(0)?,
    };
    let is_below = n.bin(Binary::Less, x, zero)?;
    let below = n.bin(Binary::Mul, x, slope)?;
    Ok(n.b.select(is_below, below, x)?)
}

// ---- casts

pub(super) fn cast(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let to = OnnxType::of(n.int("to", 0)? as i32);
    let Some(kind) = word_kind(to) else {
        return Err(Fault::Unsupported(format!("to {}", to.name())));
    };
    if let Some(floats) = large_floats(n) {
        return cast_floats(n, floats, to);
    }
    let x = n.rowed(0)?;
    let is_integer = |dtype| matches!(dtype, OnnxType::I32 | OnnxType::I64);
    if is_integer(to) && is_integer(x.dtype) && (to == OnnxType::I64 || !x.is_limited) {
        return n.put_typed(0, Typed { dtype: to, ..x });
    }
    if let Some(made) = n.wide_cast(x, to)? {
        return n.put_typed(0, made);
    }
    let x = n.x(0)?;
    let made = if to == OnnxType::Bool {
        as_bool(n, x.id)?
    } else {
        let words = n.b.cast(x.id, kind)?;
        if x.dtype == to { words } else { n.wrapped(words, to)? }
    };
    n.put(0, made, to)
}

/// The weight of f64 or bf16 that is cast. Exporters write such constants before a cast to the type of the model.
fn large_floats<'g>(n: &NodeLowering<'_, 'g>) -> Option<&'g Weight> {
    let weight = n.node.input(0).and_then(|input| n.graph().weight(input));
    weight.filter(|weight| matches!(weight.dtype, OnnxType::F64 | OnnxType::Bf16))
}

fn cast_floats(n: &mut NodeLowering<'_, '_>, weight: &Weight, to: OnnxType) -> Lowers {
    let floats = n.b.floats(weight.floats()?.into_owned(), &weight.dims)?;
    let made = if to == OnnxType::Bool {
        as_bool(n, floats)?
    } else {
        let words = n.b.cast(floats, word_kind(to).unwrap_or(WordKind::F32))?;
        n.wrapped(words, to)?
    };
    n.put(0, made, to)
}

/// 1 for values that are not 0, such as NaN.
pub(super) fn as_bool(n: &mut NodeLowering<'_, '_>, x: ValueId) -> Result<ValueId, Fault> {
    let zero = match n.b.kind(x) {
        WordKind::F32 => n.f(0.0)?,
        WordKind::I32 => n.i(0)?,
    };
    let is_zero = n.bin(Binary::Equal, x, zero)?;
    let one = n.i(1)?;
    n.bin(Binary::Sub, one, is_zero)
}

pub(super) fn identity(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    n.put_typed(0, x)
}
