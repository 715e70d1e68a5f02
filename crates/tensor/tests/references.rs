//! Every op on both sides, fused with a neighbour or alone, against results that `NumPy` computed in float64.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::cast_possible_wrap, reason = "numbers are small")]
#![allow(clippy::float_cmp, reason = "values that only move stay the same bits")]

use std::collections::BTreeSet;

use crate::fixtures::{Case, Fixture, cases};
use crate::sides::both;
use vramp_tensor::{
    ChannelLayout, Context, DType, Expr, ImageSpec, Operand, Reduction, ResizeMode, Tensor, TensorError, Unary,
};

fn dtype(name: &str) -> DType {
    DType::ALL.into_iter().find(|dtype| dtype.name() == name).unwrap_or_else(|| panic!("no type is named {name}"))
}

/// A view into a larger tensor, so that no op can rely on its values starting at the beginning of a memory.
fn tensor(context: &Context, of: &Fixture) -> Tensor {
    let dtype = dtype(&of.dtype);
    let (before, count) = (3, of.shape.iter().product());
    let bytes: Vec<u8> = std::iter::repeat_n(7, before * dtype.bytes()).chain(of.bytes.iter().copied()).collect();
    let whole = context.tensor_from_bytes(&bytes, &[before + count], dtype).unwrap();
    whole.view(before, count).unwrap().reshape(&of.shape).unwrap()
}

fn picture(case: &Case) -> ImageSpec {
    let four = |name: &str, fill: f32| {
        let given: Vec<f32> = case.numbers(name).into_iter().map(|number| number as f32).collect();
        std::array::from_fn(|at| given.get(at).copied().unwrap_or(fill))
    };
    let word = |name: &str| case.settings.get(name).map_or("", String::as_str);
    let length = |name: &str| case.numbers(name).first().map(|number| *number as usize);
    ImageSpec {
        size: length("height").zip(length("width")),
        channels: word("channels").to_owned(),
        mean: four("mean", 0.0),
        std: four("std", 1.0),
        layout: match word("layout").to_lowercase().as_str() {
            "nchw" => ChannelLayout::Nchw,
            "nhwc" => ChannelLayout::Nhwc,
            other => panic!("{case}: no layout is named {other}"),
        },
        resize: if word("resize") == "nearest" { ResizeMode::Nearest } else { ResizeMode::Bilinear },
    }
}

/// The expressions for the op of a case.
fn exprs(case: &Case, inputs: &[Tensor]) -> Vec<Expr> {
    let input = |at: usize| inputs[at].lazy();
    let operand = |at: usize| inputs.get(at).map(Operand::from);
    let flag = |name: &str| case.settings.get(name).is_some_and(|word| word == "1" || word == "true");
    let axis = case.numbers("axis").first().map(|axis| *axis as isize);
    let along = || axis.unwrap_or_else(|| panic!("{case}: an axis is expected"));
    let one = match case.op.as_str() {
        "add" => input(0).add(&inputs[1]),
        "sub" => input(0).sub(&inputs[1]),
        "mul" => input(0).mul(&inputs[1]),
        "div" => input(0).div(&inputs[1]),
        "minimum" => input(0).minimum(&inputs[1]),
        "maximum" => input(0).maximum(&inputs[1]),
        "pow" => input(0).pow(&inputs[1]),
        "clamp" => input(0).clamp(case.numbers("min")[0] as f32, case.numbers("max")[0] as f32),
        "cast" => input(0).cast(dtype(&case.settings["to"])),
        "softmax" => input(0).softmax(along()),
        "log_softmax" => input(0).log_softmax(along()),
        "layer_norm" => input(0).layer_norm(operand(1), operand(2), case.numbers("eps")[0] as f32),
        "matmul" => input(0).matmul_as(&inputs[1], flag("transpose_a"), flag("transpose_b")),
        "matmul_i8" => {
            let transposes = (flag("transpose_a"), flag("transpose_b"));
            input(0).matmul_scaled(&input(2), &input(1), &input(3), transposes)
        }
        "transpose" => {
            let axes: Vec<usize> = case.numbers("axes").into_iter().map(|axis| axis as usize).collect();
            input(0).permute(&axes)
        }
        "slice" => {
            let parts = case.numbers("start").into_iter().zip(case.numbers("end")).enumerate();
            parts.fold(input(0), |expr, (axis, (start, end))| expr.slice(axis as isize, start as usize, end as usize))
        }
        "concat" => Expr::concat(&inputs.iter().map(Tensor::lazy).collect::<Vec<_>>(), along()),
        "gather" => input(0).gather(&inputs[1], along()),
        "quantize" => {
            let (values, scale) = input(0).quantize(axis);
            return vec![values, scale];
        }
        "dequantize" => {
            let scale = match axis {
                None => input(1),
                // One scale per index along the axis.
                Some(axis) => {
                    let rank = case.inputs[0].shape.len();
                    let mut lengths = vec![1; rank];
                    let at = if axis < 0 { axis + rank as isize } else { axis } as usize;
                    lengths[at] = case.inputs[0].shape[at];
                    input(1).reshape(&lengths)
                }
            };
            input(0).dequantize(scale)
        }
        "image_to_tensor" => input(0).image_to_tensor(&picture(case)),
        "tensor_to_image" => input(0).tensor_to_image(&picture(case)),
        name => match (reduction(name), Unary::named(name)) {
            (Some(how), _) => input(0).reduce(how, along(), flag("keep")),
            (_, Some(op)) => input(0).unary(op),
            _ => panic!("{case}: this test does not know the op"),
        },
    };
    vec![one]
}

fn reduction(name: &str) -> Option<Reduction> {
    use Reduction::{ArgMax, ArgMin, Max, Mean, MeanOfSquares, Min, Sum};
    [Sum, Mean, Max, Min, MeanOfSquares, ArgMax, ArgMin].into_iter().find(|how| how.name() == name)
}

/// Values of any type, as f64.
fn values(tensor: &Tensor) -> Result<Vec<f64>, TensorError> {
    let bytes = tensor.read_bytes()?;
    let fixture = Fixture { shape: tensor.shape().lengths().to_vec(), dtype: tensor.dtype().name().to_owned(), bytes };
    Ok(fixture.values())
}

/// An op, its formula, and its relative tolerance.
type Formula = (Unary, fn(f64) -> f64, f64);

/// Ops on one value for which `NumPy` has no case.
const FORMULAS: &[Formula] = &[
    (Unary::Reciprocal, |x| 1.0 / x, 0.0),
    (Unary::Floor, f64::floor, 0.0),
    (Unary::Round, f64::round_ties_even, 0.0),
    (Unary::Erf, error_function, 4e-7),
];

/// The error function, by its series where terms stay small, and by a continued fraction elsewhere.
fn error_function(x: f64) -> f64 {
    let size = x.abs();
    let scale = (-size * size).exp() / std::f64::consts::PI.sqrt();
    if size > 3.0 {
        let fraction = (1..80).rev().fold(size, |rest, n| size + 0.5 * f64::from(n) / rest);
        return (1.0 - scale / fraction).copysign(x);
    }
    // Each term is the one before times 2 x^2 / (2 n + 1); all terms are positive, so that no digits cancel.
    let (mut term, mut sum) = (size, 0.0);
    for n in 1..120 {
        sum += term;
        term *= 2.0 * size * size / f64::from(2 * n + 1);
    }
    (2.0 * scale * sum).copysign(x)
}

#[test]
fn every_named_op_is_its_formula_on_both_sides() {
    let with_cases: BTreeSet<String> = cases().into_iter().map(|case| case.op).collect();
    for op in Unary::NAMED {
        let has_formula = FORMULAS.iter().any(|(one, ..)| *one == op);
        assert!(has_formula || with_cases.contains(op.name()), "{op} has neither a formula here nor a case of NumPy's");
    }
    let given: Vec<f32> = (1..2000_i16).flat_map(|at| [f32::from(at) * 0.01, f32::from(at) * -0.5]).collect();
    for (side, context) in both() {
        let x = context.tensor(&given, &[given.len()]).unwrap();
        for (op, formula, share) in FORMULAS {
            let made = x.unary(*op).unwrap().read::<f32>().unwrap();
            for (x, made) in given.iter().zip(made) {
                let exact = formula(f64::from(*x));
                let off = (f64::from(made) - f64::from(exact as f32)).abs();
                assert!(off <= share * exact.abs(), "{op} of {x} on the {side}: {made}, not {exact}");
            }
        }
    }
}

#[test]
fn every_op_gives_what_numpy_gives() {
    let cases = cases();
    assert!(cases.len() > 700, "{} cases were read", cases.len());
    let mut ops = BTreeSet::new();
    for (side, context) in both() {
        for case in &cases {
            let inputs: Vec<Tensor> = case.inputs.iter().map(|input| tensor(&context, input)).collect();
            let results = exprs(case, &inputs).into_iter().map(|expr| {
                let made = expr.run().unwrap_or_else(|error| panic!("{side} {case}: {error}"));
                values(&made).unwrap()
            });
            let results: Vec<Vec<f64>> = results.collect();
            let wrong = std::panic::catch_unwind(|| case.compare(&results)).is_err();
            assert!(!wrong, "on the {side}");
            ops.insert(case.op.clone());
        }
    }
    assert!(ops.len() >= 40, "{ops:?}");
}
