//! Dense and grouped convolutions, plain and transposed, without a copy of the input: tiles of neighbouring positions of
//! an output row by blocks of channels.
//!
//! A window of one position is a [`product`](super::product).
//!
//! Invariant: tiles never span two output rows, so that the tiles of a row do not depend on the number of threads.

use super::axis::{Axis, Direction, phases};
use super::finish::Rows;
use super::lanes::Level;
use super::pack::{Header, PackedSize, block_width, has_slopes, padded};
use super::product::{Sizes, product_with};
use super::tile::{self, Sight, Tile, WIDE};
use super::{ConvSpec, spread_products};

/// Floats of weights and of inputs that stay in the L2 cache together.
const NEAR: usize = 128 * 1024;

/// Writes a convolution with the weights of [`super::pack_convolution`] to `out`.
pub(crate) fn convolve(
    spec: &ConvSpec,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    convolve_with(Level::detected(), Direction::Plain, spec, x, packed, residual, out, threads);
}

/// Writes a transposed convolution with the weights of [`super::pack_transposed`] to `out`.
pub(crate) fn convolve_transposed(
    spec: &ConvSpec,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    convolve_with(Level::detected(), Direction::Transposed, spec, x, packed, residual, out, threads);
}

#[expect(clippy::too_many_arguments, reason = "the operands of one convolution")]
pub(super) fn convolve_with(
    level: Level,
    direction: Direction,
    spec: &ConvSpec,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    let slopes = has_slopes(spec.finish.activation);
    let length = PackedSize::of(spec).dense_length(slopes);
    spec.check(x.len(), (packed.len(), length), residual.map(<[f32]>::len), out.len());
    if spec.groups == 1 && spec.window.is_point() {
        let sizes = Sizes { m: spec.batch * spec.window.places(), k: spec.inputs, n: spec.outputs };
        return product_with(level, sizes, spec.finish, x, packed, residual, out, threads);
    }
    let dense = Dense { level, direction, spec, x, packed, residual, parts: Header::of(spec.outputs, slopes) };
    let row = spec.window.output[2] * spec.outputs;
    let work = match direction {
        Direction::Plain => spec.work(),
        Direction::Transposed => spec.work() / spec.window.stride.iter().product::<usize>(),
    };
    spread_products(out, row, work, threads, |first, out| dense.rows(first, out));
}

#[derive(Clone, Copy)]
struct Dense<'a> {
    level: Level,
    direction: Direction,
    spec: &'a ConvSpec,
    x: &'a [f32],
    packed: &'a [f32],
    residual: Option<&'a [f32]>,
    parts: Header,
}

/// Some channels of a phase.
struct Block<'a> {
    group: usize,
    /// The first channel of the output.
    channel: usize,
    channels: usize,
    width: usize,
    weights: &'a [f32],
}

impl Dense<'_> {
    /// Computes whole rows of the output, from row `first`.
    fn rows(&self, first: usize, out: &mut [f32]) {
        let ConvSpec { window, inputs, outputs, .. } = *self.spec;
        let row = window.output[2] * outputs;
        let count = out.len() / row;
        let all = window.taps() * inputs / self.spec.groups * padded(outputs / self.spec.groups) * self.spec.groups;
        // If not all weights stay in the cache, a block is used for many rows before the next.
        let each = window.input[2] * inputs * window.stride[1];
        let near = if all <= NEAR { 1 } else { (NEAR / each.max(1)).max(1) };
        for top in (0..count).step_by(near) {
            let bottom = count.min(top + near);
            self.near_rows(first + top, &mut out[top * row..bottom * row]);
        }
    }

    /// Computes rows whose inputs stay in the cache.
    fn near_rows(&self, first: usize, out: &mut [f32]) {
        let ConvSpec { window, inputs, outputs, groups, .. } = *self.spec;
        let [inputs, outputs] = [inputs / groups, outputs / groups];
        let row = window.output[2] * self.spec.outputs;
        let [depths, heights, widths] = phases(&window, self.direction);
        let mut weights = &self.packed[self.parts.weights..];
        for phase in 0..depths * heights * widths {
            let phase = [phase / widths / heights, phase / widths % heights, phase % widths];
            let axes: [Axis; 3] = std::array::from_fn(|axis| Axis::of(&window, self.direction, axis, phase[axis]));
            let k = axes.iter().map(|axis| axis.taps).product::<usize>() * inputs;
            for group in 0..groups {
                for within in (0..outputs).step_by(WIDE) {
                    let width = block_width(outputs, within);
                    let channels = width.min(outputs - within);
                    let (these, others) = weights.split_at(k * width);
                    weights = others;
                    let block = Block { group, channel: group * outputs + within, channels, width, weights: these };
                    for (at, out) in out.chunks_mut(row).enumerate() {
                        self.row(&axes, &block, first + at, out);
                    }
                }
            }
        }
    }

    /// Computes some channels of the positions of one phase in row `row` of the output, if it has any.
    fn row(&self, axes: &[Axis; 3], block: &Block<'_>, row: usize, out: &mut [f32]) {
        let ConvSpec { window, inputs, outputs, groups, finish, .. } = *self.spec;
        let [_, height, width] = window.output;
        let (image, places) = (row / height / window.output[0], [row / height % window.output[0], row % height]);
        let [Some(depth_at), Some(height_at)] = [index(&axes[0], places[0]), index(&axes[1], places[1])] else {
            return;
        };
        let [depth, high, wide] = window.input;
        let x = &self.x[image * depth * high * wide * inputs..][..depth * high * wide * inputs];
        let x = x.get(block.group * (inputs / groups)..).unwrap_or_default();
        let sight = |axis: usize, at: usize, apart: usize| Sight {
            first: axes[axis].first + (at * axes[axis].stride).cast_signed(),
            dilation: axes[axis].dilation,
            taps: axes[axis].taps,
            length: window.input[axis],
            apart,
        };
        let (early, late) = (finish.early(), finish.late());
        let residual = self.residual.map(|residual| &residual[row * width * outputs..][..width * outputs]);
        let across = &axes[2];
        let most = tile::most_rows(self.level);
        let tiles = across.count.div_ceil(most);
        for at in 0..tiles {
            let (start, end) = (across.count * at / tiles, across.count * (at + 1) / tiles);
            let to = (across.out_first + start * across.out_step) * outputs + block.channel;
            let residual = residual.map(|residual| &residual[to..]);
            let apart = across.out_step * outputs;
            tile::compute(
                self.level,
                &mut Tile {
                    x,
                    sight: [
                        sight(0, depth_at, high * wide * inputs),
                        sight(1, height_at, wide * inputs),
                        sight(2, start, inputs),
                    ],
                    stride: across.stride,
                    inputs: inputs / groups,
                    joined: groups == 1 && across.dilation == 1,
                    weights: block.weights,
                    width: block.width,
                    bias: &self.packed[block.channel..self.parts.slopes],
                    residual: residual.filter(|_| early.adds_residual),
                    low: early.low,
                    high: early.high,
                    out: &mut out[to..],
                    apart,
                    channels: block.channels,
                    rows: end - start,
                },
            );
            if let Some(late) = late {
                let rows = Rows { apart, count: end - start, values: block.channels };
                late.apply(rows, &mut out[to..], residual, &self.packed[self.parts.slopes + block.channel..]);
            }
        }
    }
}

/// The index of an output position among those of a phase.
fn index(axis: &Axis, place: usize) -> Option<usize> {
    let at = place.checked_sub(axis.out_first)?;
    at.is_multiple_of(axis.out_step).then_some(at / axis.out_step)
}
