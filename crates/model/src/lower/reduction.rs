//! Reductions over axes, and Softmax.

use vramp_tensor::network::{NetworkReduction, WordKind};

use super::error::{Fault, problem};
use super::node::{NodeLowering, signed};

type Lowers = Result<(), Fault>;

pub(super) fn reduce(n: &mut NodeLowering<'_, '_>, how: NetworkReduction) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let axes = n.attribute_or_input("axes", 1)?.unwrap_or_default();
    if axes.is_empty() && n.flag("noop_with_empty_axes", false)? {
        return n.put(0, x.id, x.dtype);
    }
    let axes = if axes.is_empty() { (0..lengths.len()).collect() } else { NodeLowering::axes(&axes, lengths.len())? };
    let keep = n.flag("keepdims", true)?;
    let mut made = n.b.reduced(x.id, &axes, keep, how)?;
    let is_empty = axes.iter().any(|axis| lengths[*axis] == 0);
    if is_empty && n.b.kind(x.id) == WordKind::I32 {
        made = limited_to_type(n, made, x.dtype, how)?;
    }
    n.put(0, made, x.dtype)
}

/// The result of reducing no values is the end of the type's range, not that of 32 bits.
fn limited_to_type(
    n: &mut NodeLowering<'_, '_>,
    made: vramp_tensor::network::ValueId,
    dtype: crate::onnx::OnnxType,
    how: NetworkReduction,
) -> Result<vramp_tensor::network::ValueId, Fault> {
    use crate::onnx::OnnxType;
    let (low, high) = match dtype {
        OnnxType::Bool => (0, 1),
        OnnxType::U8 => (0, 255),
        OnnxType::I8 => (-128, 127),
        _ => return Ok(made),
    };
    match how {
        NetworkReduction::Max => n.with_int(vramp_tensor::Binary::Max, made, low),
        NetworkReduction::Min => n.with_int(vramp_tensor::Binary::Min, made, high),
        _ => Ok(made),
    }
}

/// Before opset 13, all axes from `axis` on are normalised as one.
pub(super) fn softmax(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let lengths = n.lengths(x.id);
    if lengths.is_empty() {
        return problem("the input has no axes");
    }
    if n.opset() >= 13 {
        let axis = NodeLowering::axis(n.int("axis", -1)?, lengths.len())?;
        let made = n.b.softmax(x.id, axis)?;
        return n.put(0, made, x.dtype);
    }
    let axis = n.int("axis", 1)?;
    let axis = if axis == signed(lengths.len()) { lengths.len() } else { NodeLowering::axis(axis, lengths.len())? };
    let flat = n.b.reshaped(x.id, &[lengths[..axis].iter().product(), lengths[axis..].iter().product()])?;
    let made = n.b.softmax(flat, 1)?;
    let made = n.b.reshaped(made, &lengths)?;
    n.put(0, made, x.dtype)
}
