//! Lesson 11: models. A neural network from an ONNX file runs on tensors, on the GPU or on the CPU. The network here finds
//! the person in a picture.
//!
//! `cargo run --release --example 11_models`

use vramp::model::Model;
use vramp::tensor::{Context, Reduction};

/// One of the two models in vramp's repository. `cargo xtask models` fetches others.
const SELFIE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/model/models/selfie.onnx");

/// The width and the height of the model's pictures.
const SIDE: u16 = 256;

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The best device, or the CPU. A model runs in the context of its inputs.
    let (context, why) = Context::open();
    println!("{why}");

    let model = Model::open(SELFIE)?;
    for port in model.inputs().iter().chain(model.outputs()) {
        println!("{}: {} {:?}", port.name, port.dtype.name(), port.dims);
    }

    // The first run plans and compiles the network for this shape. Later runs with the same shape only compute.
    let picture = context.tensor(&portrait(), &[1, 3, SIDE.into(), SIDE.into()])?;
    let outputs = model.run(&[picture])?;

    // Results are tensors: they stay on the device, where further ops can use them, until their values are read.
    let mask = &outputs[0];
    let share = mask.reduce_all(Reduction::Mean)?.read::<f32>()?[0];
    println!("{:.0} % of the picture is the person", 100.0 * share);
    assert!((0.2..0.8).contains(&share), "a head and shoulders");

    // A wrong shape is a typed error that names the input, and the model still works.
    let small = context.tensor(&[0.0_f32; 3], &[1, 3, 1, 1])?;
    println!("{}", model.run(&[small]).expect_err("the model has one size"));
    Ok(())
}

/// An oval head over shoulders before a wall of grey tiles: red, then green, then blue, as values from 0 to 1.
fn portrait() -> Vec<f32> {
    let side = i32::from(SIDE);
    let color = |at: i32| {
        let (column, row) = (at % side, at / side);
        let wall = 90 + (7 * (row / 32) + 5 * (column / 32)) % 8 * 8;
        let (x, y) = (2 * column - side, 2 * row - side);
        let head = (16 * x).pow(2) + (13 * y + 3 * side).pow(2) < (6 * side).pow(2);
        let body = x.pow(2) + (y - side).pow(2) < side * side / 2;
        if head { [200, 150, 125] } else { [[wall; 3], [40, 60, 120]][usize::from(body)] }
    };
    let levels = (0..3).flat_map(|channel| (0..side * side).map(move |at| color(at)[channel]));
    levels.map(|level| level as f32 / 255.0).collect()
}
