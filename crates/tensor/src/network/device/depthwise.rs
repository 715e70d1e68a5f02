//! Depthwise convolutions: each output channel sees one input channel. An invocation computes a few neighbours along
//! the width, so that the neighbours share what they load.
//!
//! Invariant: sums start with the bias and are in the order of taps. A window has at most
//! [`MOST_ROUNDS`](crate::ops::device::MOST_ROUNDS) taps; larger ones are for [`ConvKernel`](super::conv::ConvKernel).

use std::fmt::Write;

use vramp_plan::Shader;

use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::window::Window;
use crate::ops::device::{Hook, KernelText, Launch, MATH};

const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// A depthwise convolution with as many outputs as inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DepthwiseKernel {
    pub(crate) window: Window,
    pub(crate) batch: usize,
    pub(crate) channels: usize,
}

/// What the text of a kernel depends on.
#[derive(Debug, Clone)]
struct DepthwiseText {
    /// Four channels are computed at once.
    wide: bool,
    /// Taps along the width in one round: the width of the window, or 1.
    taps: usize,
    /// Input positions between neighbours along the width if a round has all taps of a row.
    stride: Option<usize>,
    /// Output positions of an invocation.
    places: usize,
    finish: Hook,
}

const FIELDS: [&str; 20] = [
    "count",
    "pitch",
    "tiles",
    "bias_at",
    "out_d",
    "out_h",
    "out_w",
    "rounds",
    "in_d",
    "in_h",
    "in_w",
    "kernel_h",
    "stride_d",
    "stride_h",
    "stride_w",
    "kernel_w",
    "pad_d",
    "pad_h",
    "pad_w",
    "dilation_d",
];

const MORE_FIELDS: [&str; 2] = ["dilation_h", "dilation_w"];

impl DepthwiseKernel {
    /// The weights in the order that the kernel reads: `[tap][channel]`, then the bias. `weights` are
    /// `[channel, taps]`.
    #[cfg(test)]
    pub(crate) fn packed(&self, weights: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let taps = self.window.taps();
        assert_eq!(weights.len(), self.channels * taps, "weights of a depthwise convolution");
        let mut packed = Vec::with_capacity((taps + 1) * self.channels);
        for tap in 0..taps {
            packed.extend(weights.iter().skip(tap).step_by(taps));
        }
        match bias {
            Some(bias) => packed.extend_from_slice(bias),
            None => packed.resize((taps + 1) * self.channels, 0.0),
        }
        packed
    }

    /// The work on a device. Inputs: x, the packed weights, the buffers of `finish`. `finish_words` are the parameters
    /// of `finish`, as whole vectors.
    pub(crate) fn work(&self, facts: &DeviceFacts, finish: Hook, finish_words: &[u32]) -> DeviceWork {
        let Window { kernel, stride, dilation, .. } = self.window;
        let shares = (2..=7).contains(&kernel[2]) && stride[2] <= 2 && dilation[2] == 1;
        let text = DepthwiseText {
            wide: self.channels.is_multiple_of(4),
            taps: if shares { kernel[2] } else { 1 },
            stride: shares.then_some(stride[2]),
            places: if shares { 4 } else { 1 },
            finish,
        };
        let buffers = [Bound::Input(0), Bound::Input(1)].into_iter();
        let buffers = buffers.chain((0..text.finish.inputs).map(|side| Bound::Input(2 + side)));
        DeviceWork::one(Dispatch {
            key: text.key(),
            shader: text.shader(),
            buffers: buffers.chain([Bound::Output(0)]).collect(),
            launch: self.launch(&text, facts.most_groups).with_hook(finish_words),
        })
    }

    fn launch(&self, text: &DepthwiseText, most: u32) -> Launch {
        let Window { input, output, kernel, stride, dilation, pad } = self.window;
        let pitch = if text.wide { self.channels / 4 } else { self.channels };
        let tiles = output[2].div_ceil(text.places);
        let count = self.batch * output[0] * output[1] * tiles * pitch;
        let words = [
            &[count, pitch, tiles, self.window.taps() * pitch][..],
            &[output[0], output[1], output[2], self.window.taps() / text.taps],
            &[input[0], input[1], input[2], kernel[1]],
            &[stride[0], stride[1], stride[2], if text.stride.is_some() { 1 } else { kernel[2] }],
            &[pad[0], pad[1], pad[2], dilation[0]],
            &[dilation[1], dilation[2]],
        ];
        let words: Vec<u32> = words.concat().into_iter().map(|number| number as u32).collect();
        Launch::new(&words, count.div_ceil(64) as u64, most)
    }
}

impl DepthwiseText {
    fn key(&self) -> String {
        let Self { wide, taps, stride, places, finish } = self;
        format!("depthwise {wide} {taps} {stride:?} {places} {}", finish.wgsl)
    }

    /// Buffers: x, the weights, the inputs of `finish`, the results.
    fn shader(&self) -> Shader {
        let item = if self.wide { "vec4<f32>" } else { "f32" };
        let mut text = KernelText::new();
        text.read("x", item);
        text.read("weights", item);
        text.inputs(&self.finish, "side");
        text.write("out", item);
        let fields: Vec<&str> = FIELDS.into_iter().chain(MORE_FIELDS).collect();
        text.params(&fields, self.finish.vectors);
        text.push(MATH);
        text.push(&self.finish.wgsl);
        let stride = self.stride.map_or_else(|| "p.stride_w".to_owned(), |stride| format!("{stride}u"));
        let wgsl = include_str!("depthwise.wgsl")
            .replace("$PLACES", &format!("{}u", self.places))
            .replace("$STRIDE", &stride)
            .replace("$BODY", &self.body());
        text.push(&wgsl);
        let per_workgroup = 64 * self.places * if self.wide { 4 } else { 1 };
        text.shader(format!("depthwise convolution, {} taps a round", self.taps), per_workgroup as u32)
    }

    fn body(&self) -> String {
        let (zero, of) = if self.wide { ("vec4<f32>()", "vec4<f32>") } else { ("0.0", "f32") };
        let mut body = String::new();
        for at in 0..self.places {
            let _ = writeln!(body, "    var sum{at} = bias;");
        }
        body.push_str(
            "    var w_at = c;
    for (var round = 0u; round < p.rounds; round += 1u) {
        let tap_row = quotient(round, p.kernel_w);
        let tap_d = quotient(tap_row, p.kernel_h);
        let seen_d = u32(in_d + i32(tap_d * p.dilation_d));
        let seen_h = u32(in_h + i32((tap_row - tap_d * p.kernel_h) * p.dilation_h));
        let first = in_w + i32((round - tap_row * p.kernel_w) * p.dilation_w);
        let is_row = seen_d < p.in_d && seen_h < p.in_h;
        let row_at = ((image * p.in_d + seen_d) * p.in_h + seen_h) * p.in_w;
",
        );
        // The stride only matters between the positions of one invocation.
        let stride = self.stride.unwrap_or(1);
        for column in 0..(self.places - 1) * stride + self.taps {
            let _ = writeln!(
                body,
                "        let seen{column} = u32(first + {column});
        let is_in{column} = is_row && seen{column} < p.in_w;
        let x_at{column} = select(0u, (row_at + seen{column}) * p.pitch + c, is_in{column});
        let x{column} = select({zero}, x[x_at{column}], is_in{column});"
            );
        }
        for tap in 0..self.taps {
            let _ = writeln!(body, "        let w{tap} = weights[w_at + {tap}u * p.pitch];");
            for at in 0..self.places {
                let _ = writeln!(body, "        sum{at} = fma(x{}, w{tap}, sum{at});", at * stride + tap);
            }
        }
        let _ = writeln!(body, "        w_at += {}u * p.pitch;\n    }}", self.taps);
        for at in 0..self.places {
            let _ = writeln!(
                body,
                "    if w + {at}u < p.out_w {{
        let to = row * p.out_w + w + {at}u;
        let four = to * p.pitch + c;"
            );
            let finished = if self.wide {
                let parts = PARTS
                    .iter()
                    .enumerate()
                    .map(|(part, name)| format!("finish(sum{at}.{name}, to, c * 4u + {part}u, four * 4u + {part}u)"));
                parts.collect::<Vec<_>>().join(", ")
            } else {
                format!("finish(sum{at}, to, c, four)")
            };
            let _ = writeln!(body, "        out[four] = {of}({finished});\n    }}");
        }
        body
    }
}
