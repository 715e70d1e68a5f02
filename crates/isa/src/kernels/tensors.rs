//! The kernels of tensors and networks, as a device is asked to compile them.
//!
//! Every case runs on wgpu's no-op device, which computes nothing and is not a software driver: kernels are those that
//! GPUs get. A case has as many kernels as its ops compile on a fresh device.

use anyhow::{Context as _, ensure};
use vramp::gpu::{Backend, Device};
use vramp::model::Model;
use vramp::model::onnx::Dim;
use vramp::tensor::network::{IndexOrder, NetworkBuilder, NetworkReduction, PadMode, Taps, ValueId, Window, WordKind};
use vramp::tensor::{Binary, Context, DType, ImageSpec, Reduction, Tensor, TensorError, Unary};

use super::{Kernel, Work};

type Outcome = Result<(), TensorError>;

/// An op with its sizes.
struct Case {
    name: &'static str,
    /// The work of the case's only kernel: what the kernel covers, and how many values it moves.
    work: Option<(Covered, u64)>,
    run: fn(&Context) -> Outcome,
}

const fn case(name: &'static str, run: fn(&Context) -> Outcome) -> Case {
    Case { name, work: None, run }
}

/// What a dispatch covers.
#[derive(Debug, Clone, Copy)]
enum Covered {
    /// Values, of which the shader says how many are in a workgroup.
    Values(u64),
    Workgroups(u64),
}

/// A case of one kernel, with the values of four bytes that it moves.
const fn counted(name: &'static str, covered: Covered, moved: u64, run: fn(&Context) -> Outcome) -> Case {
    Case { name, work: Some((covered, moved)), run }
}

const SIDE: usize = 1024;
const SQUARE: u64 = (SIDE * SIDE) as u64;

const CASES: &[Case] = &[
    counted("matmul-1024", Covered::Values(SQUARE), 3 * SQUARE, |c| {
        made(floats(c, &[SIDE, SIDE])?.matmul(&floats(c, &[SIDE, SIDE])?))
    }),
    counted("matmul-512", Covered::Values(SQUARE / 4), 3 * SQUARE / 4, |c| {
        made(floats(c, &[512, 512])?.matmul(&floats(c, &[512, 512])?))
    }),
    case("matmul-transposed", |c| made(floats(c, &[256, 256])?.matmul_as(&floats(c, &[256, 256])?, false, true))),
    case("matmul-row", |c| made(floats(c, &[1, SIDE])?.matmul(&floats(c, &[SIDE, SIDE])?))),
    case("matmul-column", |c| made(floats(c, &[SIDE, SIDE])?.matmul(&floats(c, &[SIDE, 1])?))),
    case("matmul-f16", |c| {
        let a = floats(c, &[256, 256])?.cast(DType::F16)?;
        made(a.matmul(&a))
    }),
    case("matmul-i8", |c| {
        let a = c.tensor(&[1_i8; 256 * 256], &[256, 256])?;
        let scale = c.tensor(&[0.5_f32], &[1])?;
        made(a.matmul_scaled(&scale, &a, &scale, (false, true)))
    }),
    case("matmul-tuned", |c| c.tune().map(drop)),
    counted("add", Covered::Values(SQUARE), 3 * SQUARE, |c| {
        made(floats(c, &[SIDE, SIDE])?.add(&floats(c, &[SIDE, SIDE])?))
    }),
    counted("elementwise8", Covered::Values(SQUARE), 2 * SQUARE, |c| {
        let x = floats(c, &[SIDE, SIDE])?.lazy();
        made(x.mul(1.2).add(0.1).relu().sub(0.3).tanh().mul(0.5).sigmoid().square().run())
    }),
    case("broadcast", |c| made(floats(c, &[SIDE, SIDE])?.add(&floats(c, &[SIDE, 1])?))),
    case("bytes", |c| made(c.tensor(&[1_u8; 4096], &[4096])?.cast(DType::F32)?.mul(0.5)?.cast(DType::U8))),
    // A workgroup for each row.
    counted("softmax-1024", Covered::Workgroups(SIDE as u64), 2 * SQUARE, |c| {
        made(floats(c, &[SIDE, SIDE])?.softmax(-1))
    }),
    case("softmax-short", |c| made(floats(c, &[4096, 16])?.softmax(-1))),
    case("softmax-across", |c| made(floats(c, &[64, 256])?.softmax(0))),
    case("log-softmax", |c| made(floats(c, &[SIDE, SIDE])?.log_softmax(-1))),
    case("layer-norm", |c| {
        let gamma = floats(c, &[SIDE])?;
        made(floats(c, &[SIDE, SIDE])?.layer_norm(Some((&gamma).into()), Some((&gamma).into()), 1e-5))
    }),
    case("sum-rows", |c| made(floats(c, &[SIDE, SIDE])?.sum(-1))),
    case("sum-columns", |c| made(floats(c, &[SIDE, SIDE])?.sum(0))),
    case("sum-all", |c| made(floats(c, &[SIDE, SIDE])?.reduce_all(Reduction::Sum))),
    case("mean-of-squares", |c| made(floats(c, &[1 << 18])?.mean_of_squares(0))),
    case("argmax", |c| made(floats(c, &[64, 1000])?.argmax(-1))),
    // An invocation for eight values, 64 in a workgroup.
    counted("transpose", Covered::Workgroups(SQUARE / 512), 2 * SQUARE, |c| {
        made(floats(c, &[SIDE, SIDE])?.transpose())
    }),
    case("permute", |c| made(floats(c, &[8, 16, 32, 4])?.permute(&[0, 3, 1, 2]))),
    case("concat", |c| {
        let x = floats(c, &[64, 64])?;
        made(Tensor::concat(&[&x, &x], 1))
    }),
    case("gather", |c| made(floats(c, &[1000, 64])?.gather(&c.tensor(&[1_u32; 32], &[32])?, 0))),
    case("quantize", |c| floats(c, &[256, 256])?.quantize(Some(0)).map(drop)),
    case("image-to-tensor", |c| {
        let frame = c.tensor(&[0_u8; 64 * 48 * 4], &[48, 64, 4])?;
        made(frame.image_to_tensor(&ImageSpec { size: Some((224, 224)), ..ImageSpec::default() }))
    }),
    case("tensor-to-image", |c| made(floats(c, &[1, 3, 48, 64])?.tensor_to_image(&ImageSpec::default()))),
    case("conv-3x3", |c| network(c, &[1, 64, 56, 56], |b, x| conv(b, x, 64, 3, 1))),
    case("conv-1x1", |c| network(c, &[1, 256, 28, 28], |b, x| conv(b, x, 256, 1, 1))),
    case("conv-first", |c| network(c, &[1, 3, 224, 224], |b, x| conv(b, x, 32, 3, 1))),
    case("conv-depthwise", |c| network(c, &[1, 128, 56, 56], |b, x| conv(b, x, 128, 3, 128))),
    case("conv-grouped", |c| network(c, &[1, 64, 28, 28], |b, x| conv(b, x, 64, 3, 4))),
    case("conv-transposed", |c| {
        network(c, &[1, 32, 28, 28], |b, x| {
            let weights = b.floats(vec![0.5; 32 * 16 * 16], &[32, 16, 4, 4])?;
            let window = Window { output: [1, 56, 56], stride: [1, 2, 2], ..window([28, 28], 4, 1) };
            b.transposed_convolution(x, weights, None, window, 1)
        })
    }),
    case("pool-max", |c| network(c, &[1, 32, 56, 56], |b, x| Ok(b.max_pool(x, halving(), None)?.0))),
    case("pool-max-where", |c| {
        network(c, &[1, 32, 56, 56], |b, x| Ok(b.max_pool(x, halving(), Some(IndexOrder::RowMajor))?.0))
    }),
    case("pool-average", |c| network(c, &[1, 32, 56, 56], |b, x| b.average_pool(x, halving(), false))),
    case("pool-global", |c| network(c, &[1, 256, 7, 7], |b, x| b.reduced(x, &[2, 3], true, NetworkReduction::Mean))),
    case("network-product", |c| {
        network(c, &[1, 256], |b, x| {
            let weights = b.floats(vec![0.5; 256 * 1000], &[256, 1000])?;
            b.product(x, weights)
        })
    }),
    case("network-map", |c| {
        network(c, &[1, 64, 28, 28], |b, x| {
            let half = b.floats(vec![0.5], &[])?;
            let scaled = b.binary(Binary::Mul, x, half)?;
            let flat = b.unary(Unary::Sigmoid, scaled)?;
            b.binary(Binary::Mul, flat, x)
        })
    }),
    case("network-softmax", |c| network(c, &[64, 1000], |b, x| b.softmax(x, 1))),
    case("network-layer-norm", |c| {
        network(c, &[64, 256], |b, x| {
            let scale = b.floats(vec![0.5; 256], &[256])?;
            Ok(b.layer_norm(x, 1, scale, Some(scale), 1e-5)?[0])
        })
    }),
    case("network-resample", |c| {
        network(c, &[1, 16, 28, 28], |b, x| {
            let taps = Taps {
                positions: (0..56).flat_map(|at| [at / 2, (at / 2 + 1).min(27)]).collect(),
                weights: vec![0.5; 112],
                per: 2,
                outside: None,
            };
            b.resampled_two(x, [(2, &taps), (3, &taps)])
        })
    }),
    case("network-concat", |c| network(c, &[1, 16, 28, 28], |b, x| b.concat(&[x, x], 1))),
    case("network-pad", |c| {
        network(c, &[1, 16, 28, 28], |b, x| b.padded(x, &[0, 0, 1, 1], &[0, 0, 1, 1], PadMode::Reflect))
    }),
    case("network-top-k", |c| network(c, &[4, 1000], |b, x| Ok(b.top_k(x, 1, 5, true)?.0))),
    case("network-arg", |c| network(c, &[4, 1000], |b, x| b.arg(x, 1, false, true, false))),
    case("network-lrn", |c| network(c, &[1, 32, 14, 14], |b, x| b.lrn(x, 5, 1e-4, 0.75, 1.0))),
    case("network-suppress", |c| {
        network(c, &[1, 1, 100], |b, scores| {
            let boxes = b.input(WordKind::F32, &[1, 100, 4])?;
            Ok(b.non_max_suppression(boxes, scores, 10, 0.5, Some(0.3), false)?.0)
        })
    }),
];

/// The kernels of all cases and of the models in the repository.
pub(crate) fn tensors() -> anyhow::Result<Vec<Kernel>> {
    let mut kernels = Vec::new();
    for Case { name, work, run } in CASES {
        let made = compiled(name, |context| Ok(run(context)?))?;
        let is_one = made.len() == 1;
        kernels.extend(made.into_iter().map(|kernel| {
            let work = work.filter(|_| is_one).map(|(covered, moved)| {
                let workgroups = match covered {
                    Covered::Values(values) => values.div_ceil(u64::from(kernel.shader.per_workgroup)),
                    Covered::Workgroups(workgroups) => workgroups,
                };
                Work { workgroups, bytes: 4 * moved }
            });
            Kernel { work, ..kernel }
        }));
    }
    for (name, bytes) in [("selfie", vramp::model::shipped::SELFIE), ("blazeface", vramp::model::shipped::BLAZEFACE)] {
        kernels.extend(compiled(name, |context| {
            let model = Model::from_bytes(bytes)?;
            let lengths: Vec<usize> = model.inputs()[0]
                .dims
                .iter()
                .map(|dim| match dim {
                    Dim::Fixed(length) => *length,
                    Dim::Named(_) | Dim::Unknown => 1,
                })
                .collect();
            let input = floats(context, &lengths)?;
            model.prepare(context, &[input])?;
            Ok(())
        })?);
    }
    Ok(kernels)
}

/// The kernels that a device compiles for these ops.
fn compiled(name: &str, run: impl FnOnce(&Context) -> anyhow::Result<()>) -> anyhow::Result<Vec<Kernel>> {
    let device = Device::choose().backend(Backend::Noop).open()?;
    let context = Context::on(&device)?;
    run(&context).with_context(|| format!("the kernels of {name}"))?;
    context.finish()?;
    let shaders = device.shaders();
    ensure!(!shaders.is_empty(), "{name} compiled no kernel");
    let passes = shaders.len();
    let named = shaders.into_iter().enumerate().map(|(pass, shader)| {
        let name = if passes == 1 { name.to_owned() } else { format!("{name}/{}", pass + 1) };
        Kernel::new(name, shader, None)
    });
    Ok(named.collect())
}

fn made(tensor: Result<Tensor, TensorError>) -> Outcome {
    tensor?.context().finish()
}

/// A tensor of f32 on the device. Its values do not matter, since nothing is computed.
fn floats(context: &Context, lengths: &[usize]) -> Result<Tensor, TensorError> {
    let tensor = context.tensor(&vec![0.0_f32; lengths.iter().product()], lengths)?;
    tensor.settle()?;
    Ok(tensor)
}

/// Builds a network from one input of these lengths, which compiles its kernels.
fn network(
    context: &Context,
    lengths: &[usize],
    steps: impl FnOnce(&mut NetworkBuilder, ValueId) -> Result<ValueId, TensorError>,
) -> Outcome {
    let mut builder = NetworkBuilder::new(context);
    let x = builder.input(WordKind::F32, lengths)?;
    let result = steps(&mut builder, x)?;
    builder.build(&[result]).map(drop)
}

/// A square window of `side` taps, with a border that keeps the size.
fn window([height, width]: [usize; 2], side: usize, depth: usize) -> Window {
    let pad = (side - 1) / 2;
    Window {
        input: [depth, height, width],
        output: [depth, height, width],
        kernel: [1, side, side],
        stride: [1; 3],
        dilation: [1; 3],
        pad: [0, pad, pad],
    }
}

fn halving() -> Window {
    Window {
        input: [1, 56, 56],
        output: [1, 28, 28],
        kernel: [1, 2, 2],
        stride: [1, 2, 2],
        dilation: [1; 3],
        pad: [0; 3],
    }
}

fn conv(
    b: &mut NetworkBuilder,
    x: ValueId,
    outputs: usize,
    side: usize,
    groups: usize,
) -> Result<ValueId, TensorError> {
    let &[_, inputs, height, width] = b.lengths(x) else { unreachable!("the cases have four axes") };
    let count = outputs * inputs / groups * side * side;
    let weights = b.floats(vec![0.5; count], &[outputs, inputs / groups, side, side])?;
    let bias = b.floats(vec![0.5; outputs], &[outputs])?;
    let made = b.convolution(x, weights, Some(bias), window([height, width], side, 1), groups)?;
    b.unary(Unary::Relu, made)
}
