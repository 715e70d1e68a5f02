//! The windows of convolutions and pools: kernel, strides, dilations and pads of a node, in ONNX's several forms.

use vramp_tensor::network::Window;

use super::error::{Fault, problem};
use super::node::{NodeLowering, lengths_of};

/// The settings that convolutions and pools share, for each spatial axis.
pub(super) struct WindowSettings {
    pub(super) kernel: Vec<usize>,
    pub(super) stride: Vec<usize>,
    pub(super) dilation: Vec<usize>,
    pub(super) pads: Pads,
}

/// The longest axis with its pads: positions are signed numbers of 32 bits on a device.
pub(super) const LONGEST: usize = i32::MAX as usize;

/// How much is added before and after each axis.
pub(super) enum Pads {
    Explicit {
        begin: Vec<usize>,
        end: Vec<usize>,
    },
    /// As many as keep the output at input / stride. An odd one goes to the end, or to the start if `lower`.
    Same {
        lower: bool,
    },
}

/// A window of which the pads after the end are known too.
pub(super) struct FoundWindow {
    pub(super) window: Window,
    pub(super) begin: Vec<usize>,
    pub(super) end: Vec<usize>,
}

/// Three axes, with 1 (or another filler) for missing first ones.
pub(super) fn three(of: &[usize], filler: usize) -> [usize; 3] {
    let mut all = [filler; 3];
    all[3 - of.len()..].copy_from_slice(of);
    all
}

impl WindowSettings {
    /// Reads the settings of a node with `rank` spatial axes. `kernel` is used if the node does not state it.
    pub(super) fn of(n: &NodeLowering<'_, '_>, rank: usize, kernel: Option<&[usize]>) -> Result<WindowSettings, Fault> {
        if !(1..=3).contains(&rank) {
            return Err(Fault::Unsupported(format!("{rank} spatial axes; 1 to 3 are supported")));
        }
        let list = |name: &str, count: usize, default: usize| match n.node.attributes.ints(name)? {
            None => Ok(vec![default; count]),
            Some(ints) if ints.len() == count => lengths_of(ints, name),
            Some(ints) => problem(format!("{name} {ints:?} has {} numbers, expected {count}", ints.len())),
        };
        let stated = n.node.attributes.ints("kernel_shape")?;
        let kernel = match (stated, kernel) {
            (None, Some(kernel)) => kernel.to_vec(),
            _ => list("kernel_shape", rank, 0)?,
        };
        let (stride, dilation) = (list("strides", rank, 1)?, list("dilations", rank, 1)?);
        for (name, of) in [("kernel_shape", &kernel), ("strides", &stride), ("dilations", &dilation)] {
            if of.contains(&0) {
                return problem(format!("{name} {of:?} has a 0"));
            }
        }
        for axis in 0..rank {
            let span = (kernel[axis] - 1).saturating_mul(dilation[axis]).saturating_add(1);
            if span.max(stride[axis]) > LONGEST {
                let text = format!("kernel_shape {kernel:?}, strides {stride:?} and dilations {dilation:?}");
                return problem(format!("{text} exceed {LONGEST} positions along spatial axis {axis}"));
            }
        }
        let pads = match n.text("auto_pad", "NOTSET")? {
            "SAME_UPPER" => Pads::Same { lower: false },
            "SAME_LOWER" => Pads::Same { lower: true },
            "VALID" => Pads::Explicit { begin: vec![0; rank], end: vec![0; rank] },
            _ => {
                let pads = list("pads", 2 * rank, 0)?;
                Pads::Explicit { begin: pads[..rank].to_vec(), end: pads[rank..].to_vec() }
            }
        };
        Ok(WindowSettings { kernel, stride, dilation, pads })
    }

    /// Input positions that a window spans along an axis.
    pub(super) fn span(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1).saturating_mul(self.dilation[axis]).saturating_add(1)
    }

    /// The window over an input. With `ceil`, a last window may reach beyond the pads, but begins before their start.
    pub(super) fn over(&self, input: &[usize], ceil: bool) -> Result<FoundWindow, Fault> {
        let rank = input.len();
        let (mut output, mut begin, mut end) = (Vec::with_capacity(rank), vec![0; rank], vec![0; rank]);
        for axis in 0..rank {
            let (length, span, stride) = (input[axis], self.span(axis), self.stride[axis]);
            let count = match &self.pads {
                Pads::Same { lower } => {
                    let count = length.div_ceil(stride);
                    let total = (count.saturating_sub(1) * stride + span).saturating_sub(length);
                    (begin[axis], end[axis]) = shared(total, *lower);
                    count
                }
                Pads::Explicit { begin: before, end: after } => {
                    (begin[axis], end[axis]) = (before[axis], after[axis]);
                    if length + before[axis] + after[axis] > LONGEST {
                        let pads = format!("pads {} and {}", before[axis], after[axis]);
                        return problem(format!("{pads} of {length} values exceed {LONGEST} positions"));
                    }
                    let Some(room) = (length + before[axis] + after[axis]).checked_sub(span) else {
                        let padded = length + before[axis] + after[axis];
                        return problem(format!(
                            "the window spans {span} values along spatial axis {axis}, but the padded input has {padded}"
                        ));
                    };
                    let count = if ceil { room.div_ceil(stride) } else { room / stride } + 1;
                    if ceil && (count - 1) * stride >= length + before[axis] { count - 1 } else { count }
                }
            };
            output.push(count);
        }
        let window = Window {
            input: three(input, 1),
            output: three(&output, 1),
            kernel: three(&self.kernel, 1),
            stride: three(&self.stride, 1),
            dilation: three(&self.dilation, 1),
            pad: three(&begin, 0),
        };
        Ok(FoundWindow { window, begin, end })
    }
}

/// Divides pads between start and end.
pub(super) fn shared(total: usize, more_at_start: bool) -> (usize, usize) {
    let less = total / 2;
    if more_at_start { (total - less, less) } else { (less, total - less) }
}
