//! Packed weights: biases, slopes of a `PRelu`, and weights in the order in which the loops read them.
//!
//! Dense weights are in blocks of 32 channels of the output; the rest of up to 16 channels has a block of 16. A block
//! has all channels of one input of one tap next to each other. Depthwise weights have all channels of a tap next to
//! each other.
//!
//! Invariant: the order depends only on the sizes, not on the machine.

use super::ConvSpec;
use super::axis::{Direction, all_phases};
use super::finish::Activation;
use super::tile::{NARROW, WIDE};
use crate::network::window::Window;

/// The sizes of a convolution's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedSize {
    pub(crate) window: Window,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) groups: usize,
}

impl PackedSize {
    pub(super) fn of(spec: &ConvSpec) -> PackedSize {
        PackedSize { window: spec.window, inputs: spec.inputs, outputs: spec.outputs, groups: spec.groups }
    }

    pub(crate) fn dense_length(&self, has_slopes: bool) -> usize {
        let each = self.inputs / self.groups * padded(self.outputs / self.groups) * self.groups;
        Header::of(self.outputs, has_slopes).weights + self.window.taps() * each
    }

    pub(crate) fn depthwise_length(&self, has_slopes: bool) -> usize {
        Header::of(self.outputs, has_slopes).weights + self.window.taps() * self.outputs
    }
}

/// Where the parts before the weights end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// The first slope.
    pub(super) slopes: usize,
    /// The first weight.
    pub(super) weights: usize,
}

impl Header {
    pub(super) fn of(outputs: usize, has_slopes: bool) -> Header {
        // Blocks read whole vectors, also past the last channel. Multiples of a cache line keep vectors in one line.
        let each = (outputs + WIDE).next_multiple_of(NARROW);
        Header { slopes: each, weights: if has_slopes { 2 * each } else { each } }
    }
}

/// True if the activation's slopes are packed with the weights.
pub(super) fn has_slopes(activation: Activation) -> bool {
    activation == Activation::PRelu
}

/// Channels of all blocks of `outputs` channels.
pub(super) fn padded(outputs: usize) -> usize {
    outputs / WIDE * WIDE
        + match outputs % WIDE {
            0 => 0,
            rest if rest <= NARROW => NARROW,
            _ => WIDE,
        }
}

/// The channels that the block from channel `first` has in memory.
pub(super) fn block_width(outputs: usize, first: usize) -> usize {
    if outputs - first <= NARROW { NARROW } else { WIDE }
}

/// Packs the weights of [`super::convolve`]: outputs x inputs of a group x taps. `bias` is empty or has a value for each
/// output. `slopes` are those of a `PRelu`, one or one for each output.
pub(crate) fn pack_convolution(size: &PackedSize, weights: &[f32], bias: &[f32], slopes: Option<&[f32]>) -> Vec<f32> {
    let (inputs, taps) = (size.inputs / size.groups, size.window.taps());
    assert_eq!(weights.len(), size.outputs * inputs * taps, "the weights of {size:?}");
    pack_phases(size, Direction::Plain, bias, slopes, |output, input, tap| {
        weights[(output * inputs + input) * taps + tap]
    })
}

/// Packs the weights of [`super::convolve_transposed`]: inputs x outputs of a group x taps.
pub(crate) fn pack_transposed(size: &PackedSize, weights: &[f32], bias: &[f32], slopes: Option<&[f32]>) -> Vec<f32> {
    let (inputs, outputs, taps) = (size.inputs / size.groups, size.outputs / size.groups, size.window.taps());
    assert_eq!(weights.len(), size.inputs * outputs * taps, "the weights of {size:?}");
    pack_phases(size, Direction::Transposed, bias, slopes, |output, input, tap| {
        let input = output / outputs * inputs + input;
        weights[(input * outputs + output % outputs) * taps + tap]
    })
}

/// Packs the weights of [`super::depthwise`]: channels x 1 x taps.
pub(crate) fn pack_depthwise(size: &PackedSize, weights: &[f32], bias: &[f32], slopes: Option<&[f32]>) -> Vec<f32> {
    let taps = size.window.taps();
    assert_eq!(weights.len(), size.outputs * taps, "the weights of {size:?}");
    let mut packed = header(size.outputs, bias, slopes);
    for tap in 0..taps {
        packed.extend((0..size.outputs).map(|channel| weights[channel * taps + tap]));
    }
    packed
}

fn pack_phases(
    size: &PackedSize,
    direction: Direction,
    bias: &[f32],
    slopes: Option<&[f32]>,
    weight: impl Fn(usize, usize, usize) -> f32,
) -> Vec<f32> {
    let (inputs, outputs) = (size.inputs / size.groups, size.outputs / size.groups);
    let [_, height, width] = size.window.kernel;
    let mut packed = header(size.outputs, bias, slopes);
    packed.reserve_exact(size.dense_length(slopes.is_some()) - packed.len());
    for axes in all_phases(&size.window, direction) {
        let taps = axes.map(|axis| axis.taps);
        for group in 0..size.groups {
            pack_blocks(&mut packed, outputs, taps.iter().product::<usize>() * inputs, |output, at| {
                let tap = at / inputs;
                let [d, h, w] = [tap / taps[2] / taps[1], tap / taps[2] % taps[1], tap % taps[2]];
                let tap = (axes[0].kernel(d) * height + axes[1].kernel(h)) * width + axes[2].kernel(w);
                weight(group * outputs + output, at % inputs, tap)
            });
        }
    }
    packed
}

/// Appends the blocks of one group.
fn pack_blocks(packed: &mut Vec<f32>, outputs: usize, k: usize, weight: impl Fn(usize, usize) -> f32) {
    for first in (0..outputs).step_by(WIDE) {
        let width = block_width(outputs, first);
        for at in 0..k {
            let channels = first..(first + width).min(outputs);
            let missing = width - channels.len();
            packed.extend(channels.map(|output| weight(output, at)));
            packed.extend(std::iter::repeat_n(0.0, missing));
        }
    }
}

fn header(outputs: usize, bias: &[f32], slopes: Option<&[f32]>) -> Vec<f32> {
    assert!(bias.is_empty() || bias.len() == outputs, "{} biases for {outputs} outputs", bias.len());
    let parts = Header::of(outputs, slopes.is_some());
    let mut header = bias.to_vec();
    header.resize(parts.slopes, 0.0);
    match slopes {
        Some([slope]) => header.resize(parts.slopes + outputs, *slope),
        Some(slopes) => {
            assert_eq!(slopes.len(), outputs, "slopes");
            header.extend_from_slice(slopes);
        }
        None => {}
    }
    header.resize(parts.weights, 0.0);
    header
}
