//! Pools: the maximum or the mean over a window. Global pools are windows as large as the input; on a GPU, a reduction
//! over the positions is faster for those.
//!
//! Invariants: positions outside the input never win a maximum. The first of equal maxima wins, and any value wins
//! against NaN. A window has at most
//! [`MOST_ROUNDS`](crate::ops::device::MOST_ROUNDS) taps; a larger one is a reduction.

use std::fmt::Write;

use smallvec::SmallVec;
use vramp_plan::Shader;

use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch, WordKind};
use crate::network::window::Window;
use crate::ops::device::{Hook, KernelText, Launch, MATH};

const PARTS: [&str; 4] = ["x", "y", "z", "w"];

/// A pool over each channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolKernel {
    pub(crate) window: Window,
    pub(crate) batch: usize,
    pub(crate) channels: usize,
    pub(crate) fold: PoolFold,
}

/// What a pool computes of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolFold {
    Max {
        /// The type of the words. A pool of integers has no finishing function.
        kind: WordKind,
        indices: Option<IndexOrder>,
    },
    /// The mean of the taps inside the input; or, with the padding after the end of each axis, inside the padded input.
    Average { counted_end: Option<[usize; 3]> },
}

/// How the index of a maximum counts the positions of its channel. Indices count all values of the input, with the
/// channels of an image before its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexOrder {
    /// The last axis is contiguous.
    RowMajor,
    /// The first axis is contiguous.
    ColumnMajor,
}

const FIELDS: [&str; 28] = [
    "count",
    "pitch",
    "taps",
    "positions",
    "out_d",
    "out_h",
    "out_w",
    "channels",
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
    "index_d",
    "dilation_d",
    "dilation_h",
    "dilation_w",
    "index_h",
    "end_d",
    "end_h",
    "end_w",
    "index_w",
];

impl PoolKernel {
    /// The work on a device. Inputs: x, the buffers of `finish`. Outputs: the results, and the indices if they are
    /// wanted. `finish_words` are the parameters of `finish`, as whole vectors.
    pub(crate) fn work(&self, facts: &DeviceFacts, finish: &Hook, finish_words: &[u32]) -> DeviceWork {
        let mut buffers: SmallVec<[Bound; 6]> = (0..=finish.inputs).map(Bound::Input).collect();
        buffers.push(Bound::Output(0));
        buffers.extend(self.has_indices().then_some(Bound::Output(1)));
        DeviceWork::one(Dispatch {
            key: self.key(finish),
            shader: self.shader(finish),
            buffers,
            launch: self.launch(facts.most_groups).with_hook(finish_words),
        })
    }

    fn is_wide(&self) -> bool {
        self.channels.is_multiple_of(4)
    }

    fn has_indices(&self) -> bool {
        matches!(self.fold, PoolFold::Max { indices: Some(_), .. })
    }

    fn is_integer(&self) -> bool {
        matches!(self.fold, PoolFold::Max { kind: WordKind::I32, .. })
    }

    fn key(&self, finish: &Hook) -> String {
        let kind = match self.fold {
            PoolFold::Max { kind, .. } => format!("maximum {kind:?}"),
            PoolFold::Average { counted_end } => format!("mean {}", counted_end.is_some()),
        };
        format!("pool {kind} {} {} {}", self.has_indices(), self.is_wide(), finish.wgsl)
    }

    fn launch(&self, most: u32) -> Launch {
        let Window { input, output, kernel, stride, dilation, pad } = self.window;
        let pitch = if self.is_wide() { self.channels / 4 } else { self.channels };
        let count = self.batch * self.window.places() * pitch;
        let index = match self.fold {
            PoolFold::Max { indices: Some(IndexOrder::ColumnMajor), .. } => [1, input[0], input[0] * input[1]],
            _ => [input[1] * input[2], input[2], 1],
        };
        let end = match self.fold {
            PoolFold::Average { counted_end: Some(end) } => std::array::from_fn(|axis| input[axis] + end[axis]),
            _ => input,
        };
        let words = [
            [count, pitch, self.window.taps(), self.window.inputs()],
            [output[0], output[1], output[2], self.channels],
            [input[0], input[1], input[2], kernel[1]],
            [stride[0], stride[1], stride[2], kernel[2]],
            [pad[0], pad[1], pad[2], index[0]],
            [dilation[0], dilation[1], dilation[2], index[1]],
            [end[0], end[1], end[2], index[2]],
        ];
        let words: Vec<u32> = words.concat().into_iter().map(|number| number as u32).collect();
        Launch::new(&words, count.div_ceil(64) as u64, most)
    }

    /// Buffers: x, the inputs of `finish`, the results, the indices if they are wanted.
    fn shader(&self, finish: &Hook) -> Shader {
        let of = if self.is_integer() { "i32" } else { "f32" };
        let item = if self.is_wide() { format!("vec4<{of}>") } else { of.to_owned() };
        let index = if self.is_wide() { "vec4<i32>" } else { "i32" };
        let mut text = KernelText::new();
        text.read("x", &item);
        text.inputs(finish, "side");
        text.write("out", &item);
        if self.has_indices() {
            text.write("indices", index);
        }
        text.params(&FIELDS, finish.vectors);
        text.push(MATH);
        text.push(&finish.wgsl);
        let [start, take] = match self.fold {
            PoolFold::Max { .. } => self.maximum(&item, index),
            PoolFold::Average { counted_end } => Self::mean(&item, counted_end.is_some()),
        };
        let wgsl = include_str!("pool.wgsl")
            .replace("$START", &start)
            .replace("$TAKE", &take)
            .replace("$STORE", &self.stores(&item, index));
        text.push(&wgsl);
        let name = match self.fold {
            PoolFold::Max { .. } => "maximum of windows",
            PoolFold::Average { .. } => "mean of windows",
        };
        text.shader(name.into(), 64 * if self.is_wide() { 4 } else { 1 })
    }

    fn maximum(&self, item: &str, index: &str) -> [String; 2] {
        let least = if self.is_integer() { "bitcast<i32>(0x80000000u)" } else { "-infinity()" };
        let start = format!("    var best = {item}({least});\n    var best_at = {index}();\n    var is_first = true;");
        let flags = item.replace("f32", "bool").replace("i32", "bool");
        let words = item.replace("f32", "u32");
        let is_nan = |of: &str| format!("((bitcast<{words}>({of}) & {words}(0x7fffffffu)) > {words}(0x7f800000u))");
        // Tests of bits, because drivers may assume that there is no NaN.
        let over_nan =
            if self.is_integer() { String::new() } else { format!(" | {} | {}", is_nan("v"), is_nan("best")) };
        let mut take = format!(
            "        let wins = ((v > best){over_nan} | {flags}(is_first)) & {flags}(is_in);\n        is_first = is_first && !is_in;\n"
        );
        if self.has_indices() {
            let _ = writeln!(
                take,
                "        let index = i32(seen_d * p.index_d + seen_h * p.index_h + seen_w * p.index_w);
        best_at = select(best_at, {index}(index), wins);"
            );
        }
        take += "        best = select(best, v, wins);";
        [start, take]
    }

    fn mean(item: &str, counts_padding: bool) -> [String; 2] {
        let start = format!("    var sum = {item}();\n    var number = 0u;");
        // Tests of signed numbers, because positions before the start are negative.
        let counted = if counts_padding {
            "i32(seen_d) < i32(p.end_d) && i32(seen_h) < i32(p.end_h) && i32(seen_w) < i32(p.end_w)"
        } else {
            "is_in"
        };
        let take = format!("        taken += select(0u, 1u, {counted});\n        sum += select({item}(), v, is_in);");
        [start.replace("number", "taken"), take]
    }

    fn stores(&self, item: &str, index: &str) -> String {
        let mut store = String::new();
        let made = if matches!(self.fold, PoolFold::Max { .. }) { "best" } else { "mean" };
        if made == "mean" {
            store += "    let mean = sum / f32(taken);\n";
        }
        let finished = if self.is_integer() {
            made.to_owned()
        } else if self.is_wide() {
            let parts = PARTS
                .iter()
                .enumerate()
                .map(|(part, name)| format!("finish({made}.{name}, place, c * 4u + {part}u, number * 4u + {part}u)"));
            parts.collect::<Vec<_>>().join(", ")
        } else {
            format!("finish({made}, place, c, number)")
        };
        let _ = writeln!(store, "    out[number] = {item}({finished});");
        if self.has_indices() {
            let channels = if self.is_wide() { "vec4<u32>(c * 4u) + vec4<u32>(0u, 1u, 2u, 3u)" } else { "c" };
            let _ = writeln!(
                store,
                "    let channels = image * p.channels + {channels};
    indices[number] = best_at + {index}(channels * p.positions);"
            );
        }
        store
    }
}
