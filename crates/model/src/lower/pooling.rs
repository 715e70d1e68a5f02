//! Pools: the largest value or the mean of windows, and of whole pictures.

use vramp_tensor::network::{IndexOrder, NetworkReduction, PadMode, WordKind};

use super::error::{Fault, problem};
use super::node::NodeLowering;
use super::windows::WindowSettings;
use crate::onnx::OnnxType;

type Lowers = Result<(), Fault>;

fn spatial(lengths: &[usize]) -> Result<&[usize], Fault> {
    if lengths.len() < 3 {
        return problem(format!("the input {lengths:?} has no spatial axes; it needs at least 3 axes"));
    }
    Ok(&lengths[2..])
}

pub(super) fn max(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let input = spatial(&lengths)?;
    let settings = WindowSettings::of(n, input.len(), None)?;
    let window = settings.over(input, n.flag("ceil_mode", false)?)?.window;
    let order = if n.flag("storage_order", false)? { IndexOrder::ColumnMajor } else { IndexOrder::RowMajor };
    let with_indices = n.is_used(1).then_some(order);
    // Integers of 8 bits are exact as floats.
    let is_float = n.b.kind(x.id) == WordKind::F32;
    let floats = n.floats(x.id)?;
    let (made, indices) = n.b.max_pool(floats, window, with_indices)?;
    let made = if is_float { made } else { n.integers(made)? };
    n.put(0, made, x.dtype)?;
    match indices {
        Some(indices) => n.put(1, indices, OnnxType::I64),
        None => Ok(()),
    }
}

pub(super) fn average(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let lengths = n.lengths(x.id);
    let input = spatial(&lengths)?;
    let settings = WindowSettings::of(n, input.len(), None)?;
    let ceil = n.flag("ceil_mode", false)?;
    let found = settings.over(input, ceil)?;
    let is_padded = found.begin.iter().chain(&found.end).any(|pad| *pad > 0);
    if !n.flag("count_include_pad", false)? || !is_padded {
        let made = n.b.average_pool(x.id, found.window, false)?;
        return n.put(0, made, x.dtype);
    }
    // The zeros count, but what lies beyond them does not: with the zeros written out, windows end where they should.
    let with = |pads: &[usize]| [0, 0].into_iter().chain(pads.iter().copied()).collect::<Vec<_>>();
    let padded = n.b.padded(x.id, &with(&found.begin), &with(&found.end), PadMode::Constant(0))?;
    let mut window = found.window;
    window.input = super::windows::three(&n.b.lengths(padded)[2..], 1);
    window.pad = [0; 3];
    let made = n.b.average_pool(padded, window, false)?;
    n.put(0, made, x.dtype)
}

pub(super) fn global(n: &mut NodeLowering<'_, '_>, how: NetworkReduction) -> Lowers {
    let x = n.float_input(0)?;
    let rank = n.b.lengths(x.id).len();
    if rank < 3 {
        return problem(format!("the input has {rank} axes; it needs at least 3"));
    }
    let axes: Vec<usize> = (2..rank).collect();
    let made = n.b.reduced(x.id, &axes, true, how)?;
    n.put(0, made, x.dtype)
}
