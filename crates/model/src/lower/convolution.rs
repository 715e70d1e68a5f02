//! `Conv` and `ConvTranspose`. A batch normalisation that alone reads the result becomes part of the weights.

use vramp_tensor::network::{ValueId, Window};

use super::error::{Fault, problem};
use super::node::NodeLowering;
use super::normalisation::{self, ScaleAndShift};
use super::windows::{LONGEST, Pads, WindowSettings, shared, three};
use crate::onnx::OnnxType;

type Lowers = Result<(), Fault>;

/// Maximum product of the strides of a transposed convolution, which are as many convolutions of their own.
const MOST_PHASES: usize = 4096;

/// Input, weights, bias, and the spatial lengths of a convolution.
struct Operands {
    x: ValueId,
    weights: ValueId,
    bias: Option<ValueId>,
    dtype: OnnxType,
    groups: usize,
    /// Lengths of the input and of the weights.
    lengths: Vec<usize>,
    kernel: Vec<usize>,
}

fn operands(n: &mut NodeLowering<'_, '_>) -> Result<Operands, Fault> {
    let (x, weights) = (n.float_input(0)?, n.float_input(1)?);
    let bias = if n.has(2) { Some(n.float_input(2)?.id) } else { None };
    let (lengths, kernel) = (n.lengths(x.id), n.lengths(weights.id));
    if lengths.len() < 3 || lengths.len() != kernel.len() {
        return problem(format!("the input {lengths:?} and the weights {kernel:?} need the same 3 to 5 axes"));
    }
    let groups = n.int("group", 1)?;
    match usize::try_from(groups).ok().filter(|groups| *groups > 0 && kernel[0].is_multiple_of(*groups)) {
        Some(groups) => Ok(Operands { x: x.id, weights: weights.id, bias, dtype: x.dtype, groups, lengths, kernel }),
        None => problem(format!("{groups} groups do not divide weights of {kernel:?}")),
    }
}

/// Fails if a bias does not have a value for each channel.
fn check_bias(n: &NodeLowering<'_, '_>, bias: Option<ValueId>, channels: usize) -> Lowers {
    match bias.map(|bias| n.b.lengths(bias)) {
        Some(lengths) if lengths != [channels] => {
            problem(format!("the bias is {lengths:?}, expected [{channels}], one value for each channel"))
        }
        _ => Ok(()),
    }
}

pub(super) fn conv(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let Operands { x, mut weights, mut bias, dtype, groups, lengths, kernel } = operands(n)?;
    if kernel[1].checked_mul(groups) != Some(lengths[1]) {
        let needs = kernel[1].saturating_mul(groups);
        let problem_text = format!("weights {kernel:?} and {groups} groups need {needs} channels");
        return problem(format!("{problem_text}, the input {lengths:?} has {}", lengths[1]));
    }
    check_bias(n, bias, kernel[0])?;
    let settings = WindowSettings::of(n, lengths.len() - 2, Some(&kernel[2..]))?;
    if settings.kernel != kernel[2..] {
        return problem(format!("kernel_shape is {:?}, the weights are {kernel:?}", settings.kernel));
    }
    let window = settings.over(&lengths[2..], false)?.window;
    if let Some(ScaleAndShift { scale, shift }) = normalisation::after_convolution(n, weights, bias, kernel[0])? {
        weights = scaled(n, weights, scale, 0)?;
        bias = Some(shifted(n, bias, scale, shift)?);
    }
    count(n, lengths[0], &window, [kernel[0], kernel[1]], window.places());
    let made = n.b.convolution(x, weights, bias, window, groups)?;
    n.put(0, made, dtype)
}

pub(super) fn conv_transpose(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let Operands { x, mut weights, mut bias, dtype, groups, lengths, kernel } = operands(n)?;
    let channels = kernel[1].saturating_mul(groups);
    if kernel[0] != lengths[1] {
        return problem(format!(
            "weights {kernel:?} need {} channels, the input {lengths:?} has {}",
            kernel[0], lengths[1]
        ));
    }
    check_bias(n, bias, channels)?;
    let rank = lengths.len() - 2;
    let settings = WindowSettings::of(n, rank, Some(&kernel[2..]))?;
    if settings.kernel != kernel[2..] {
        return problem(format!("kernel_shape is {:?}, the weights are {kernel:?}", settings.kernel));
    }
    let list = |name: &str| match n.node.attributes.ints(name)? {
        None => Ok(None),
        // A shape may include batch and channels.
        Some(ints) if ints.len() >= rank => super::node::lengths_of(&ints[ints.len() - rank..], name).map(Some),
        Some(ints) => problem(format!("{name} {ints:?} has {} numbers, expected {rank}", ints.len())),
    };
    let (more, shape) = (list("output_padding")?.unwrap_or_else(|| vec![0; rank]), list("output_shape")?);
    let (mut output, mut begin) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
    for axis in 0..rank {
        let stride = settings.stride[axis];
        let whole = lengths[2 + axis].saturating_sub(1) * stride + settings.span(axis) + more[axis];
        let (pad, made) = match (&settings.pads, &shape) {
            (pads, Some(shape)) => {
                let total = whole.saturating_sub(shape[axis]);
                (shared(total, !matches!(pads, Pads::Same { lower: false })).0, shape[axis])
            }
            (Pads::Same { lower }, None) => {
                let made = lengths[2 + axis] * stride;
                (shared(whole.saturating_sub(made), *lower).0, made)
            }
            (Pads::Explicit { begin, end }, None) => match whole.checked_sub(begin[axis] + end[axis]) {
                Some(made) => (begin[axis], made),
                None => return problem(format!("pads {} and {} cut more than {whole} values", begin[axis], end[axis])),
            },
        };
        if whole.max(made) > LONGEST {
            return problem(format!(
                "an output of {made} values along spatial axis {axis}; at most {LONGEST} are possible"
            ));
        }
        begin.push(pad);
        output.push(made);
    }
    let phases = settings.stride.iter().fold(1, |product: usize, stride| product.saturating_mul(*stride));
    if phases > MOST_PHASES {
        return Err(Fault::Unsupported(format!("strides {:?}; their product may be {MOST_PHASES}", settings.stride)));
    }
    let window = Window {
        input: three(&lengths[2..], 1),
        output: three(&output, 1),
        kernel: three(&settings.kernel, 1),
        stride: three(&settings.stride, 1),
        dilation: three(&settings.dilation, 1),
        pad: three(&begin, 0),
    };
    // The channels of several groups do not lie along one axis of the weights.
    let folds = if groups == 1 { normalisation::after_convolution(n, weights, bias, channels)? } else { None };
    if let Some(ScaleAndShift { scale, shift }) = folds {
        weights = scaled(n, weights, scale, 1)?;
        bias = Some(shifted(n, bias, scale, shift)?);
    }
    count(n, lengths[0], &window, [kernel[0], kernel[1]], window.inputs());
    let made = n.b.transposed_convolution(x, weights, bias, window, groups)?;
    n.put(0, made, dtype)
}

/// The weights, times the scale of the channel that lies along `axis`.
fn scaled(n: &mut NodeLowering<'_, '_>, weights: ValueId, scale: ValueId, axis: usize) -> Result<ValueId, Fault> {
    let mut lengths = vec![1; n.b.lengths(weights).len()];
    lengths[axis] = n.b.lengths(weights)[axis];
    let scale = n.b.reshaped(scale, &lengths)?;
    n.bin(vramp_tensor::Binary::Mul, weights, scale)
}

fn shifted(
    n: &mut NodeLowering<'_, '_>,
    bias: Option<ValueId>,
    scale: ValueId,
    shift: ValueId,
) -> Result<ValueId, Fault> {
    match bias {
        None => Ok(shift),
        Some(bias) => {
            let bias = n.bin(vramp_tensor::Binary::Mul, bias, scale)?;
            n.bin(vramp_tensor::Binary::Add, bias, shift)
        }
    }
}

fn count(n: &mut NodeLowering<'_, '_>, batch: usize, window: &Window, channels: [usize; 2], places: usize) {
    let factors = [channels[0], channels[1], window.taps(), batch, places];
    let all = factors.iter().fold(1, |product: u64, factor| product.saturating_mul(*factor as u64));
    n.lowering.multiply_adds = n.lowering.multiply_adds.saturating_add(all);
}
