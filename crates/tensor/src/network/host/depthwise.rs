//! Depthwise convolutions: each channel has its own window. A few neighbouring positions are summed together for one
//! vector of channels, so that each input is loaded once per row of the window.
//!
//! Invariant: the taps of a position are added in the order of the kernel, whatever the tile that the position is in.

#![expect(unsafe_code, reason = "lines and weights are checked once for each tile, and not for each tap")]

use std::ops::Range;

use super::finish::{Early, Rows};
use super::lanes::{Lanes, Level, Plain, Wide};
use super::pack::{Header, PackedSize, has_slopes};
use super::{ConvSpec, spread_products};
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
    spread_products(out, row, spec.work().saturating_mul(4), threads, |first, out| {
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

/// One row of the output.
struct Row<'a> {
    /// The input from the first line that a tap of this row sees.
    input: &'a [f32],
    residual: Option<&'a [f32]>,
    /// Taps along depth and height that see a line of the input.
    taps: [Range<usize>; 2],
    /// Floats from the line of one tap to the line of the next, along depth and height.
    apart: [usize; 2],
    /// Floats of a line.
    line: usize,
}

impl Depthwise<'_> {
    fn row(&self, level: Level, row: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let [depth, height, width] = window.output;
        let place = [row / height % depth, row % height];
        let first: [isize; 2] = std::array::from_fn(|axis| {
            (place[axis] * window.stride[axis]).cast_signed() - window.pad[axis].cast_signed()
        });
        let taps: [Range<usize>; 2] = std::array::from_fn(|axis| inside(&window, axis, first[axis]));
        let line = window.input[2] * channels;
        let apart = [window.dilation[0] * window.input[1] * line, window.dilation[1] * line];
        let image = window.inputs() * channels;
        let image = &self.x[row / height / depth * image..][..image];
        let input = if taps.iter().all(|taps| !taps.is_empty()) {
            let seen = |axis: usize| {
                first[axis].wrapping_add((taps[axis].start * window.dilation[axis]).cast_signed()).cast_unsigned()
            };
            &image[(seen(0) * window.input[1] + seen(1)) * line..]
        } else {
            &[]
        };
        let length = width * channels;
        let row = Row {
            input,
            residual: self.residual.filter(|_| self.early.adds_residual).map(|all| &all[row * length..][..length]),
            taps,
            apart,
            line,
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
        if channels < L::COUNT {
            return self.places(lanes, row, 0..width, out);
        }
        let rest = match (kernel, window.dilation[2], stride) {
            (3, 1, 1) => self.tiles::<L, 3, 1>(lanes, row, tiles, out),
            (3, 1, 2) => self.tiles::<L, 3, 2>(lanes, row, tiles, out),
            (5, 1, 1) => self.tiles::<L, 5, 1>(lanes, row, tiles, out),
            (5, 1, 2) => self.tiles::<L, 5, 2>(lanes, row, tiles, out),
            _ => start,
        };
        self.places(lanes, row, 0..start, out);
        self.places(lanes, row, rest..width, out);
    }

    /// Positions that see only the input, by `K` taps along the width, at stride `S` and without dilation. Returns the
    /// first that is left.
    fn tiles<L: Lanes, const K: usize, const S: usize>(
        &self,
        lanes: L,
        row: &Row<'_>,
        places: Range<usize>,
        out: &mut [f32],
    ) -> usize {
        lanes.call(
            #[inline(always)]
            || {
                let mut at = places.start;
                while at + 8 <= places.end {
                    self.tile::<L, 8, K, S>(lanes, row, at, out);
                    at += 8;
                }
                if at + 4 <= places.end {
                    self.tile::<L, 4, K, S>(lanes, row, at, out);
                    at += 4;
                }
                at
            },
        )
    }

    /// `T` positions from `at`.
    #[inline(always)]
    fn tile<L: Lanes, const T: usize, const K: usize, const S: usize>(
        &self,
        lanes: L,
        row: &Row<'_>,
        at: usize,
        out: &mut [f32],
    ) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let left = (at * S - window.pad[2]) * channels;
        row.check(left, ((T - 1) * S + K) * channels);
        assert!(self.weights.len() >= window.taps() * channels, "a tap has a weight for each channel");
        let out = &mut out[at * channels..][..T * channels];
        let residual = row.residual.map(|residual| &residual[at * channels..][..T * channels]);
        let mut next = 0;
        while next < channels {
            // The last vector overlaps the one before it.
            let channel = next.min(channels - L::COUNT);
            next += L::COUNT;
            let mut sums = [lanes.load(&self.bias[channel..]); T];
            if let Some(residual) = residual {
                for t in 0..T {
                    sums[t] = lanes.add(sums[t], lanes.load(&residual[t * channels + channel..]));
                }
            }
            for d in row.taps[0].clone() {
                for h in row.taps[1].clone() {
                    let x = row.line(d, h).wrapping_add(left + channel);
                    let from = self.weights.as_ptr().wrapping_add((d * window.kernel[1] + h) * K * channels + channel);
                    let weights: [L::Vector; K] = std::array::from_fn(
                        #[inline(always)]
                        |k| {
                            // SAFETY: tap `d`, `h` and `k` is one of the window, whose weights were checked, and a vector
                            // from `channel` is inside the channels.
                            unsafe { lanes.load_at(from.add(k * channels)) }
                        },
                    );
                    for i in 0..(T - 1) * S + K {
                        // SAFETY: `check` has compared the positions that all taps see with the input.
                        let input = unsafe { lanes.load_at(x.add(i * channels)) };
                        for t in 0..T {
                            if i >= t * S && i - t * S < K {
                                sums[t] = lanes.multiply_add(input, weights[i - t * S], sums[t]);
                            }
                        }
                    }
                }
            }
            for t in 0..T {
                lanes.store(self.limited(lanes, sums[t]), &mut out[t * channels + channel..]);
            }
        }
    }

    /// Positions that may see positions outside the input, one by one.
    fn places<L: Lanes>(&self, lanes: L, row: &Row<'_>, places: Range<usize>, out: &mut [f32]) {
        lanes.call(
            #[inline(always)]
            || {
                for at in places {
                    if self.spec.outputs >= L::COUNT {
                        self.place(lanes, row, at, out);
                    } else {
                        self.narrow_place(lanes, row, at, out);
                    }
                }
            },
        );
    }

    /// The position `at` of at least one vector of channels.
    #[inline(always)]
    fn place<L: Lanes>(&self, lanes: L, row: &Row<'_>, at: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let (taps, first) = self.seen(at);
        let step = window.dilation[2] * channels;
        row.check(first * channels, taps.len().saturating_sub(1) * step + channels);
        assert!(self.weights.len() >= window.taps() * channels, "a tap has a weight for each channel");
        let out = &mut out[at * channels..][..channels];
        let mut next = 0;
        while next < channels {
            // The last vector overlaps the one before it.
            let channel = next.min(channels - L::COUNT);
            next += L::COUNT;
            let mut sum = lanes.load(&self.bias[channel..]);
            if let Some(residual) = row.residual {
                sum = lanes.add(sum, lanes.load(&residual[at * channels + channel..]));
            }
            for d in row.taps[0].clone() {
                for h in row.taps[1].clone() {
                    let tap = (d * window.kernel[1] + h) * window.kernel[2] + taps.start;
                    let mut from = self.weights.as_ptr().wrapping_add(tap * channels + channel);
                    let mut x = row.line(d, h).wrapping_add(first * channels + channel);
                    for _ in taps.clone() {
                        // SAFETY: the tap is one of the window, whose weights were checked; `check` has compared the
                        // positions that all taps see with the input. A vector from `channel` is inside the channels.
                        let (input, weight) = unsafe { (lanes.load_at(x), lanes.load_at(from)) };
                        sum = lanes.multiply_add(input, weight, sum);
                        (x, from) = (x.wrapping_add(step), from.wrapping_add(channels));
                    }
                }
            }
            lanes.store(self.limited(lanes, sum), &mut out[channel..]);
        }
    }

    /// The position `at` of fewer channels than a vector has.
    #[inline(always)]
    fn narrow_place<L: Lanes>(&self, lanes: L, row: &Row<'_>, at: usize, out: &mut [f32]) {
        let ConvSpec { window, outputs: channels, .. } = *self.spec;
        let (taps, first) = self.seen(at);
        let load = |from: &[f32], at: usize| lanes.load_part(&from[at * channels..][..channels]);
        let mut sum = load(self.bias, 0);
        if let Some(residual) = row.residual {
            sum = lanes.add(sum, load(residual, at));
        }
        for d in row.taps[0].clone() {
            for h in row.taps[1].clone() {
                let line = &row.input[row.line_at(d, h)..][..row.line];
                for (seen, k) in taps.clone().enumerate() {
                    let tap = (d * window.kernel[1] + h) * window.kernel[2] + k;
                    let input = load(line, first + seen * window.dilation[2]);
                    sum = lanes.multiply_add(input, load(self.weights, tap), sum);
                }
            }
        }
        lanes.store_part(self.limited(lanes, sum), &mut out[at * channels..][..channels]);
    }

    /// The taps along the width that are inside the input for position `at`, and the input position that the first of
    /// them sees.
    #[inline(always)]
    fn seen(&self, at: usize) -> (Range<usize>, usize) {
        let window = &self.spec.window;
        let first = (at * window.stride[2]).cast_signed() - window.pad[2].cast_signed();
        let taps = inside(window, 2, first);
        let seen = if taps.is_empty() { 0 } else { first + (taps.start * window.dilation[2]).cast_signed() };
        (taps, seen.cast_unsigned())
    }

    #[inline(always)]
    fn limited<L: Lanes>(&self, lanes: L, sum: L::Vector) -> L::Vector {
        lanes.clamp(sum, lanes.splat(self.early.low), lanes.splat(self.early.high))
    }
}

impl Row<'_> {
    /// Floats from the start of the input to the line that two taps see.
    #[inline(always)]
    fn line_at(&self, depth: usize, height: usize) -> usize {
        (depth - self.taps[0].start) * self.apart[0] + (height - self.taps[1].start) * self.apart[1]
    }

    /// The start of the line that two taps see.
    #[inline(always)]
    fn line(&self, depth: usize, height: usize) -> *const f32 {
        self.input.as_ptr().wrapping_add(self.line_at(depth, height))
    }

    /// Panics unless `count` floats from `left` are in the lines of all taps.
    #[inline(always)]
    fn check(&self, left: usize, count: usize) {
        let [depth, height] = &self.taps;
        if depth.is_empty() || height.is_empty() {
            return;
        }
        let last = self.line_at(depth.end - 1, height.end - 1);
        assert!(left + count <= self.line && last + self.line <= self.input.len(), "taps see only the input");
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
