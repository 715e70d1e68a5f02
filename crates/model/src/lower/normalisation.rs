//! Normalisations: by known statistics, or by those of the values themselves.

use vramp_tensor::network::{NetworkReduction, ValueId};
use vramp_tensor::{Binary, Unary};

use super::error::{Fault, problem};
use super::node::{NodeLowering, value};
use crate::onnx::Node;

type Lowers = Result<(), Fault>;

/// What a normalisation by known statistics does to each channel: `x * scale + shift`.
pub(super) struct ScaleAndShift {
    pub(super) scale: ValueId,
    pub(super) shift: ValueId,
}

/// The normalisation that alone reads the result of the convolution that is being lowered, if everything is known. The
/// normalisation itself then passes its input on.
pub(super) fn after_convolution(
    n: &mut NodeLowering<'_, '_>,
    weights: ValueId,
    bias: Option<ValueId>,
    channels: usize,
) -> Result<Option<ScaleAndShift>, Fault> {
    let Some(output) = n.node.output(0) else { return Ok(None) };
    let [reader] = n.lowering.readers[output][..] else { return Ok(None) };
    let Some(node) = n.graph().nodes.get(reader) else { return Ok(None) };
    let is_known = n.b.is_known(weights) && bias.is_none_or(|bias| n.b.is_known(bias));
    if node.op != "BatchNormalization" || !node.is_default_domain() || is_training(node)? || !is_known {
        return Ok(None);
    }
    let graph = n.graph();
    let mut statistics = Vec::with_capacity(4);
    for at in 1..5 {
        let Some(input) = node.input(at) else { return Ok(None) };
        if n.lowering.values[input].is_none() && graph.weight(input).is_none() {
            return Ok(None);
        }
        let typed = value(n.lowering, n.b, input)?;
        if !n.b.is_known(typed.id) || n.b.lengths(typed.id) != [channels] {
            return Ok(None);
        }
        statistics.push(typed.id);
    }
    let epsilon = node.attributes.float_or("epsilon", 1e-5)?;
    let found = scale_and_shift(n, &statistics, epsilon)?;
    n.lowering.normalised.insert(output);
    Ok(Some(found))
}

fn is_training(node: &Node) -> Result<bool, Fault> {
    Ok(node.attributes.int_or("training_mode", 0)? != 0)
}

/// From scale, bias, mean and variance.
fn scale_and_shift(n: &mut NodeLowering<'_, '_>, of: &[ValueId], epsilon: f32) -> Result<ScaleAndShift, Fault> {
    let &[scale, bias, mean, variance] = of else { return problem("it has no scale, bias, mean and variance") };
    let lifted = n.with(Binary::Add, variance, epsilon)?;
    let deviation = n.un(Unary::Sqrt, lifted)?;
    let scale = n.bin(Binary::Div, scale, deviation)?;
    let moved = n.bin(Binary::Mul, mean, scale)?;
    let shift = n.bin(Binary::Sub, bias, moved)?;
    Ok(ScaleAndShift { scale, shift })
}

pub(super) fn batch(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    if n.node.input(0).is_some_and(|input| n.lowering.normalised.contains(&input)) {
        return n.put(0, x.id, x.dtype);
    }
    let lengths = n.lengths(x.id);
    if lengths.is_empty() {
        return problem("the input has no axes");
    }
    let channels = if lengths.len() == 1 { 1 } else { lengths[1] };
    let mut statistics = Vec::with_capacity(4);
    for at in 1..5 {
        let typed = n.float_input(at)?;
        if n.b.lengths(typed.id) != [channels] {
            return problem(format!("input {at} is {:?}, expected [{channels}]", n.b.lengths(typed.id)));
        }
        statistics.push(typed.id);
    }
    let epsilon = n.float("epsilon", 1e-5)?;
    if is_training(n.node)? {
        statistics = trained(n, x.id, &statistics)?;
    }
    let ScaleAndShift { scale, shift } = scale_and_shift(n, &statistics, epsilon)?;
    let mut spread = vec![1; lengths.len()];
    if lengths.len() > 1 {
        spread[1] = channels;
    }
    let (scale, shift) = (n.b.reshaped(scale, &spread)?, n.b.reshaped(shift, &spread)?);
    let scaled = n.bin(Binary::Mul, x.id, scale)?;
    let made = n.bin(Binary::Add, scaled, shift)?;
    n.put(0, made, x.dtype)
}

/// The statistics of the values themselves, and the running ones as the second and third output.
fn trained(n: &mut NodeLowering<'_, '_>, x: ValueId, given: &[ValueId]) -> Result<Vec<ValueId>, Fault> {
    let rank = n.b.lengths(x).len();
    let axes: Vec<usize> = (0..rank).filter(|axis| *axis != 1).collect();
    let mean = n.b.reduced(x, &axes, true, NetworkReduction::Mean)?;
    let apart = n.bin(Binary::Sub, x, mean)?;
    let square = n.un(Unary::Square, apart)?;
    let lengths = n.b.lengths(given[0]).to_vec();
    let mean = n.b.reshaped(mean, &lengths)?;
    let variance = n.b.reduced(square, &axes, false, NetworkReduction::Mean)?;
    let variance = n.b.reshaped(variance, &lengths)?;
    let momentum = n.float("momentum", 0.9)?;
    for (at, (old, new)) in [(given[2], mean), (given[3], variance)].into_iter().enumerate() {
        let kept = n.with(Binary::Mul, old, momentum)?;
        let added = n.with(Binary::Mul, new, 1.0 - momentum)?;
        let running = n.bin(Binary::Add, kept, added)?;
        let dtype = n.float_input(3 + at)?.dtype;
        n.put(1 + at, running, dtype)?;
    }
    Ok(vec![given[0], given[1], mean, variance])
}

pub(super) fn instance(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (x, scale, bias) = (n.float_input(0)?, n.float_input(1)?, n.float_input(2)?);
    let epsilon = n.float("epsilon", 1e-5)?;
    let lengths = n.lengths(x.id);
    if lengths.len() < 3 || [scale.id, bias.id].iter().any(|one| n.b.lengths(*one) != [lengths[1]]) {
        return problem(format!("the input {lengths:?} needs 3 axes, and scale and bias one value for each channel"));
    }
    let made = n.b.instance_norm(x.id, scale.id, bias.id, epsilon)?;
    n.put(0, made, x.dtype)
}

pub(super) fn layer(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (x, scale) = (n.float_input(0)?, n.float_input(1)?);
    let bias = if n.has(2) { Some(n.float_input(2)?.id) } else { None };
    let rank = n.b.lengths(x.id).len();
    let axis = NodeLowering::axis(n.int("axis", -1)?, rank)?;
    let epsilon = n.float("epsilon", 1e-5)?;
    let lengths = n.lengths(x.id);
    let own = &lengths[axis..];
    let scale = within(n, scale.id, own.len())?;
    let bias = bias.map(|bias| within(n, bias, own.len())).transpose()?;
    let is_whole = |one: ValueId| n.b.lengths(one).len() <= own.len();
    let made = if is_whole(scale) && bias.is_none_or(is_whole) {
        n.b.layer_norm(x.id, axis, scale, bias, epsilon)?
    } else {
        // Factors that differ along the axes before are applied afterwards.
        let one = n.f(1.0)?;
        let [normal, mean, inverse] = n.b.layer_norm(x.id, axis, one, None, epsilon)?;
        let mut made = n.bin(Binary::Mul, normal, scale)?;
        if let Some(bias) = bias {
            made = n.bin(Binary::Add, made, bias)?;
        }
        if n.b.lengths(made) != lengths {
            return problem(format!("scale and bias make {:?} of {lengths:?}", n.b.lengths(made)));
        }
        [made, mean, inverse]
    };
    let dtype = crate::onnx::OnnxType::F32;
    n.put(0, made[0], x.dtype)?;
    n.put(1, made[1], dtype)?;
    n.put(2, made[2], dtype)
}

/// The value without first axes of length 1 beyond `rank`.
fn within(n: &mut NodeLowering<'_, '_>, x: ValueId, rank: usize) -> Result<ValueId, Fault> {
    let lengths = n.lengths(x);
    let more = lengths.len().saturating_sub(rank);
    let ones = lengths.iter().take(more).take_while(|length| **length == 1).count();
    if ones == more && more > 0 { Ok(n.b.reshaped(x, &lengths[more..])?) } else { Ok(x) }
}

pub(super) fn local_response(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let x = n.float_input(0)?;
    let size = n.int("size", 0)?;
    let (alpha, beta, bias) = (n.float("alpha", 1e-4)?, n.float("beta", 0.75)?, n.float("bias", 1.0)?);
    let Some(size) = usize::try_from(size).ok().filter(|size| *size > 0) else {
        return problem(format!("its size is {size}, expected at least 1"));
    };
    let made = n.b.lrn(x.id, size, alpha, beta, bias)?;
    n.put(0, made, x.dtype)
}
