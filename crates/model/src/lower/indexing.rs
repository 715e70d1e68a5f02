//! Ops whose indices are values: gathering, finding the largest, selecting boxes.

use vramp_tensor::Binary;
use vramp_tensor::network::WordKind;

use super::Typed;
use super::error::{Fault, problem};
use super::node::NodeLowering;
use crate::onnx::OnnxType;

type Lowers = Result<(), Fault>;

fn indices(n: &mut NodeLowering<'_, '_>, at: usize) -> Result<Typed, Fault> {
    let typed = n.x(at)?;
    match typed.dtype {
        OnnxType::I32 | OnnxType::I64 => Ok(typed),
        other => problem(format!("the indices are {}, expected integers", other.name())),
    }
}

pub(super) fn gather(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let picked = indices(n, 1)?;
    let lengths = n.lengths(x.id);
    let axis = NodeLowering::axis(n.int("axis", 0)?, lengths.len())?;
    NodeLowering::keeps_rows(x, axis != 0)?;
    if let Some(known) = n.b.known_integers(picked.id) {
        let length = super::node::limited(super::node::signed(lengths[axis]));
        if let Some(index) = known.iter().find(|index| !(-length..length).contains(index)) {
            return problem(format!("index {index} is out of range for axis {axis} of {lengths:?}"));
        }
        // A single known index is a view.
        if let [index] = known[..] {
            let at = if index < 0 { index + length } else { index };
            let view = n.b.sliced(x.id, axis, at as usize, 1, 1);
            let own = n.lengths(picked.id);
            let all: Vec<usize> = lengths[..axis].iter().chain(&own).chain(&lengths[axis + 1..]).copied().collect();
            let made = n.b.reshaped(view, &all)?;
            return n.put_moved(0, made, x);
        }
    }
    let made = n.b.gather(x.id, picked.id, axis)?;
    n.put_moved(0, made, x)
}

pub(super) fn gather_elements(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (x, picked) = (n.moved(0)?, indices(n, 1)?);
    let axis = NodeLowering::axis(n.int("axis", 0)?, n.b.lengths(x.id).len())?;
    let made = n.b.gather_elements(x.id, picked.id, axis)?;
    n.put_moved(0, made, x)
}

pub(super) fn gather_nd(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (x, picked) = (n.moved(0)?, indices(n, 1)?);
    let batch = n.int("batch_dims", 0)?;
    let Ok(batch) = usize::try_from(batch) else { return problem(format!("batch_dims is {batch}")) };
    let made = n.b.gather_nd(x.id, picked.id, batch)?;
    n.put_moved(0, made, x)
}

pub(super) fn top_k(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let axis = NodeLowering::axis(n.int("axis", -1)?, lengths.len())?;
    let k = match n.node.attributes.int("k")? {
        Some(k) => k,
        None => n.longs(1)?.unwrap_or_default().first().copied().unwrap_or(-1),
    };
    let Some(k) = usize::try_from(k).ok().filter(|k| *k <= lengths[axis]) else {
        return problem(format!("k is {k}, expected 0 to {}, the length of axis {axis}", lengths[axis]));
    };
    let (values, indices) = n.b.top_k(x.id, axis, k, n.flag("largest", true)?)?;
    n.put(0, values, x.dtype)?;
    n.put(1, indices, OnnxType::I64)
}

pub(super) fn arg_max(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let axis = NodeLowering::axis(n.int("axis", 0)?, n.b.lengths(x.id).len())?;
    let (keep, last) = (n.flag("keepdims", true)?, n.flag("select_last_index", false)?);
    let made = n.b.arg(x.id, axis, keep, true, last)?;
    n.put(0, made, OnnxType::I64)
}

pub(super) fn non_max_suppression(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (boxes, scores) = (n.float_input(0)?, n.float_input(1)?);
    let lengths = n.lengths(boxes.id);
    let &[_, count, 4] = &lengths[..] else {
        return problem(format!("the boxes are {lengths:?}, expected [n, count, 4]"));
    };
    let first = |floats: Option<Vec<f32>>| floats.unwrap_or_default().first().copied();
    let most = n.longs(2)?.unwrap_or_default().first().copied().unwrap_or(0);
    let (iou, score) = (first(n.known_floats(3)?).unwrap_or(0.0), first(n.known_floats(4)?));
    let most = usize::try_from(most).unwrap_or(0).min(count);
    if most == 0 {
        let made = n.b.integers(Vec::new(), &[0, 3])?;
        return n.put(0, made, OnnxType::I64);
    }
    let is_center = n.flag("center_point_box", false)?;
    let (rows, count) = n.b.non_max_suppression(boxes.id, scores.id, most, iou, score, is_center)?;
    match n.b.known_integers(count).as_deref() {
        Some([count]) => {
            let made = n.b.sliced(rows, 0, 0, (*count).max(0) as usize, 1);
            n.put(0, made, OnnxType::I64)
        }
        _ => n.put_typed(0, Typed { rows: Some(count), ..Typed::of(rows, OnnxType::I64) }),
    }
}

/// Dropout passes values on, unless a known input asks for training.
pub(super) fn dropout(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.x(0)?;
    let lengths = n.lengths(x.id);
    let mask_type = if n.opset() >= 10 { OnnxType::Bool } else { x.dtype };
    let trains = n.has(2) && n.longs(2)?.unwrap_or_default().first().is_some_and(|value| *value != 0);
    let ratio = if trains { n.known_floats(1)?.unwrap_or_default().first().copied().unwrap_or(0.5) } else { 0.0 };
    if ratio == 0.0 {
        let one = if n.b.kind(x.id) == WordKind::F32 && mask_type != OnnxType::Bool { n.f(1.0)? } else { n.i(1)? };
        let mask = n.b.repeated(one, &lengths)?;
        n.put(0, x.id, x.dtype)?;
        return n.put(1, mask, mask_type);
    }
    if !(0.0..1.0).contains(&ratio) {
        return problem(format!("its ratio is {ratio}, expected 0 to below 1"));
    }
    let mut random = super::random::Random::seeded(n.int("seed", 0)? as u32);
    let count: usize = lengths.iter().product();
    n.b.claim_known("dropout", count)?;
    let kept = (0..count).map(|_| i32::from(random.next_unit() >= f64::from(ratio))).collect();
    let mask = n.b.integers(kept, &lengths)?;
    let factor = n.floats(mask)?;
    let factor = n.with(Binary::Mul, factor, 1.0 / (1.0 - ratio))?;
    let made = n.bin(Binary::Mul, x.id, factor)?;
    n.put(0, made, x.dtype)?;
    n.put(1, mask, mask_type)
}
