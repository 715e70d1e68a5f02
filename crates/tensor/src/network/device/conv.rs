//! Convolutions as implicit matrix products: rows are output positions, columns are output channels, and the sums run
//! over the taps of the window and the channels of a group. Transposed convolutions share the kernel: their output
//! positions fall into phases, and in one phase the taps that hit an input position are those of a plain convolution.
//!
//! Invariants: an invocation runs at most [`MOST_ROUNDS`](crate::ops::device::MOST_ROUNDS) rounds; longer sums take
//! several dispatches, each of which adds to the sums of the one before. The sums of a dispatch are in the order of
//! taps, then channels, and the first starts with the bias.

use vramp_plan::Shader;

use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::window::Window;
use crate::ops::device::{Hook, KernelText, Launch, MATH, MOST_ROUNDS};

/// A convolution, plain or transposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConvKernel {
    pub(crate) window: Window,
    pub(crate) batch: usize,
    pub(crate) groups: usize,
    /// Channels of the input.
    pub(crate) inputs: usize,
    /// Channels of the output.
    pub(crate) outputs: usize,
    pub(crate) transposed: bool,
}

/// Where the values of a tile are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In registers of the invocation that reads the values.
    Registers,
    /// In workgroup memory; only for tiles of 4x4, and if the input channels of a group are a multiple of 4.
    Shared,
}

/// The part of the output that one invocation computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    /// Output positions.
    pub(crate) places: usize,
    /// Output channels, a multiple of 4.
    pub(crate) channels: usize,
    pub(crate) form: Form,
}

impl Tile {
    /// The default without a measurement. On llvmpipe, loads bound the time, and long loops run slowly. For a 1x1
    /// convolution of 28x28 positions, 256 to 256 channels, 8x8 in registers took 18 ms of CPU time with Mesa 25 and 42
    /// with Mesa 22; 4x8 took 21 and 58; 16x8 took as long as 8x8, and twice as long to compile; 4x4 with vectors of
    /// four input channels took 23 and 54. Tiles in workgroup memory are for GPUs; none was measured.
    fn usual(kernel: &ConvKernel, is_software: bool) -> Tile {
        let (group_in, group_out) = (kernel.inputs / kernel.groups, kernel.outputs / kernel.groups);
        if !is_software && group_out > 8 && group_in > 4 && group_in.is_multiple_of(4) {
            return Tile { places: 4, channels: 4, form: Form::Shared };
        }
        Tile { places: 8, channels: if group_out > 4 { 8 } else { 4 }, form: Form::Registers }
    }

    /// Workgroup size.
    pub(super) fn lanes(self) -> usize {
        match self.form {
            Form::Registers => 64,
            Form::Shared => 256,
        }
    }

    /// Input channels of a round.
    fn per_round(self) -> usize {
        match self.form {
            Form::Registers => 1,
            Form::Shared => 4,
        }
    }

    /// Positions and channels of a workgroup.
    pub(super) fn block(self) -> (usize, usize) {
        match self.form {
            Form::Registers => (64 * self.places, self.channels),
            Form::Shared => (64, 64),
        }
    }
}

/// The part of the sums that one dispatch adds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    taps: [usize; 2],
    /// Rounds over input channels.
    rounds: [usize; 2],
}

/// What the output positions see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// The input position of the same index.
    Point,
    /// The input positions of a window.
    Window,
    /// The input positions whose windows, in the output, reach them.
    Transposed,
}

/// What the text of a kernel depends on.
#[derive(Debug, Clone)]
pub(super) struct ConvText {
    pub(super) tile: Tile,
    pub(super) sight: Sight,
    /// Four output channels are stored at once.
    pub(super) wide_out: bool,
    /// The sums continue those of an earlier dispatch.
    pub(super) continues: bool,
    pub(super) finish: Hook,
}

const FIELDS: [&str; 36] = [
    "out_d",
    "out_h",
    "out_w",
    "places",
    "in_d",
    "in_h",
    "in_w",
    "pitch",
    "stride_d",
    "stride_h",
    "stride_w",
    "group_in",
    "pad_d",
    "pad_h",
    "pad_w",
    "groups",
    "dilation_d",
    "dilation_h",
    "dilation_w",
    "tiles",
    "kernel_h",
    "kernel_w",
    "taps",
    "blocks",
    "tap_from",
    "tap_to",
    "round_from",
    "round_to",
    "channels",
    "group_out",
    "fours",
    "bias_at",
    "whole_d",
    "whole_h",
    "whole_w",
    "phases",
];

impl ConvKernel {
    /// The weights in the order that the kernel reads: `[group][tap][input channel][output channel]`, with the output
    /// channels of a group padded to a multiple of 4, then the bias, padded likewise. `weights` are `[output, input of
    /// its group, taps]` for a convolution, and `[input, output of its group, taps]` for a transposed convolution.
    #[cfg(test)]
    pub(crate) fn packed(&self, weights: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let (taps, group_in, group_out) = (self.window.taps(), self.inputs / self.groups, self.outputs / self.groups);
        let padded = group_out.next_multiple_of(4);
        assert_eq!(weights.len(), self.outputs * group_in * taps, "weights of a convolution");
        let sums = self.groups * taps * group_in;
        let mut packed = vec![0.0; (sums + self.groups) * padded];
        for (row, to) in packed.chunks_exact_mut(padded).take(sums).enumerate() {
            let (group, tap, input) = (row / (taps * group_in), row / group_in % taps, row % group_in);
            for (output, to) in to.iter_mut().take(group_out).enumerate() {
                let from = if self.transposed {
                    (group * group_in + input) * group_out + output
                } else {
                    (group * group_out + output) * group_in + input
                };
                *to = weights[from * taps + tap];
            }
        }
        if let Some(bias) = bias {
            for (to, from) in packed[sums * padded..].chunks_exact_mut(padded).zip(bias.chunks_exact(group_out)) {
                to[..group_out].copy_from_slice(from);
            }
        }
        packed
    }

    /// The work on a device. Inputs: x, the packed weights, the buffers of `finish`. `finish_words` are the parameters
    /// of `finish`, as whole vectors.
    pub(crate) fn work(&self, facts: &DeviceFacts, finish: Hook, finish_words: &[u32]) -> DeviceWork {
        self.work_with(Tile::usual(self, facts.is_software), MOST_ROUNDS, facts, finish, finish_words)
    }

    /// Like [`ConvKernel::work`], with this tile and at most `most_rounds` rounds in a dispatch.
    pub(crate) fn work_with(
        &self,
        tile: Tile,
        most_rounds: usize,
        facts: &DeviceFacts,
        finish: Hook,
        finish_words: &[u32],
    ) -> DeviceWork {
        let (group_in, group_out) = (self.inputs / self.groups, self.outputs / self.groups);
        let sight = match self.transposed {
            _ if self.window.is_point() => Sight::Point,
            true => Sight::Transposed,
            false => Sight::Window,
        };
        let wide_out = group_out.is_multiple_of(4);
        let mut text = ConvText { tile, sight, wide_out, continues: false, finish: Hook::pass() };
        let parts = self.parts(group_in / tile.per_round(), most_rounds);
        let (last, earlier) = parts.split_last().expect("a convolution has at least one part");
        let mut work = DeviceWork::default();
        if !earlier.is_empty() {
            // A dispatch never reads and writes the same buffer, so the sums alternate between two.
            work.temporary = vec![self.batch * self.window.places() * self.outputs; earlier.len().min(2)];
        }
        let read = |number: usize| {
            let so_far = number.checked_sub(1).map(|before| Bound::Temporary(before % 2));
            [Bound::Input(0), Bound::Input(1)].into_iter().chain(so_far)
        };
        for (number, part) in earlier.iter().enumerate() {
            text.continues = number > 0;
            work.dispatches.push(Dispatch {
                key: text.key(),
                shader: text.shader(),
                buffers: read(number).chain([Bound::Temporary(number % 2)]).collect(),
                launch: self.launch(&text, part, facts.most_groups),
            });
        }
        text.continues = !earlier.is_empty();
        text.finish = finish;
        let sides = (0..text.finish.inputs).map(|side| Bound::Input(2 + side));
        work.dispatches.push(Dispatch {
            key: text.key(),
            shader: text.shader(),
            buffers: read(earlier.len()).chain(sides).chain([Bound::Output(0)]).collect(),
            launch: self.launch(&text, last, facts.most_groups).with_hook(finish_words),
        });
        work
    }

    /// The parts of the sums, with at most `most` rounds each, if a tap takes `rounds` rounds.
    fn parts(&self, rounds: usize, most: usize) -> Vec<Part> {
        let taps = self.window.taps();
        // A tap is a round of its own loop too.
        let (step_taps, step_rounds) =
            if rounds < most { ((most / (rounds + 1)).max(1), rounds) } else { (1, most - 1) };
        let mut parts = Vec::new();
        for tap in (0..taps).step_by(step_taps) {
            for round in (0..rounds.max(1)).step_by(step_rounds.max(1)) {
                parts.push(Part {
                    taps: [tap, (tap + step_taps).min(taps)],
                    rounds: [round, (round + step_rounds).min(rounds)],
                });
            }
        }
        parts
    }

    fn launch(&self, text: &ConvText, part: &Part, most: u32) -> Launch {
        let Window { input, output, kernel, stride, dilation, pad } = self.window;
        let (group_in, group_out) = (self.inputs / self.groups, self.outputs / self.groups);
        let phases = if text.sight == Sight::Transposed { stride } else { [1; 3] };
        let out: [usize; 3] = std::array::from_fn(|axis| output[axis].div_ceil(phases[axis]));
        let places = self.batch * out.iter().product::<usize>();
        let phases = phases.iter().product::<usize>();
        let per = text.tile.per_round();
        let (tiles, fours) = (group_out.div_ceil(text.tile.block().1), group_out.div_ceil(4));
        let blocks = places.div_ceil(text.tile.block().0);
        let taps = self.window.taps();
        let words = [
            &[out[0], out[1], out[2], places][..],
            &[input[0], input[1], input[2], self.inputs / per],
            &[stride[0], stride[1], stride[2], group_in / per],
            &[pad[0], pad[1], pad[2], self.groups],
            &[dilation[0], dilation[1], dilation[2], tiles],
            &[kernel[1], kernel[2], taps, blocks],
            &[part.taps[0], part.taps[1], part.rounds[0], part.rounds[1]],
            &[self.outputs, group_out, fours, self.groups * taps * group_in * fours],
            &[output[0], output[1], output[2], phases],
        ];
        let words: Vec<u32> = words.concat().into_iter().map(|number| number as u32).collect();
        debug_assert_eq!(words.len(), FIELDS.len());
        Launch::new(&words, (phases * blocks * self.groups * tiles) as u64, most)
    }
}

impl ConvText {
    fn key(&self) -> String {
        let Self { tile, sight, wide_out, continues, finish } = self;
        format!(
            "convolution {}x{} {:?} {sight:?} {wide_out} {continues} {}",
            tile.places, tile.channels, tile.form, finish.wgsl
        )
    }

    /// Buffers: x, the weights, the sums so far if there are any, the inputs of `finish`, the results.
    fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.read("x", if self.tile.per_round() == 4 { "vec4<f32>" } else { "f32" });
        text.read("weights", "vec4<f32>");
        if self.continues {
            text.read("sums", "f32");
        }
        text.inputs(&self.finish, "side");
        text.write("out", if self.wide_out { "vec4<f32>" } else { "f32" });
        text.params(&FIELDS, self.finish.vectors);
        text.push(MATH);
        text.push(&self.finish.wgsl);
        let body = match self.tile.form {
            Form::Registers => self.registers(),
            Form::Shared => {
                text.push("var<workgroup> shared_x: array<vec4<f32>, 256>;");
                text.push("var<workgroup> shared_w: array<vec4<f32>, 256>;");
                self.shared()
            }
        };
        let (places, channels) = self.tile.block();
        let wgsl = include_str!("conv.wgsl")
            .replace("$LANES", &self.tile.lanes().to_string())
            .replace("$PLACES", &format!("{places}u"))
            .replace("$CHANNELS", &format!("{channels}u"))
            .replace("$BODY", &body);
        text.push(&wgsl);
        let kind = match self.sight {
            Sight::Point => "1x1 convolution",
            Sight::Window => "convolution",
            Sight::Transposed => "transposed convolution",
        };
        let Tile { places: m, channels: n, .. } = self.tile;
        text.shader(format!("{kind}, {m}x{n}"), (places * channels) as u32)
    }
}
