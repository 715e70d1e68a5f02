//! Every kind of step over views of larger memories, with an elementwise step after it: a step must read and write as many
//! words as its values have, whatever else lies in the memories of its inputs and readers.
//!
//! The results of each step over whole values, which the step's own tests compare with a computation by places, are what
//! all other forms must give.

use crate::network::{IndexOrder, NetworkBuilder, NetworkReduction, PadMode, Taps, ValueId, Window, WordKind};
use crate::ops::context::Context;
use crate::ops::error::TensorError;
use crate::ops::program::{Binary, Unary};

use super::layouts::{Words, contexts};

type Made = Result<Vec<ValueId>, TensorError>;

/// A step: its inputs, and how it is added.
struct Kind {
    name: &'static str,
    inputs: Vec<Words>,
    add: fn(&mut NetworkBuilder, &[ValueId]) -> Made,
}

fn window(kernel: [usize; 2], pad: usize, input: [usize; 2], output: [usize; 2]) -> Window {
    Window {
        input: [1, input[0], input[1]],
        output: [1, output[0], output[1]],
        kernel: [1, kernel[0], kernel[1]],
        stride: [1; 3],
        dilation: [1; 3],
        pad: [0, pad, pad],
    }
}

fn halves() -> Taps {
    Taps { positions: vec![0, 1, 1, 2], weights: vec![0.5, 0.5, 0.25, 0.75], per: 2, outside: None }
}

fn kinds() -> Vec<Kind> {
    let noise = |lengths: &[usize]| Words::noise(lengths, lengths.len() as u32);
    let kind = |name, lengths: &[&[usize]], add| Kind {
        name,
        inputs: lengths.iter().map(|lengths| noise(lengths)).collect(),
        add,
    };
    let mut kinds = vec![
        kind("map", &[&[2, 6]], |net, x| Ok(vec![net.unary(Unary::Tanh, x[0])?])),
        kind("copy", &[&[2, 6]], |net, x| {
            let turned = net.permuted(x[0], &[1, 0]);
            Ok(vec![net.reshaped(turned, &[3, 4])?])
        }),
        kind("repeated", &[&[2, 1, 3]], |net, x| {
            let spread = net.repeated(x[0], &[2, 4, 3])?;
            Ok(vec![net.softmax(spread, 1)?])
        }),
        kind("sum", &[&[2, 6]], |net, x| Ok(vec![net.reduced(x[0], &[1], true, NetworkReduction::Sum)?])),
        kind("max", &[&[2, 3, 4]], |net, x| Ok(vec![net.reduced(x[0], &[1], false, NetworkReduction::Max)?])),
        kind("mean", &[&[2, 3, 4]], |net, x| Ok(vec![net.reduced(x[0], &[2], false, NetworkReduction::Mean)?])),
        kind("arg", &[&[2, 6]], |net, x| Ok(vec![net.arg(x[0], 1, true, true, false)?])),
        kind("top_k", &[&[2, 6]], |net, x| {
            let (values, indices) = net.top_k(x[0], 1, 3, true)?;
            Ok(vec![values, indices])
        }),
        kind("softmax", &[&[2, 6]], |net, x| Ok(vec![net.softmax(x[0], 1)?])),
        kind("layer_norm", &[&[2, 6], &[6], &[6]], |net, x| {
            Ok(vec![net.layer_norm(x[0], 1, x[1], Some(x[2]), 1e-5)?[0]])
        }),
        kind("instance_norm", &[&[2, 3, 4], &[3], &[3]], |net, x| Ok(vec![net.instance_norm(x[0], x[1], x[2], 1e-5)?])),
        kind("lrn", &[&[2, 3, 2, 2]], |net, x| Ok(vec![net.lrn(x[0], 3, 0.1, 0.75, 1.0)?])),
        kind("pad", &[&[2, 3]], |net, x| Ok(vec![net.padded(x[0], &[1, 0], &[0, 2], PadMode::Constant(0))?])),
        kind("reflect", &[&[2, 3]], |net, x| Ok(vec![net.padded(x[0], &[0, 1], &[1, 0], PadMode::Reflect)?])),
        kind("resampled", &[&[2, 3]], |net, x| Ok(vec![net.resampled(x[0], 1, &halves())?])),
        kind("resampled_two", &[&[1, 2, 3, 3]], |net, x| {
            Ok(vec![net.resampled_two(x[0], [(2, &halves()), (3, &halves())])?])
        }),
        kind("reversed", &[&[2, 3]], |net, x| Ok(vec![net.reversed(x[0], 1)?])),
        kind("concat", &[&[2, 3], &[2, 2]], |net, x| Ok(vec![net.concat(x, 1)?])),
        kind("stacked", &[&[2, 3], &[1, 3]], |net, x| Ok(vec![net.concat(x, 0)?])),
        kind("product", &[&[4, 5], &[5, 6]], |net, x| Ok(vec![net.product(x[0], x[1])?])),
        kind("products", &[&[2, 4, 5], &[2, 5, 6]], |net, x| Ok(vec![net.product(x[0], x[1])?])),
        kind("long product", &[&[64, 300], &[300, 40]], |net, x| Ok(vec![net.product(x[0], x[1])?])),
        kind("max_pool", &[&[2, 3, 4, 4]], |net, x| {
            Ok(vec![net.max_pool(x[0], window([2, 2], 0, [4, 4], [3, 3]), None)?.0])
        }),
        kind("max_pool with indices", &[&[2, 3, 4, 4]], |net, x| {
            let window = window([2, 2], 0, [4, 4], [3, 3]);
            let (most, places) = net.max_pool(x[0], window, Some(IndexOrder::RowMajor))?;
            Ok([Some(most), places].into_iter().flatten().collect())
        }),
        kind("average_pool", &[&[2, 3, 4, 4]], |net, x| {
            Ok(vec![net.average_pool(x[0], window([2, 2], 0, [4, 4], [3, 3]), false)?])
        }),
        kind("global average", &[&[2, 3, 4, 4]], |net, x| {
            Ok(vec![net.average_pool(x[0], window([4, 4], 0, [4, 4], [1, 1]), false)?])
        }),
        kind("convolution", &[&[1, 3, 4, 5], &[6, 3, 3, 3], &[6]], |net, x| {
            Ok(vec![net.convolution(x[0], x[1], Some(x[2]), window([3, 3], 1, [4, 5], [4, 5]), 1)?])
        }),
        kind("convolution of points", &[&[2, 3, 4, 5], &[6, 3, 1, 1]], |net, x| {
            Ok(vec![net.convolution(x[0], x[1], None, window([1, 1], 0, [4, 5], [4, 5]), 1)?])
        }),
        kind("depthwise", &[&[1, 4, 4, 5], &[4, 1, 3, 3], &[4]], |net, x| {
            Ok(vec![net.convolution(x[0], x[1], Some(x[2]), window([3, 3], 1, [4, 5], [4, 5]), 4)?])
        }),
        kind("transposed", &[&[1, 3, 4, 4], &[3, 6, 3, 3], &[6]], |net, x| {
            let window = Window { stride: [1, 2, 2], ..window([3, 3], 0, [4, 4], [9, 9]) };
            Ok(vec![net.transposed_convolution(x[0], x[1], Some(x[2]), window, 1)?])
        }),
        kind("tiled transposed", &[&[1, 3, 4, 4], &[3, 2, 2, 2], &[2]], |net, x| {
            let window = Window { stride: [1, 2, 2], ..window([2, 2], 0, [4, 4], [8, 8]) };
            Ok(vec![net.transposed_convolution(x[0], x[1], Some(x[2]), window, 1)?])
        }),
        kind("boxes", &[&[1, 6, 4], &[1, 1, 6]], |net, x| {
            let (rows, count) = net.non_max_suppression(x[0], x[1], 3, 0.5, None, false)?;
            Ok(vec![rows, count])
        }),
    ];
    let with_indices =
        |name, lengths: &[usize], indices: Words, add| Kind { name, inputs: vec![noise(lengths), indices], add };
    kinds.extend([
        with_indices("gather", &[3, 4], Words::integers(&[2, 0, -1], &[3]), |net, x| {
            Ok(vec![net.gather(x[0], x[1], 0)?])
        }),
        with_indices("gather_elements", &[3, 4], Words::integers(&[2, 0, 1, 1], &[1, 4]), |net, x| {
            Ok(vec![net.gather_elements(x[0], x[1], 0)?])
        }),
        with_indices("gather_nd", &[3, 4], Words::integers(&[2, 0, 1, 3], &[2, 2]), |net, x| {
            Ok(vec![net.gather_nd(x[0], x[1], 0)?])
        }),
    ]);
    kinds
}

/// How inputs lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lying {
    Whole,
    /// The first rows of a larger input.
    Prefix,
    /// The first rows of larger known words, for all inputs but the first.
    KnownPrefix,
}

/// What reads a result.
#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    Relu,
    /// The sum with an input of the same lengths.
    Sum,
    /// Relu of all rows but the last.
    FirstRows,
    /// Relu of the first row, without its axis.
    FirstRow,
}

const AFTER: [After; 5] = [After::Nothing, After::Relu, After::Sum, After::FirstRows, After::FirstRow];

impl After {
    fn add(
        self,
        net: &mut NetworkBuilder,
        x: ValueId,
        side: &mut dyn FnMut(&mut NetworkBuilder) -> ValueId,
    ) -> ValueId {
        let lengths = net.lengths(x).to_vec();
        let rows = lengths.first().copied().unwrap_or(1);
        match self {
            After::Nothing => x,
            After::Relu => net.unary(Unary::Relu, x).unwrap(),
            After::Sum => {
                let side = side(net);
                net.binary(Binary::Add, x, side).unwrap()
            }
            After::FirstRows => {
                let first = net.sliced(x, 0, 0, rows - 1, 1);
                net.unary(Unary::Relu, first).unwrap()
            }
            After::FirstRow => {
                let first = net.sliced(x, 0, 0, 1, 1);
                let first = net.reshaped(first, &lengths[1..]).unwrap();
                net.unary(Unary::Relu, first).unwrap()
            }
        }
    }

    /// The same, computed from the words of the step over whole values.
    fn of(self, whole: &[f64], rows: usize) -> Vec<f64> {
        let each = whole.len() / rows.max(1);
        let relu = |values: &[f64]| values.iter().map(|value| value.max(0.0)).collect();
        match self {
            After::Nothing => whole.to_vec(),
            After::Relu => relu(whole),
            After::Sum => whole.iter().enumerate().map(|(at, value)| value + (at % 7) as f64).collect(),
            After::FirstRows => relu(&whole[..each * (rows - 1)]),
            After::FirstRow => relu(&whole[..each]),
        }
    }
}

/// The lengths and values of each output of a step, for each reader.
fn run(context: &Context, kind: &Kind, lying: Lying, after: &[After]) -> Vec<Vec<(Vec<usize>, Vec<f64>)>> {
    let mut net = NetworkBuilder::new(context);
    let (mut values, mut tensors) = (Vec::new(), Vec::new());
    for (at, Words { kind, bits, lengths }) in kind.inputs.iter().enumerate() {
        let rows = lengths[0];
        let (mut bits, mut larger) = (bits.clone(), lengths.clone());
        if lying != Lying::Whole {
            // Other words that must not be read: indices out of range, and large numbers.
            bits.extend(vec![1e9_f32.to_bits(); 2 * bits.len() / rows]);
            larger[0] += 2;
        }
        let value = if lying == Lying::KnownPrefix && at > 0 {
            match kind {
                WordKind::F32 => net.floats(bytemuck::cast_vec(bits), &larger).unwrap(),
                WordKind::I32 => net.integers(bytemuck::cast_vec(bits), &larger).unwrap(),
            }
        } else {
            let bytes = bytemuck::cast_slice(&bits);
            tensors.push(context.tensor_from_bytes(bytes, &[bits.len()], kind.dtype()).unwrap());
            net.input(*kind, &larger).unwrap()
        };
        values.push(net.sliced(value, 0, 0, rows, 1));
    }
    let mut outputs = Vec::new();
    let mut each = 0;
    for after in after {
        let made = (kind.add)(&mut net, &values).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        each = made.len();
        for made in made {
            let (kind, lengths) = (net.kind(made), net.lengths(made).to_vec());
            let count: usize = lengths.iter().product();
            let mut side = |net: &mut NetworkBuilder| {
                let words: Vec<u32> = (0..count)
                    .map(|at| if kind == WordKind::F32 { ((at % 7) as f32).to_bits() } else { (at % 7) as u32 })
                    .collect();
                tensors.push(context.tensor_from_bytes(bytemuck::cast_slice(&words), &[count], kind.dtype()).unwrap());
                net.input(kind, &lengths).unwrap()
            };
            outputs.push(after.add(&mut net, made, &mut side));
        }
    }
    let facts: Vec<_> = outputs.iter().map(|id| (net.kind(*id), net.lengths(*id).to_vec())).collect();
    let mut network = net.build(&outputs).unwrap();
    let made = network.run(&tensors).unwrap();
    let words = made.iter().zip(facts).map(|(tensor, (kind, lengths))| {
        let bytes = tensor.read_bytes().unwrap();
        let floats: Vec<f64> = match kind {
            WordKind::F32 => bytemuck::pod_collect_to_vec::<u8, f32>(&bytes).into_iter().map(f64::from).collect(),
            WordKind::I32 => bytemuck::pod_collect_to_vec::<u8, i32>(&bytes).into_iter().map(f64::from).collect(),
        };
        (lengths, floats)
    });
    let words: Vec<_> = words.collect();
    words.chunks(each).map(<[_]>::to_vec).collect()
}

#[test]
fn every_step_gives_the_same_over_parts_of_memories_and_before_readers_of_parts() {
    let contexts = contexts();
    for kind in kinds() {
        let whole = run(&contexts[0], &kind, Lying::Whole, &[After::Nothing]).remove(0);
        for (side, context) in contexts.iter().enumerate() {
            for lying in [Lying::Whole, Lying::Prefix, Lying::KnownPrefix] {
                let after = run(context, &kind, lying, &AFTER);
                for (made, after) in after.iter().zip(AFTER) {
                    for (at, ((_, made), (lengths, whole))) in made.iter().zip(&whole).enumerate() {
                        let wanted = after.of(whole, lengths.first().copied().unwrap_or(1));
                        let what = format!("{} {at}, side {side}, {lying:?}, {after:?}", kind.name);
                        assert_eq!(made.len(), wanted.len(), "{what}");
                        let most = wanted.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                        let apart = made.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                        assert!(apart <= 3e-6 * most, "{what}: {made:?}, not {wanted:?}");
                    }
                }
            }
        }
    }
}
