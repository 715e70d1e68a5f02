//! The host's loops against what `NumPy` says.
//!
//! Owns one run of each loop per case of `tests/data/ops`.
//! Does not go through tensors: tests of the ops do, on both sides.

#[path = "../../tests/fixtures/mod.rs"]
mod fixtures;

use half::f16;

use self::fixtures::{Case, Fixture, cases};
use super::image::Normal;
use crate::image::{Layout, Resize};
use super::matmul::MatmulSize;
use super::matmul8::Scales;
use super::reduce::Reduction;
use super::strided::Strided;
use super::whole::{Whole, WholeReduction};
use super::{arg, gather, image, math, matmul, matmul8, norm, quant, reduce, softmax, strided, whole};
use crate::shape::{Around, Shape};

/// Runs the cases of these ops, and says how many there were.
fn check(ops: &[&str], run: impl Fn(&Case) -> Option<Vec<Vec<f64>>>) {
    let cases = cases();
    for op in ops {
        let ran = cases.iter().filter(|case| case.op == *op).filter_map(|case| Some((case, run(case)?)));
        assert!(ran.map(|(case, got)| case.compare(&got)).count() > 0, "no case of {op}");
    }
}

fn floats(fixture: &Fixture) -> Vec<f32> {
    fixture.each(f32::from_le_bytes)
}

fn wide<T: Copy + Into<f64>>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| (*value).into()).collect()
}

fn around(case: &Case) -> Around {
    Shape::new(&case.inputs[0].shape).unwrap().around(case.axis().expect("an axis"))
}

#[test]
fn functions_of_one_value() {
    type Function = fn(f32) -> f32;
    let functions: [(&str, Function); 6] = [
        ("exp", math::exp),
        ("log", math::log),
        ("tanh", math::tanh),
        ("sigmoid", math::sigmoid),
        ("silu", math::silu),
        ("gelu", math::gelu),
    ];
    for (name, function) in functions {
        check(&[name], |case| Some(vec![floats(&case.inputs[0]).iter().map(|x| f64::from(function(*x))).collect()]));
    }
}

#[test]
fn reductions_of_floats() {
    let ops = [
        ("sum", Reduction::Sum),
        ("mean", Reduction::Mean),
        ("max", Reduction::Max),
        ("min", Reduction::Min),
        ("mean_of_squares", Reduction::MeanOfSquares),
    ];
    for (name, how) in ops {
        check(&[name], |case| {
            let input = (case.inputs[0].dtype == "f32").then(|| floats(&case.inputs[0]))?;
            let around = around(case);
            let mut out = vec![0.0; around.outer * around.inner];
            reduce::reduce(&input.as_slice(), around, how, &mut out, 1);
            Some(vec![wide(&out)])
        });
    }
}

#[test]
fn reductions_of_whole_numbers() {
    fn run<T: Whole + Into<f64>>(case: &Case, how: WholeReduction, input: &[T]) -> Vec<Vec<f64>> {
        let around = around(case);
        let mut out = vec![T::NONE; around.outer * around.inner];
        whole::reduce_whole(input, around, how, &mut out, 1);
        vec![wide(&out)]
    }
    for (name, how) in [("sum", WholeReduction::Sum), ("max", WholeReduction::Max), ("min", WholeReduction::Min)] {
        check(&[name], |case| match case.inputs[0].dtype.as_str() {
            "i32" => Some(run(case, how, &case.inputs[0].each(i32::from_le_bytes))),
            "u32" => Some(run(case, how, &case.inputs[0].each(u32::from_le_bytes))),
            _ => None,
        });
    }
}

#[test]
fn positions_of_the_largest_and_the_smallest() {
    check(&["argmax", "argmin"], |case| {
        let (input, around) = (floats(&case.inputs[0]), around(case));
        let mut out = vec![0; around.outer * around.inner];
        let search = if case.op == "argmax" { arg::argmax } else { arg::argmin };
        search(&input.as_slice(), around, &mut out, 1);
        Some(vec![wide(&out)])
    });
}

#[test]
fn shares_and_norms() {
    check(&["softmax", "log_softmax"], |case| {
        let (input, around) = (floats(&case.inputs[0]), around(case));
        let mut out = vec![0.0; input.len()];
        let shares = if case.op == "softmax" { softmax::softmax } else { softmax::log_softmax };
        shares(&input.as_slice(), around, &mut out, 1);
        Some(vec![wide(&out)])
    });
    check(&["layer_norm"], |case| {
        let inputs: Vec<Vec<f32>> = case.inputs.iter().map(floats).collect();
        let length = *case.inputs[0].shape.last().unwrap();
        let mut out = vec![0.0; inputs[0].len()];
        let (gamma, beta) = (inputs.get(1).map(Vec::as_slice), inputs.get(2).map(Vec::as_slice));
        norm::layer_norm(&inputs[0].as_slice(), length, case.numbers("eps")[0] as f32, gamma, beta, &mut out, 1);
        Some(vec![wide(&out)])
    });
}

#[expect(clippy::many_single_char_names, reason = "the letters of a product of matrices")]
fn size(case: &Case) -> MatmulSize {
    let (a, b, out) = (&case.inputs[0].shape, &case.inputs[1].shape, &case.expected[0].shape);
    let last = |shape: &[usize]| (shape[shape.len() - 2], shape[shape.len() - 1]);
    let ((a_rows, a_columns), (_, b_columns), (m, n)) = (last(a), last(b), last(out));
    let turned = |name: &str| case.numbers(name) == [1.0];
    let strides = |columns: usize, turned: bool| if turned { (1, columns) } else { (columns, 1) };
    let k = if turned("transpose_a") { a_rows } else { a_columns };
    MatmulSize {
        batch: out[..out.len() - 2].iter().product(),
        m,
        n,
        k,
        a_batch_stride: if a.len() > 2 { m * k } else { 0 },
        b_batch_stride: if b.len() > 2 { k * n } else { 0 },
        a: strides(a_columns, turned("transpose_a")),
        b: strides(b_columns, turned("transpose_b")),
    }
}

#[test]
fn products() {
    check(&["matmul"], |case| {
        let mut out = vec![0.0; case.expected[0].shape.iter().product()];
        let (a, b) = (&case.inputs[0], &case.inputs[1]);
        if a.dtype == "f32" {
            matmul::matmul_f32(size(case), &floats(a), &floats(b), &mut out, 1);
        } else {
            matmul::matmul_f16(size(case), &a.each(f16::from_le_bytes), &b.each(f16::from_le_bytes), &mut out, 1);
        }
        Some(vec![wide(&out)])
    });
    check(&["matmul_i8"], |case| {
        let mut out = vec![0.0; case.expected[0].shape.iter().product()];
        let (a, b) = (case.inputs[0].each(i8::from_le_bytes), case.inputs[1].each(i8::from_le_bytes));
        let (one, two) = (floats(&case.inputs[2]), floats(&case.inputs[3]));
        matmul8::matmul_i8(size(case), &a, &b, Scales { a: one[0], b: &two }, &mut out, 1);
        Some(vec![wide(&out)])
    });
}

#[test]
fn quantised_values() {
    let channels = |case: &Case| match case.axis() {
        Some(axis) => Shape::new(&case.inputs[0].shape).unwrap().around(axis),
        None => Around { outer: 1, length: 1, inner: case.inputs[0].shape.iter().product() },
    };
    check(&["quantize"], |case| {
        let (input, channels) = (floats(&case.inputs[0]), channels(case));
        let (mut scales, mut out) = (vec![0.0; channels.length], vec![0; input.len()]);
        quant::scales(&input.as_slice(), channels, &mut scales);
        quant::quantize(&input.as_slice(), channels, &scales, &mut out, 1);
        Some(vec![wide(&out), wide(&scales)])
    });
    check(&["dequantize"], |case| {
        let (input, scales) = (case.inputs[0].each(i8::from_le_bytes), floats(&case.inputs[1]));
        let mut out = vec![0.0; input.len()];
        quant::dequantize(&input, channels(case), &scales, &mut out, 1);
        Some(vec![wide(&out)])
    });
}

#[test]
fn moved_values() {
    let bytes_of = |case: &Case| case.expected[0].bytes.len() / case.expected[0].shape.iter().product::<usize>().max(1);
    let made = |case: &Case, bytes: Vec<u8>| Some(vec![Fixture { bytes, ..case.expected[0].clone() }.values()]);
    check(&["gather"], |case| {
        let mut out = vec![0; case.expected[0].bytes.len()];
        let (input, indices) = (&case.inputs[0].bytes, &case.inputs[1]);
        if indices.dtype == "i32" {
            gather::gather(input, bytes_of(case), around(case), &indices.each(i32::from_le_bytes), &mut out).unwrap();
        } else {
            gather::gather(input, bytes_of(case), around(case), &indices.each(u32::from_le_bytes), &mut out).unwrap();
        }
        made(case, out)
    });
    check(&["transpose", "slice"], |case| {
        let own = Shape::new(&case.inputs[0].shape).unwrap().strides();
        let list = |name: &str| case.numbers(name).iter().map(|number| *number as usize).collect::<Vec<usize>>();
        let (axes, start) = (list("axes"), list("start"));
        let strides: Vec<usize> =
            if axes.is_empty() { own.to_vec() } else { axes.iter().map(|axis| own[*axis]).collect() };
        let offset = start.iter().zip(&own).map(|(start, stride)| start * stride).sum();
        let mut out = vec![0; case.expected[0].bytes.len()];
        let from = Strided { shape: &case.expected[0].shape, strides: &strides, offset };
        strided::copy_strided(&case.inputs[0].bytes, bytes_of(case), from, &mut out);
        made(case, out)
    });
}

#[test]
fn pictures() {
    let normal = |case: &Case, run: &mut dyn FnMut(&Normal<'_>)| {
        let channels: Vec<usize> = case.settings["channels"].chars().map(|name| "rgba".find(name).unwrap()).collect();
        let list = |name: &str| case.numbers(name).iter().map(|number| *number as f32).collect::<Vec<f32>>();
        let layout = if case.settings["layout"] == "nchw" { Layout::Nchw } else { Layout::Nhwc };
        run(&Normal { channels: &channels, mean: &list("mean"), std: &list("std"), layout });
    };
    check(&["image_to_tensor"], |case| {
        let [height, width, _] = case.inputs[0].shape[..] else { panic!("{case}: a picture has three axes") };
        let to = (case.numbers("height")[0] as usize, case.numbers("width")[0] as usize);
        let resize = if case.settings["resize"] == "nearest" { Resize::Nearest } else { Resize::Bilinear };
        let mut out = vec![0.0; case.expected[0].shape.iter().product()];
        normal(case, &mut |normal| {
            image::from_image(&case.inputs[0].bytes, (height, width), to, resize, normal, &mut out, 1);
        });
        Some(vec![wide(&out)])
    });
    check(&["tensor_to_image"], |case| {
        let [height, width, _] = case.expected[0].shape[..] else { panic!("{case}: a picture has three axes") };
        let mut out = vec![0; height * width * 4];
        normal(case, &mut |normal| {
            image::to_image(&floats(&case.inputs[0]), (height, width), normal, &mut out, 1);
        });
        Some(vec![wide(&out)])
    });
}
