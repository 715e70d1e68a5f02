//! Ops on each value: arithmetic, comparisons, logic, activations, casts.

use vramp_tensor::network::{ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::error::{Fault, problem};
use super::node::NodeLowering;
use super::{Typed, word_kind};
use crate::onnx::OnnxType;

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
    let (a, b) = (n.x(0)?, n.x(1)?);
    same_types(a, b)?;
    let made = computed(n, op, a, b)?;
    n.put(0, made, a.dtype)
}

fn computed(n: &mut NodeLowering<'_, '_>, op: Binary, a: Typed, b: Typed) -> Result<ValueId, Fault> {
    let made = n.bin(op, a.id, b.id)?;
    if a.dtype == OnnxType::I64 && n.b.is_known(made) {
        in_range(n, op, a.id, b.id)?;
    }
    n.wrapped(made, a.dtype)
}

/// Fails if integers of 64 bits that are known leave the range of 32 bits. Floats are exact enough to notice that.
fn in_range(n: &mut NodeLowering<'_, '_>, op: Binary, a: ValueId, b: ValueId) -> Lowers {
    if op == Binary::Div {
        return Ok(());
    }
    let (a, b) = (n.floats(a)?, n.floats(b)?);
    let rough = n.bin(op, a, b)?;
    let is_out = |value: &f32| *value >= 2_147_483_648.0 || *value < -2_147_483_648.0;
    match n.b.known_floats(rough).unwrap_or_default().into_iter().find(is_out) {
        Some(value) => problem(format!("the result {value} does not fit into 32 bits")),
        None => Ok(()),
    }
}

/// Max, Min and Sum of any number of inputs.
pub(super) fn variadic(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let mut made = n.x(0)?;
    for at in 1..n.node.inputs.len() {
        let next = n.x(at)?;
        same_types(made, next)?;
        made = Typed::of(computed(n, op, made, next)?, made.dtype);
    }
    n.put(0, made.id, made.dtype)
}

/// Less, Greater and Equal.
pub(super) fn comparison(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.x(0)?, n.x(1)?);
    same_types(a, b)?;
    let made = n.bin(op, a.id, b.id)?;
    n.put(0, made, OnnxType::Bool)
}

/// `LessOrEqual` and `GreaterOrEqual`. The opposite of the other comparison would be true for NaN.
pub(super) fn or_equal(n: &mut NodeLowering<'_, '_>, op: Binary) -> Lowers {
    let (a, b) = (n.x(0)?, n.x(1)?);
    same_types(a, b)?;
    let strict = n.bin(op, a.id, b.id)?;
    let equal = n.bin(Binary::Equal, a.id, b.id)?;
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
        low = n.optional(1)?.map(|typed| typed.id);
        high = n.optional(2)?.map(|typed| typed.id);
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
    let x = n.moved(0)?;
    let is_integer = |dtype| matches!(dtype, OnnxType::I32 | OnnxType::I64);
    if is_integer(to) && is_integer(x.dtype) && (to == OnnxType::I64 || !x.is_limited) {
        return n.put_typed(0, Typed { dtype: to, ..x });
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
    let x = n.moved(0)?;
    n.put_typed(0, x)
}
