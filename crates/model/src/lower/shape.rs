//! Ops over shapes: reading and changing them, and values that are made of a shape alone.

use vramp_tensor::network::WordKind;

use super::error::{Fault, problem};
use super::node::{NodeLowering, lengths_of, limited, signed};
use super::word_kind;
use crate::onnx::OnnxType;

type Lowers = Result<(), Fault>;

/// Maximum number of values of a range: a range is known, so it is memory while lowering.
const MOST_RANGE: usize = 1 << 26;

pub(super) fn shape(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.moved(0)?;
    let lengths = n.lengths(x.id);
    let rank = signed(lengths.len());
    let from_start = |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (from_start(n.int("start", 0)?), from_start(n.int("end", rank)?));
    let found: Vec<i32> = lengths[start..end.max(start)].iter().map(|length| limited(signed(*length))).collect();
    let count = found.len();
    let made = n.b.integers(found, &[count])?;
    n.put(0, made, OnnxType::I64)
}

pub(super) fn reshape(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.moved(0)?;
    let Some(wanted) = n.attribute_or_input("shape", 1)? else { return problem("it has no shape") };
    let lengths = n.lengths(x.id);
    let keeps_zero = n.flag("allowzero", false)?;
    let count: usize = lengths.iter().product();
    let mut made = Vec::with_capacity(wanted.len());
    for (at, length) in wanted.iter().enumerate() {
        made.push(match *length {
            -1 => 1,
            0 if !keeps_zero => match lengths.get(at) {
                Some(length) => *length,
                None => {
                    return problem(format!("shape {wanted:?} copies axis {at}, but the input has {}", lengths.len()));
                }
            },
            length => lengths_of(&[length], "shape")?[0],
        });
    }
    let mut open = wanted.iter().enumerate().filter(|(_, length)| **length == -1).map(|(at, _)| at);
    if let Some(at) = open.next() {
        if open.next().is_some() {
            return problem(format!("shape {wanted:?} has -1 twice"));
        }
        let others = made.iter().try_fold(1_usize, |product, length| product.checked_mul(*length)).unwrap_or(0);
        if others == 0 || !count.is_multiple_of(others) {
            return problem(format!("{lengths:?} has {count} values, which shape {wanted:?} cannot divide"));
        }
        made[at] = count / others;
    }
    let id = n.b.reshaped(x.id, &made)?;
    n.put_moved(0, id, x)
}

pub(super) fn flatten(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.moved(0)?;
    let lengths = n.lengths(x.id);
    let axis = n.int("axis", 1)?;
    let at = if axis == signed(lengths.len()) { lengths.len() } else { NodeLowering::axis(axis, lengths.len())? };
    let made = n.b.reshaped(x.id, &[lengths[..at].iter().product(), lengths[at..].iter().product()])?;
    n.put_moved(0, made, x)
}

pub(super) fn squeeze(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let lengths = n.lengths(x.id);
    let axes = match n.attribute_or_input("axes", 1)? {
        Some(axes) => NodeLowering::axes(&axes, lengths.len())?,
        None => (0..lengths.len()).filter(|axis| lengths[*axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|axis| lengths[**axis] != 1) {
        return problem(format!("axis {axis} of {lengths:?} has a length of {}, expected 1", lengths[*axis]));
    }
    NodeLowering::keeps_rows(x, !axes.contains(&0))?;
    let left: Vec<usize> = (0..lengths.len()).filter(|axis| !axes.contains(axis)).map(|axis| lengths[axis]).collect();
    let made = n.b.reshaped(x.id, &left)?;
    n.put_moved(0, made, x)
}

pub(super) fn unsqueeze(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.rowed(0)?;
    let Some(axes) = n.attribute_or_input("axes", 1)? else { return problem("it has no axes") };
    let lengths = n.lengths(x.id);
    let rank = lengths.len() + axes.len();
    let axes = NodeLowering::axes(&axes, rank)?;
    NodeLowering::keeps_rows(x, !axes.contains(&0))?;
    let mut own = lengths.into_iter();
    let made: Vec<usize> =
        (0..rank).map(|axis| if axes.contains(&axis) { 1 } else { own.next().unwrap_or(1) }).collect();
    let made = n.b.reshaped(x.id, &made)?;
    n.put_moved(0, made, x)
}

pub(super) fn constant_of_shape(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let Some(shape) = n.longs(0)? else { return problem("it has no shape") };
    let shape = lengths_of(&shape, "shape")?;
    let (dtype, word) = match n.node.attributes.tensor("value")? {
        None => (OnnxType::F32, n.f(0.0)?),
        Some(weight) => {
            let word = match word_kind(weight.dtype) {
                Some(WordKind::F32) => {
                    let value = weight.floats()?.first().copied();
                    value.map(|value| n.f(value)).transpose()?
                }
                Some(WordKind::I32) => {
                    let value = weight.longs()?.first().copied();
                    if let Some(value) = value.filter(|value| i32::try_from(*value).is_err()) {
                        return problem(format!("its value {value} does not fit into 32 bits"));
                    }
                    value.map(|value| n.i(limited(value))).transpose()?
                }
                None => return Err(Fault::Unsupported(format!("a value of type {}", weight.dtype.name()))),
            };
            let Some(word) = word else { return problem("its value is empty") };
            (weight.dtype, word)
        }
    };
    let made = n.b.repeated(word, &shape)?;
    n.put(0, made, dtype)
}

pub(super) fn range(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let first = n.moved(0)?;
    let count_of = |count: f64| {
        let count = count.ceil().max(0.0);
        if count <= MOST_RANGE as f64 {
            Ok(count as usize)
        } else {
            problem(format!("it has {count} values; at most {MOST_RANGE} are supported"))
        }
    };
    let made = match n.b.kind(first.id) {
        WordKind::F32 => {
            let mut ends = [0.0; 3];
            for (at, end) in ends.iter_mut().enumerate() {
                *end = n.known_floats(at)?.unwrap_or_default().first().copied().unwrap_or(f32::NAN);
            }
            let [start, limit, step] = ends;
            if step == 0.0 || ends.iter().any(|end| end.is_nan()) {
                return problem(format!("start, limit and delta are {ends:?}"));
            }
            let count = count_of((f64::from(limit) - f64::from(start)) / f64::from(step))?;
            n.b.claim_known("range", count)?;
            n.b.floats((0..count).map(|at| start + at as f32 * step).collect(), &[count])?
        }
        WordKind::I32 => {
            let mut ends = [0; 3];
            for (at, end) in ends.iter_mut().enumerate() {
                *end = n.longs(at)?.unwrap_or_default().first().copied().unwrap_or_default();
            }
            let [start, limit, step] = ends;
            if step == 0 {
                return problem("its delta is 0");
            }
            let count = count_of((limit as f64 - start as f64) / step as f64)?;
            n.b.claim_known("range", count.saturating_mul(2))?;
            let at = |at: usize| signed(at).checked_mul(step)?.checked_add(start);
            let Some(values) = (0..count).map(at).collect::<Option<Vec<i64>>>() else {
                return problem(format!("{ends:?} does not fit into 64 bits"));
            };
            let made = super::wide::known(n.lowering, n.b, values, &[count], first.dtype)?;
            return n.put_typed(0, made);
        }
    };
    n.put(0, made, first.dtype)
}
