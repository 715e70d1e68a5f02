//! Lesson 12: a network in a pipeline. `model` runs an ONNX file on every frame: here it finds the person in a picture, and
//! its mask becomes the picture's alpha, so that `mix` puts the person over the blurred background. On the GPU, nothing of
//! this leaves the device.
//!
//! `cargo run --release --example 12_person`

use vramp::prelude::*;

/// One of the two models in vramp's repository. `cargo xtask models` fetches others.
const SELFIE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/model/models/selfie.onnx");

/// The picture; any file or `camera` can stand here.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/model/models/portrait.jpg");

/// One text for both sides: the planner decides where each handler runs.
fn text() -> String {
    format!(
        "image path=\"{PICTURE}\" name=cam ! blur sigma=12 ! mix name=out mode=over amount=1 ! app name=pictures
         cam. ! model path=\"{SELFIE}\" output=mask name=person ! out.b
         person.result ! app name=mask"
    )
}

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A wrong path, size or setting is a mistake with a place, before anything runs.
    let wrong = format!("image path=\"{PICTURE}\" ! model path=\"{SELFIE}\" of=nothing ! null");
    println!("{}\n", Pipeline::parse(wrong).build().expect_err("the network has no such output"));

    let pipeline = Pipeline::parse(text()).build()?;
    println!("{}", pipeline.plan());

    // The picture, and the network's own output, which carries the number of the frame it was computed from.
    let running = pipeline.spawn()?;
    let picture = running.output("pictures")?.pull()?.expect("one picture");
    let mask = running.output("mask")?.pull()?.expect("one mask");
    assert_eq!(picture.meta().number, mask.meta().number);
    let values: Vec<f32> = mask.bytes().as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    let share = values.iter().sum::<f32>() / values.len() as f32;
    println!("{}: {:.0} % of the picture is the person", mask.meta().content, 100.0 * share);
    assert!((0.2..0.8).contains(&share), "an astronaut and her helmet");
    running.wait()?;
    Ok(())
}
