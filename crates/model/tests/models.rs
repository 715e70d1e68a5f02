//! Real models against ONNX Runtime. `data/README.md` describes the references and the pictures.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use prost::Message as _;
use serde_json::Value;
use vramp_gpu::Device;
use vramp_model::Model;
use vramp_model::onnx::proto::GraphProto;
use vramp_tensor::{Context, DType, Tensor};

use crate::made;

/// The largest difference from ONNX Runtime, as a share of the largest value.
const MOST_APART: f64 = 2e-4;

/// 32 bits for each place of a sequence.
fn bits(seed: u32, place: u32) -> u32 {
    let mut x = place.wrapping_add(seed.wrapping_mul(0x9e37_79b9));
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}

const DIGITS: [u32; 10] = [0o75557, 0o26227, 0o71747, 0o71717, 0o55711, 0o74717, 0o74757, 0o71111, 0o75757, 0o75717];

/// The level of a scene at a channel, row and column.
fn level(scene: &str, [channel, row, column]: [i64; 3], [height, width]: [i64; 2]) -> i64 {
    match scene {
        "cells" => i64::from(bits(2, ((channel * 4096 + row / 8) * 4096 + column / 8) as u32) >> 24),
        "page" => {
            let cell = bits(2, (row / 32 * 4096 + column / 16) as u32);
            let (x, y) = (column % 16 / 4, (row % 32 + 2) / 4 - 2);
            let shift = (14 - 3 * y - x).clamp(0, 14);
            let dot = (DIGITS[(cell % 10) as usize] >> shift) & 1;
            if x < 3 && (0..5).contains(&y) && cell >> 28 > 2 && dot == 1 { 30 } else { 230 }
        }
        "portrait" => {
            let (x, y) = (2 * column - width, 2 * row - height);
            let is_head = (16 * x).pow(2) + (13 * y + 3 * height).pow(2) < (6 * width).pow(2);
            let is_body = x.pow(2) + (y - height).pow(2) < width * width / 2;
            let channel = channel as usize;
            match (is_head, is_body) {
                (true, _) => [200, 150, 125][channel],
                (_, true) => [40, 60, 120][channel],
                _ => 90 + i64::from(bits(2, (row / 32 * 4096 + column / 32) as u32) >> 26),
            }
        }
        other => panic!("no scene {other}"),
    }
}

fn picture(scene: &str, shape: &[usize], low: f32, high: f32) -> Vec<f32> {
    let &[_, channels, height, width] = shape else { panic!("{shape:?}") };
    let mut values = Vec::with_capacity(channels * height * width);
    let [channels, height, width] = [channels, height, width].map(|length| i64::try_from(length).unwrap());
    for channel in 0..channels {
        for row in 0..height {
            for column in 0..width {
                let level = level(scene, [channel, row, column], [height, width]);
                let noise = bits(1, values.len() as u32) >> 28;
                let value = (16 * level + i64::from(noise)) as f32 / 4096.0;
                values.push(low + (high - low) * value);
            }
        }
    }
    values
}

/// The file of a model: in the tree, or where `cargo xtask models` puts it.
fn file(name: &str) -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [crate_folder.join("models"), crate_folder.join("../../target/models")];
    let found = places.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing; `cargo xtask models` fetches it"))
}

fn lengths(of: &Value) -> Vec<usize> {
    of.as_array().unwrap().iter().map(|length| length.as_u64().unwrap() as usize).collect()
}

/// The largest difference between the sides, as a share of the largest value.
const MOST_APART_ON_TWO_SIDES: f32 = 1e-4;

/// Fails unless the outputs of two sides agree.
fn agree(one: &[Tensor], two: &[Tensor]) -> Result<(), String> {
    assert_eq!(one.len(), two.len());
    for (at, (one, two)) in one.iter().zip(two).enumerate() {
        if one.shape() != two.shape() || one.dtype() != two.dtype() {
            return Err(format!("output {at} is {} on one side and {} on the other", one.shape(), two.shape()));
        }
        let floats = |tensor: &Tensor| tensor.cast(DType::F32).and_then(|tensor| tensor.read::<f32>());
        let (one, two) = (floats(one).unwrap(), floats(two).unwrap());
        let largest = one.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        // A difference that is NaN is not small.
        let is_near = |(one, two): &(&f32, &f32)| (*one - *two).abs() <= MOST_APART_ON_TWO_SIDES * largest;
        if let Some((one, two)) = one.iter().zip(&two).find(|pair| !is_near(pair)) {
            return Err(format!("output {at} has {one} and {two} on the two sides; the largest value is {largest}"));
        }
    }
    Ok(())
}

/// Compares one reference. Returns the largest difference as a share of the largest value. With a second context, the
/// results on both sides are compared too.
fn difference(reference: &Value, path: &Path, context: &Context, twin: Option<&Context>) -> Result<f64, String> {
    let text = |key: &str| reference[key].as_str().unwrap();
    let shape = lengths(&reference["shape"]);
    let (low, high) = (reference["low"].as_f64().unwrap() as f32, reference["high"].as_f64().unwrap() as f32);
    let values = picture(text("scene"), &shape, low, high);
    let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
    // The sum is exact, but the last bit of the text's number may be lost when it is read.
    let wanted = reference["input_sum"].as_f64().unwrap();
    assert!(
        (sum - wanted).abs() <= wanted.abs() * 1e-15,
        "the picture for {}: {sum}, expected {wanted}",
        text("model")
    );
    let model = Model::open(path).map_err(|error| error.to_string())?;
    let input = context.tensor(&values, &shape).map_err(|error| error.to_string())?;
    let outputs = model.run_named(&[(text("input"), input)]).map_err(|error| error.to_string())?;
    if let Some(twin) = twin {
        let input = twin.tensor(&values, &shape).map_err(|error| error.to_string())?;
        let others = model.run_named(&[(text("input"), input)]).map_err(|error| error.to_string())?;
        agree(&others, &outputs)?;
    }
    let mut worst = 0.0_f64;
    for expected in reference["outputs"].as_array().unwrap() {
        let name = expected["name"].as_str().unwrap();
        let at = model.outputs().iter().position(|port| port.name == name).unwrap();
        if outputs[at].shape().lengths() != lengths(&expected["shape"]) {
            return Err(format!("{name} is {}, expected {:?}", outputs[at].shape(), expected["shape"]));
        }
        let found = outputs[at].read::<f32>().map_err(|error| error.to_string())?;
        let (stride, largest) = (expected["stride"].as_u64().unwrap() as usize, expected["largest"].as_f64().unwrap());
        let wanted = expected["values"].as_array().unwrap();
        for (found, wanted) in found.iter().step_by(stride).zip(wanted) {
            let apart = (f64::from(*found) - wanted.as_f64().unwrap()).abs() / largest;
            worst = if apart.is_nan() { f64::INFINITY } else { worst.max(apart) };
        }
        if let Some(top) = expected["top5"].as_array() {
            let mut order: Vec<usize> = (0..found.len()).collect();
            order.sort_by(|one, two| found[*two].total_cmp(&found[*one]));
            let top: Vec<usize> = top.iter().map(|index| index.as_u64().unwrap() as usize).collect();
            if order[..top.len()] != top {
                return Err(format!("{name}: the largest are {:?}, expected {top:?}", &order[..top.len()]));
            }
        }
    }
    Ok(worst)
}

/// Compares all references whose models are there.
fn all_match(context: &Context, twin: Option<&Context>) {
    let references: Value = serde_json::from_str(include_str!("data/references.json")).unwrap();
    let mut failed = Vec::new();
    let references = references.as_array().unwrap();
    for reference in references {
        let name = reference["model"].as_str().unwrap();
        let path = file(name);
        match difference(reference, &path, context, twin) {
            Ok(worst) if worst <= MOST_APART => {
                println!("{name} {}: {worst:.1e}", reference["shape"]);
            }
            Ok(worst) => failed.push(format!("{name} {}: differs by {worst:.1e}", reference["shape"])),
            Err(problem) => failed.push(format!("{name} {}: {problem}", reference["shape"])),
        }
    }
    assert!(failed.is_empty(), "{} of {} fail:\n{}", failed.len(), references.len(), failed.join("\n"));
}

#[test]
fn models_give_the_results_of_onnx_runtime_on_the_host() {
    all_match(&Context::on_host(), None);
}

#[test]
fn models_give_the_results_of_onnx_runtime_and_of_the_host_on_a_device() {
    all_match(&Context::on(&Device::choose().open().unwrap()).unwrap(), Some(&Context::on_host()));
}

#[test]
fn weights_of_a_file_that_is_opened_twice_are_counted_once() {
    let path = file("selfie.onnx");
    let context = Context::on_host();
    let input = context.zeros(&[1, 3, 256, 256], vramp_tensor::DType::F32).unwrap();
    let (one, two) = (Model::open(&path).unwrap(), Model::open(&path).unwrap());
    one.run(std::slice::from_ref(&input)).unwrap();
    let once = context.memory().bytes();
    two.run(std::slice::from_ref(&input)).unwrap();
    assert_eq!(context.memory().bytes(), once);
    drop((one, two));
    assert!(context.memory().bytes() < once);
}

#[test]
fn a_second_run_compiles_nothing_and_takes_no_new_memory() {
    let model = Model::open(file("blazeface.onnx")).unwrap();
    let device = Device::choose().open().unwrap();
    for context in [Context::on_host(), Context::on(&device).unwrap()] {
        let input = context.zeros(&[1, 3, 128, 128], vramp_tensor::DType::F32).unwrap();
        let run = || {
            for output in model.run(std::slice::from_ref(&input)).unwrap() {
                output.read::<f32>().unwrap();
            }
            let counters = device.counters();
            (context.host_pool().misses, counters.compiles, counters.gpu_allocs)
        };
        run();
        let after_two = run();
        assert_eq!(run(), after_two, "on {}", if context.device().is_some() { "a device" } else { "the host" });
    }
}

#[test]
fn selfie_takes_at_most_95_dispatches() {
    let context = Context::on(&Device::choose().open().unwrap()).unwrap();
    let input = context.zeros(&[1, 3, 256, 256], vramp_tensor::DType::F32).unwrap();
    let dispatches = Model::open(file("selfie.onnx")).unwrap().prepare(&context, &[input]).unwrap();
    assert!((1..=95).contains(&dispatches), "{dispatches}");
}

#[test]
fn a_wrong_input_is_an_error_that_names_it_with_both_sides() {
    let model = Model::open(file("selfie.onnx")).unwrap();
    let context = Context::on_host();
    let zeros = |shape: &[usize], dtype| context.zeros(shape, dtype).unwrap();
    let text = |inputs: &[_]| model.run(inputs).unwrap_err().to_string();
    let small = text(&[zeros(&[1, 3, 16, 16], vramp_tensor::DType::F32)]);
    assert!(small.contains("`input_1`: expected [1, 3, 256, 256], got [1, 3, 16, 16]"), "{small}");
    let bytes = text(&[zeros(&[1, 3, 256, 256], vramp_tensor::DType::U8)]);
    assert!(bytes.contains("`input_1`: expected f32, got u8"), "{bytes}");
    assert!(text(&[]).contains("expected 1 inputs in all, got 0"), "{}", text(&[]));
    let other = model.run_named(&[("x", zeros(&[1], vramp_tensor::DType::F32))]).unwrap_err().to_string();
    assert!(other.contains("input `x`: expected one of input_1"), "{other}");
}

#[test]
fn after_a_lost_device_the_model_goes_on_on_the_host() {
    let device = Device::choose().open().unwrap();
    let context = Context::on(&device).unwrap();
    let model = Model::open(file("blazeface.onnx")).unwrap();
    let values = picture("portrait", &[1, 3, 128, 128], -1.0, 1.0);
    let input = context.tensor(&values, &[1, 3, 128, 128]).unwrap();
    let run = || model.run(std::slice::from_ref(&input)).unwrap()[0].read::<f32>().unwrap();
    let before = run();
    device.destroy();
    let after = run();
    assert!(context.device().is_none());
    let largest = before.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    assert!(before.iter().zip(&after).all(|(one, two)| (one - two).abs() <= 1e-4 * largest));
}

#[test]
fn a_shape_may_be_an_input_and_change_from_run_to_run() {
    let mut shape = made::value("shape", vec![made::fixed(2)]);
    shape.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().elem_type = made::I64;
    let graph = GraphProto {
        input: vec![made::value("x", vec![made::fixed(6)]), shape],
        output: vec![made::value("y", vec![])],
        node: vec![made::node("n", "Reshape", &["x", "shape"], &["y"])],
        ..Default::default()
    };
    let model = Model::from_bytes(made::model(graph).encode_to_vec()).unwrap();
    let context = Context::on_host();
    let x = context.tensor(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[6]).unwrap();
    for lengths in [[2, 3], [3, 2], [2, 3]] {
        let shape = context.tensor(&lengths, &[2]).unwrap();
        let made = model.run(&[x.clone(), shape]).unwrap();
        assert_eq!(made[0].shape().lengths(), lengths.map(|length: i32| length as usize));
        assert_eq!(made[0].read::<f32>().unwrap(), x.read::<f32>().unwrap());
    }
}

#[test]
fn all_unsupported_ops_and_settings_are_in_one_error() {
    let mut mode = made::attribute("mode");
    mode.s = Some("circular".into());
    mode.kind = 3;
    let mut pad = made::node("c", "Pad", &["b"], &["y"]);
    pad.attribute.push(mode);
    let graph = GraphProto {
        input: vec![made::value("x", vec![made::fixed(6)])],
        output: vec![made::value("y", vec![])],
        node: vec![made::node("a", "Sin", &["x"], &["a"]), made::node("", "Loop", &["a"], &["b"]), pad],
        ..Default::default()
    };
    let model = Model::from_bytes(made::model(graph).encode_to_vec()).unwrap();
    let x = Context::on_host().zeros(&[6], vramp_tensor::DType::F32).unwrap();
    let text = model.run(&[x]).unwrap_err().to_string();
    let listed =
        "3 nodes have unsupported ops: Sin (node `a`), Loop (node `Loop #1`), Pad (mode `circular`) (node `c`)";
    assert!(text.starts_with(listed), "{text}");
    assert_eq!(model.facts().unsupported.len(), 3);
}
