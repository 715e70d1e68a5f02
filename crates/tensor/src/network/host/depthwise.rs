//! Depthwise convolutions: each channel has its own window. A few neighbouring positions are summed together for one
//! vector of channels, so that each input is loaded once per row of the window.
//!
//! Invariant: the taps of a position are added in the order of the kernel, whatever the tile that the position is in.

use std::ops::Range;

use super::ConvSpec;
use super::bands::bands;
use super::finish::{Early, Rows};
use super::lanes::{Lanes, Level, Plain, Wide};
use super::pack::{Header, PackedSize, has_slopes};
use crate::network::window::Window;

/// Writes a depthwise convolution with the weights of [`super::pack_depthwise`] to `out`. Inputs, outputs and groups
/// are equal.
pub(crate) fn depthwise(
    spec: &ConvSpec,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    depthwise_with(Level::detected(), spec, x, packed, residual, out, threads);
}

pub(super) fn depthwise_with(
    level: Level,
    spec: &ConvSpec,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    let slopes = has_slopes(spec.finish.activation);
    assert!(spec.inputs == spec.groups && spec.outputs == spec.groups, "{spec:?} is not depthwise");
    let length = PackedSize::of(spec).depthwise_length(slopes);
    spec.check(x.len(), (packed.len(), length), residual.map(<[f32]>::len), out.len());
    let parts = Header::of(spec.outputs, slopes);
    let depthwise = Depthwise {
        spec,
        x,
        bias: &packed[..spec.outputs],
        weights: &packed[parts.weights..],
        residual,
        early: spec.finish.early(),
    };
    let row = spec.window.output[2] * spec.outputs;
    let late = spec.finish.late();
    // These loops wait for memory, so each multiplication takes several times as long as in a product.
    bands(out, row, spec.work().saturating_mul(4), threads, &|first, out| {
        for (at, out) in out.chunks_mut(row).enumerate() {
            depthwise.row(level, first + at, out);
            if let Some(late) = late {
                let residual = residual.map(|residual| &residual[(first + at) * row..][..row]);
                let rows = if slopes {
                    Rows { apart: spec.outputs, count: spec.window.output[2], values: spec.outputs }
                } else {
                    Rows { apart: row, count: 1, values: row }
                };
                late.apply(rows, out, residual, &packed[parts.slopes..]);
            }
        }
    });
}

#[derive(Clone, Copy)]
struct Depthwise<'a> {
    spec: &'a ConvSpec,
    x: &'a [f32],
    bias: &'a [f32],
    weights: &'a [f32],
    residual: Option<&'a [f32]>,
    early: Early,
}

/// Positions that are summed together.
const TILE: usize = 4;

/// One row of the output, and the taps along depth and height that are inside the input.
struct Row<'a> {
    image: &'a [f32],
    residual: Option<&'a [f32]>,
    /// The input positions that the first taps see.
    first: [isize; 2],
    taps: [Range<usize>; 2],
}

impl Depthwise<'_> {
    fn row(&self, level: Level, row: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let [depth, height, width] = window.output;
        let place = [row / height % depth, row % height];
        let first = std::array::from_fn(|axis| {
            (place[axis] * window.stride[axis]).cast_signed() - window.pad[axis].cast_signed()
        });
        let image = window.inputs() * channels;
        let length = width * channels;
        let row = Row {
            image: &self.x[row / height / depth * image..][..image],
            residual: self.residual.filter(|_| self.early.adds_residual).map(|all| &all[row * length..][..length]),
            first,
            taps: std::array::from_fn(|axis| inside(&window, axis, first[axis])),
        };
        match level {
            Level::Plain(_) => self.places(Plain, &row, 0..width, out),
            #[cfg(target_arch = "x86_64")]
            Level::V3(set) => self.row_with(Wide(set), &row, out),
            #[cfg(target_arch = "x86_64")]
            Level::V4(set) => self.row_with(Wide(set), &row, out),
            #[cfg(target_arch = "aarch64")]
            Level::Neon(set) => self.row_with(Wide(set), &row, out),
        }
    }

    fn row_with<L: Lanes>(&self, lanes: L, row: &Row<'_>, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let (width, kernel, stride) = (window.output[2], window.kernel[2], window.stride[2]);
        // The positions from `start` to `end` see only the input.
        let start = window.pad[2].div_ceil(stride).min(width);
        let end = match (window.input[2] + window.pad[2]).checked_sub((kernel - 1) * window.dilation[2] + 1) {
            Some(last) => (last / stride + 1).clamp(start, width),
            None => start,
        };
        let tiles = start..end;
        if channels < L::COUNT || tiles.len() < TILE {
            return self.places(lanes, row, 0..width, out);
        }
        match (kernel, window.dilation[2], stride) {
            (3, 1, 1) => self.tiles::<L, 3, 1>(lanes, row, tiles, out),
            (3, 1, 2) => self.tiles::<L, 3, 2>(lanes, row, tiles, out),
            (5, 1, 1) => self.tiles::<L, 5, 1>(lanes, row, tiles, out),
            (5, 1, 2) => self.tiles::<L, 5, 2>(lanes, row, tiles, out),
            _ => return self.places(lanes, row, 0..width, out),
        }
        self.places(lanes, row, 0..start, out);
        self.places(lanes, row, end..width, out);
    }

    /// Positions that see only the input, by `K` taps along the width, at stride `S` and without dilation.
    fn tiles<L: Lanes, const K: usize, const S: usize>(
        &self,
        lanes: L,
        row: &Row<'_>,
        places: Range<usize>,
        out: &mut [f32],
    ) {
        for at in places.clone().step_by(TILE) {
            // The last tile overlaps the one before it. The same results are then stored twice.
            let at = at.min(places.end - TILE);
            lanes.call(
                #[inline(always)]
                || self.tile::<L, K, S>(lanes, row, at, out),
            );
        }
    }

    #[inline(always)]
    fn tile<L: Lanes, const K: usize, const S: usize>(&self, lanes: L, row: &Row<'_>, at: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let left = (at * S - window.pad[2]) * channels;
        let mut next = 0;
        while next < channels {
            // The last vector overlaps the one before it.
            let channel = next.min(channels - L::COUNT);
            next += L::COUNT;
            let mut sums = [lanes.load(&self.bias[channel..]); TILE];
            if let Some(residual) = row.residual {
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = lanes.add(*sum, lanes.load(&residual[(at + t) * channels + channel..]));
                }
            }
            for d in row.taps[0].clone() {
                for h in row.taps[1].clone() {
                    let x = &row.image[row.line(&window, d, h) * channels + left + channel..];
                    let from = &self.weights[(d * window.kernel[1] + h) * K * channels + channel..];
                    let weights: [L::Vector; K] = std::array::from_fn(
                        #[inline(always)]
                        |k| lanes.load(&from[k * channels..]),
                    );
                    for i in 0..(TILE - 1) * S + K {
                        let input = lanes.load(&x[i * channels..]);
                        for t in 0..TILE {
                            if i >= t * S && i - t * S < K {
                                sums[t] = lanes.multiply_add(input, weights[i - t * S], sums[t]);
                            }
                        }
                    }
                }
            }
            for (t, sum) in sums.iter().enumerate() {
                lanes.store(self.limited(lanes, *sum), &mut out[(at + t) * channels + channel..]);
            }
        }
    }

    /// Positions that may see positions outside the input, one by one.
    fn places<L: Lanes>(&self, lanes: L, row: &Row<'_>, places: Range<usize>, out: &mut [f32]) {
        lanes.call(
            #[inline(always)]
            || {
                for at in places {
                    self.place(lanes, row, at, out);
                }
            },
        );
    }

    #[inline(always)]
    fn place<L: Lanes>(&self, lanes: L, row: &Row<'_>, at: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let first = (at * window.stride[2]).cast_signed() - window.pad[2].cast_signed();
        let taps = inside(&window, 2, first);
        for channel in (0..channels).step_by(L::COUNT) {
            let these = channel..channels.min(channel + L::COUNT);
            let load = |from: &[f32], at: usize| lanes.load_part(&from[at + these.start..at + these.end]);
            let mut sum = load(self.bias, 0);
            if let Some(residual) = row.residual {
                sum = lanes.add(sum, load(residual, at * channels));
            }
            for d in row.taps[0].clone() {
                for h in row.taps[1].clone() {
                    let line = row.line(&window, d, h);
                    for k in taps.clone() {
                        let input = line + (first + (k * window.dilation[2]).cast_signed()) as usize;
                        let tap = (d * window.kernel[1] + h) * window.kernel[2] + k;
                        let (input, weight) = (load(row.image, input * channels), load(self.weights, tap * channels));
                        sum = lanes.multiply_add(input, weight, sum);
                    }
                }
            }
            lanes.store_part(self.limited(lanes, sum), &mut out[at * channels..][these]);
        }
    }

    #[inline(always)]
    fn limited<L: Lanes>(&self, lanes: L, sum: L::Vector) -> L::Vector {
        lanes.clamp(sum, lanes.splat(self.early.low), lanes.splat(self.early.high))
    }
}

impl Row<'_> {
    /// The first input position of the line that two taps see.
    #[inline(always)]
    fn line(&self, window: &Window, depth: usize, height: usize) -> usize {
        let depth = (self.first[0] + (depth * window.dilation[0]).cast_signed()) as usize;
        let height = (self.first[1] + (height * window.dilation[1]).cast_signed()) as usize;
        (depth * window.input[1] + height) * window.input[2]
    }
}

/// The taps along an axis that are inside the input, if the first tap sees the input position `first`.
#[inline(always)]
fn inside(window: &Window, axis: usize, first: isize) -> Range<usize> {
    let (length, dilation, taps) =
        (window.input[axis].cast_signed(), window.dilation[axis].cast_signed(), window.kernel[axis]);
    let start = if first < 0 { (dilation - 1 - first) / dilation } else { 0 } as usize;
    let end = if first < length { ((length - 1 - first) / dilation + 1) as usize } else { 0 };
    start.min(taps)..end.min(taps).max(start.min(taps))
}
