//! Ops that move values without computing: transposing, slicing, splitting, joining, padding, repeating. Most of them are
//! views.

use vramp_tensor::network::{PadMode, ValueId, WordKind};

use super::Typed;
use super::error::{Fault, problem};
use super::node::{NodeLowering, lengths_of, signed};

type Lowers = Result<(), Fault>;

pub(super) fn transpose(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let rank = n.b.lengths(x.id).len();
    let order = match n.node.attributes.ints("perm")? {
        Some(perm) => NodeLowering::axes(perm, rank)?,
        None => (0..rank).rev().collect(),
    };
    if order.len() != rank {
        return problem(format!("perm {order:?} has {} axes, the input has {rank}", order.len()));
    }
    NodeLowering::keeps_rows(x, order.first() == Some(&0))?;
    let made = n.b.permuted(x.id, &order);
    n.put_moved(0, made, x)
}

pub(super) fn slice(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let lengths = n.lengths(x.id);
    let needed = |name: &str, found: Option<Vec<i64>>| found.ok_or_else(|| Fault::Problem(format!("it has no {name}")));
    let old = n.opset() < 10;
    let starts = if old { n.node.attributes.ints("starts")?.map(<[i64]>::to_vec) } else { n.longs(1)? };
    let ends = if old { n.node.attributes.ints("ends")?.map(<[i64]>::to_vec) } else { n.longs(2)? };
    let (starts, ends) = (needed("starts", starts)?, needed("ends", ends)?);
    let axes = if old { n.node.attributes.ints("axes")?.map(<[i64]>::to_vec) } else { n.longs(3)? };
    let axes = axes.unwrap_or_else(|| (0..signed(starts.len())).collect());
    let steps = if old { None } else { n.longs(4)? }.unwrap_or_else(|| vec![1; starts.len()]);
    if starts.len() != ends.len() || starts.len() != axes.len() || starts.len() != steps.len() {
        let counts = [starts.len(), ends.len(), axes.len(), steps.len()];
        return problem(format!("starts, ends, axes and steps have {counts:?} values, expected equal counts"));
    }
    let axes = NodeLowering::axes(&axes, lengths.len())?;
    NodeLowering::keeps_rows(x, !axes.contains(&0))?;
    let mut made = x.id;
    for (at, axis) in axes.into_iter().enumerate() {
        let Some(range) = SliceRange::of(lengths[axis], starts[at], ends[at], steps[at]) else {
            return problem("a step is 0");
        };
        if (range.first, range.count, range.step) == (0, lengths[axis], 1) && !range.is_reversed {
            continue;
        }
        made = n.b.sliced(made, axis, range.first, range.count, range.step);
        if range.is_reversed {
            made = n.b.reversed(made, axis)?;
        }
    }
    n.put_moved(0, made, x)
}

/// The values that a slice takes of an axis, from the lowest index up.
#[derive(Debug, PartialEq, Eq)]
struct SliceRange {
    first: usize,
    count: usize,
    step: usize,
    is_reversed: bool,
}

impl SliceRange {
    /// `None` if the step is 0.
    fn of(length: usize, start: i64, end: i64, step: i64) -> Option<SliceRange> {
        let length = signed(length);
        let from_start = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let (start, end) = (from_start(start), from_start(end));
        let every = step.saturating_abs().min(1 << 40);
        if step == 0 {
            return None;
        }
        if step > 0 {
            let (start, end) = (start.clamp(0, length), end.clamp(0, length));
            let count = (end - start).max(0) as usize;
            let count = count.div_ceil(every as usize);
            return Some(SliceRange { first: start as usize, count, step: every as usize, is_reversed: false });
        }
        // A start before the first value is the first value, and an end before it is before all values.
        let (start, end) = (start.clamp(0, (length - 1).max(0)), end.clamp(-1, length - 1));
        let start = start.min(length - 1);
        let count = ((start - end).max(0) as usize).div_ceil(every as usize);
        let first = if count == 0 { 0 } else { start as usize - (count - 1) * every as usize };
        Some(SliceRange { first, count, step: every as usize, is_reversed: count > 1 })
    }
}

pub(super) fn split(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let lengths = n.lengths(x.id);
    let axis = NodeLowering::axis(n.int("axis", 0)?, lengths.len())?;
    NodeLowering::keeps_rows(x, axis != 0)?;
    let length = lengths[axis];
    let sizes = match n.attribute_or_input("split", 1)? {
        Some(sizes) => lengths_of(&sizes, "split")?,
        None => {
            let has = n.node.outputs.len();
            let parts = n.int("num_outputs", signed(has))?;
            if parts != signed(has) || has == 0 {
                return problem(format!("num_outputs is {parts}, but it has {has} outputs"));
            }
            let each = length.div_ceil(has);
            (0..has).map(|part| length.saturating_sub(part * each).min(each)).collect()
        }
    };
    if sizes.iter().sum::<usize>() != length || sizes.len() < n.node.outputs.len() {
        return problem(format!("split {sizes:?} does not divide {length} values into {} parts", n.node.outputs.len()));
    }
    let mut start = 0;
    for (at, size) in sizes.into_iter().enumerate() {
        let part = n.b.sliced(x.id, axis, start, size, 1);
        n.put_moved(at, part, x)?;
        start += size;
    }
    Ok(())
}

pub(super) fn concat(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let first = n.moved(0)?;
    let axis = NodeLowering::axis(n.int("axis", 0)?, n.b.lengths(first.id).len())?;
    let mut parts = Vec::with_capacity(n.node.inputs.len());
    let mut is_limited = false;
    for at in 0..n.node.inputs.len() {
        let part = n.moved(at)?;
        if part.dtype != first.dtype {
            return problem(format!("the inputs are {} and {}", first.dtype.name(), part.dtype.name()));
        }
        is_limited |= part.is_limited;
        parts.push(part.id);
    }
    let made = if let [only] = parts[..] { only } else { n.b.concat(&parts, axis)? };
    n.put_typed(0, Typed { is_limited, ..Typed::of(made, first.dtype) })
}

pub(super) fn tile(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let Some(repeats) = n.longs(1)? else { return problem("it has no repeats") };
    let repeats = lengths_of(&repeats, "repeats")?;
    let lengths = n.lengths(x.id);
    if repeats.len() != lengths.len() {
        return problem(format!("repeats {repeats:?} has {} numbers for {} axes", repeats.len(), lengths.len()));
    }
    let pairs = |repeated: bool| {
        let each = repeats.iter().zip(&lengths);
        each.flat_map(|(repeat, length)| [if repeated { *repeat } else { 1 }, *length]).collect::<Vec<_>>()
    };
    let whole = lengths.iter().zip(&repeats).map(|(length, repeat)| length.saturating_mul(*repeat)).collect::<Vec<_>>();
    let apart = n.b.reshaped(x.id, &pairs(false))?;
    let spread = n.b.repeated(apart, &pairs(true))?;
    let made = n.b.reshaped(spread, &whole)?;
    n.put(0, made, x.dtype)
}

pub(super) fn expand(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let Some(shape) = n.longs(1)? else { return problem("it has no shape") };
    let mut shape = lengths_of(&shape, "shape")?;
    let lengths = n.lengths(x.id);
    while shape.len() < lengths.len() {
        shape.insert(0, 1);
    }
    let skip = shape.len() - lengths.len();
    for (to, from) in shape[skip..].iter_mut().zip(&lengths) {
        if *to == 1 {
            *to = *from;
        }
    }
    let made = n.b.repeated(x.id, &shape)?;
    n.put(0, made, x.dtype)
}

pub(super) fn pad(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let rank = lengths.len();
    let Some(pads) = n.attribute_or_input("pads", 1)? else { return problem("it has no pads") };
    let axes = match n.longs(3)? {
        Some(axes) => NodeLowering::axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return problem(format!(
            "pads {pads:?} has {} numbers, expected 2 for each of {} axes",
            pads.len(),
            axes.len()
        ));
    }
    let kind = n.b.kind(x.id);
    let mode = match n.text("mode", "constant")? {
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => PadMode::Wrap,
        _ => PadMode::Constant(fill(n, kind)?),
    };
    let (mut begin, mut end) = (vec![0; rank], vec![0; rank]);
    let mut made = x.id;
    for (at, axis) in axes.iter().enumerate() {
        let (before, after) = (pads[at], pads[at + axes.len()]);
        // Negative pads cut values off.
        let cut = |pad: i64| pad.min(0).unsigned_abs() as usize;
        let Some(left) = lengths[*axis].checked_sub(cut(before)).and_then(|left| left.checked_sub(cut(after))) else {
            return problem(format!(
                "pads {before} and {after} cut more than the {} values of axis {axis}",
                lengths[*axis]
            ));
        };
        if left < lengths[*axis] {
            made = n.b.sliced(made, *axis, cut(before), left, 1);
        }
        let most = u32::MAX;
        if before.max(after) > i64::from(most) {
            return problem(format!("pads {before} and {after} of axis {axis} are larger than {most}"));
        }
        if mode == PadMode::Reflect && before.max(after) >= signed(left.max(1)) {
            return problem(format!(
                "reflecting pads {before} and {after} reach beyond the {left} values of axis {axis}"
            ));
        }
        begin[*axis] = before.max(0) as usize;
        end[*axis] = after.max(0) as usize;
    }
    if begin.iter().chain(&end).any(|pad| *pad > 0) {
        made = n.b.padded(made, &begin, &end, mode)?;
    }
    n.put(0, made, x.dtype)
}

/// The word with which a pad fills.
fn fill(n: &mut NodeLowering<'_, '_>, kind: WordKind) -> Result<u32, Fault> {
    if let Some(value) = n.node.attributes.float("value")? {
        return Ok(value.to_bits());
    }
    match kind {
        WordKind::F32 => {
            let value = n.known_floats(2)?.unwrap_or_default();
            Ok(value.first().map_or(0, |value| value.to_bits()))
        }
        WordKind::I32 => {
            let value = n.longs(2)?.unwrap_or_default();
            Ok(value.first().map_or(0, |value| super::node::limited(*value) as u32))
        }
    }
}

/// The lengths [n, c, h, w] of a picture.
fn picture(n: &NodeLowering<'_, '_>, x: ValueId) -> Result<[usize; 4], Fault> {
    match <[usize; 4]>::try_from(n.b.lengths(x)) {
        Ok(lengths) => Ok(lengths),
        Err(_) => problem(format!("the input has {} axes, expected 4", n.b.lengths(x).len())),
    }
}

/// The side of a block, and the number of its values.
fn block(n: &NodeLowering<'_, '_>) -> Result<(usize, usize), Fault> {
    let side = n.int("blocksize", 0)?;
    let found = usize::try_from(side).ok().filter(|side| *side > 0 && u32::try_from(*side).is_ok());
    match found.and_then(|side| Some((side, side.checked_mul(side)?))) {
        Some(found) => Ok(found),
        None => problem(format!("its blocksize is {side}, expected 1 to {}", u32::MAX)),
    }
}

/// Values of a block that lie in channels move to the picture. The copy is made with channels last, which is how
/// convolutions read and write pictures.
pub(super) fn depth_to_space(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let [count, channels, height, width] = picture(n, x.id)?;
    let (block, values) = block(n)?;
    if !channels.is_multiple_of(values) {
        return problem(format!("{channels} channels cannot be divided into blocks of {block}x{block}"));
    }
    let left = channels / values;
    let apart = if n.text("mode", "DCR")? == "CRD" {
        let apart = n.b.reshaped(x.id, &[count, left, block, block, height, width])?;
        n.b.permuted(apart, &[0, 4, 2, 5, 3, 1])
    } else {
        let apart = n.b.reshaped(x.id, &[count, block, block, left, height, width])?;
        n.b.permuted(apart, &[0, 4, 1, 5, 2, 3])
    };
    let joined = n.b.reshaped(apart, &[count, height * block, width * block, left])?;
    let made = n.b.permuted(joined, &[0, 3, 1, 2]);
    n.put(0, made, x.dtype)
}

pub(super) fn space_to_depth(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let [count, channels, height, width] = picture(n, x.id)?;
    let (block, values) = block(n)?;
    if !height.is_multiple_of(block) || !width.is_multiple_of(block) {
        return problem(format!("{height}x{width} cannot be divided into blocks of {block}x{block}"));
    }
    let (rows, columns) = (height / block, width / block);
    let apart = n.b.reshaped(x.id, &[count, channels, rows, block, columns, block])?;
    let order: [usize; 6] = if n.text("mode", "DCR")? == "CRD" { [0, 2, 4, 1, 3, 5] } else { [0, 2, 4, 3, 5, 1] };
    let turned = n.b.permuted(apart, &order);
    let joined = n.b.reshaped(turned, &[count, rows, columns, channels.saturating_mul(values)])?;
    let made = n.b.permuted(joined, &[0, 3, 1, 2]);
    n.put(0, made, x.dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_take_what_a_loop_from_start_to_end_takes() {
        for length in 0..5_usize {
            for (start, end, step) in
                (-7..8).flat_map(|a| (-7..8).flat_map(move |b| [-3, -1, 1, 2, 9].map(|c| (a, b, c))))
            {
                let wrap = |at: i64| if at < 0 { at + signed(length) } else { at };
                let (low, high) = if step > 0 { (0, signed(length)) } else { (-1, signed(length) - 1) };
                // ONNX Runtime takes the first value if a backward slice starts before it.
                let first = if step > 0 { low } else { 0.min(high) };
                let (mut at, end_at) = (wrap(start).clamp(first, high), wrap(end).clamp(low, high));
                let mut taken = Vec::new();
                while if step > 0 { at < end_at } else { at > end_at } {
                    taken.push(at as usize);
                    at += step;
                }
                let range = SliceRange::of(length, start, end, step).unwrap();
                let mut found: Vec<usize> = (0..range.count).map(|at| range.first + at * range.step).collect();
                if range.is_reversed {
                    found.reverse();
                }
                assert_eq!(found, taken, "{length}: {start} {end} {step}");
            }
        }
        assert_eq!(SliceRange::of(3, 0, i64::MAX, 1).unwrap().count, 3);
        assert_eq!(SliceRange::of(3, i64::MAX, i64::MIN, -1).unwrap().count, 3);
        assert_eq!(SliceRange::of(3, 0, 3, 0), None);
    }
}
