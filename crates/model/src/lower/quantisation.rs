//! `QuantizeLinear` and `DequantizeLinear`, so that models with such pairs run in floats.

use vramp_tensor::network::ValueId;
use vramp_tensor::{Binary, Unary};

use super::error::Fault;
use super::node::NodeLowering;
use crate::onnx::{OnnxType, Weight};

type Lowers = Result<(), Fault>;

/// Scale and zero point, with lengths that broadcast to those of the values.
fn scale_and_zero(n: &mut NodeLowering<'_, '_>, lengths: &[usize]) -> Result<(ValueId, Option<ValueId>), Fault> {
    let (scale, zero) = (n.float_input(1)?, n.optional(2)?);
    let own = n.lengths(scale.id);
    let spread = if own.iter().product::<usize>() == 1 {
        Vec::new()
    } else {
        let axis = NodeLowering::axis(n.int("axis", 1)?, lengths.len())?;
        if own != [lengths[axis]] {
            let what =
                format!("a scale of {own:?} for axis {axis} of {lengths:?}; one value for each index is supported");
            return Err(Fault::Unsupported(what));
        }
        let mut spread = vec![1; lengths.len()];
        spread[axis] = lengths[axis];
        spread
    };
    let scale = n.b.reshaped(scale.id, &spread)?;
    let zero = zero.map(|zero| n.b.reshaped(zero.id, &spread)).transpose()?;
    Ok((scale, zero))
}

pub(super) fn quantize(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let (scale, zero) = scale_and_zero(n, &lengths)?;
    let to = match (n.optional(2)?, n.int("output_dtype", 0)? as i32) {
        (Some(zero), _) => zero.dtype,
        (None, 0) => OnnxType::U8,
        (None, other) => OnnxType::of(other),
    };
    let (low, high) = match to {
        OnnxType::U8 => (0.0, 255.0),
        OnnxType::I8 => (-128.0, 127.0),
        other => return Err(Fault::Unsupported(format!("results of type {}", other.name()))),
    };
    let values = n.floats(x.id)?;
    let divided = n.bin(Binary::Div, values, scale)?;
    let mut made = n.un(Unary::Round, divided)?;
    if let Some(zero) = zero {
        let zero = n.floats(zero)?;
        made = n.bin(Binary::Add, made, zero)?;
    }
    let above = n.with(Binary::Max, made, low)?;
    let within = n.with(Binary::Min, above, high)?;
    let made = n.integers(within)?;
    n.put(0, made, to)
}

pub(super) fn dequantize(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let weight = n.node.input(0).and_then(|input| n.graph().weight(input));
    if let Some(weight) = weight.filter(|weight| matches!(weight.dtype, OnnxType::U8 | OnnxType::I8))
        && let Some(made) = dequantized(n, weight)?
    {
        let dtype = n.float_input(1)?.dtype;
        return n.put(0, made, dtype);
    }
    let x = n.x(0)?;
    if !matches!(x.dtype, OnnxType::U8 | OnnxType::I8 | OnnxType::I32) {
        return Err(Fault::Unsupported(format!("an input of type {}", x.dtype.name())));
    }
    let lengths = n.lengths(x.id);
    let (scale, zero) = scale_and_zero(n, &lengths)?;
    let apart = match zero {
        Some(zero) => n.bin(Binary::Sub, x.id, zero)?,
        None => x.id,
    };
    let floats = n.floats(apart)?;
    let made = n.bin(Binary::Mul, floats, scale)?;
    let dtype = n.float_input(1)?.dtype;
    n.put(0, made, dtype)
}

/// How many neighbours of a value have the same scale.
fn inner_of(n: &NodeLowering<'_, '_>, scale: ValueId, lengths: &[usize]) -> usize {
    let axis = n.b.lengths(scale).iter().position(|length| *length > 1);
    axis.map_or(1, |axis| lengths[axis + 1..].iter().product::<usize>().max(1))
}

/// A weight of 8 bits with known scales: each value becomes a float at once, without integers of 32 bits in between, which
/// would take four times the weight several times.
fn dequantized(n: &mut NodeLowering<'_, '_>, weight: &Weight) -> Result<Option<ValueId>, Fault> {
    let (scale, zero) = scale_and_zero(n, &weight.dims)?;
    let zeros = zero.map_or(Some(vec![0]), |zero| n.b.known_integers(zero));
    let (Some(scales), Some(zeros)) = (n.b.known_floats(scale), zeros) else { return Ok(None) };
    let inner = inner_of(n, scale, &weight.dims);
    let value = |(at, byte): (usize, &u8)| {
        let value = if weight.dtype == OnnxType::I8 { i32::from(byte.cast_signed()) } else { i32::from(*byte) };
        let channel = at / inner;
        (value - zeros[channel % zeros.len()]) as f32 * scales[channel % scales.len()]
    };
    let bytes = weight.bytes()?;
    Ok(Some(n.b.floats(bytes.iter().enumerate().map(value).collect(), &weight.dims)?))
}
