//! Lesson 1: a pipeline is a line of text. This one blurs a moving ball and writes three pictures.
//!
//! `cargo run --release --example 01_hello_pipeline`

use vramp::prelude::*;

fn main() -> Result<(), Error> {
    // Text to plan: names, settings and ports are checked, mistakes come back with a caret under the place, and it is
    // decided where everything runs, what is fused, what has to be transferred and what that costs.
    let mut pipeline = Pipeline::parse(
        "pattern kind=ball size=640x480 frames=3 ! blur sigma=2 ! text \"frame {frame}\" ! png path=hello-%02d.png",
    )
    .build()?;
    println!("{}", pipeline.plan());

    // Plan to pictures.
    let report = pipeline.run()?;
    println!("{} frames on {} in {:.3} s", report.frames_out, report.backend, report.seconds);
    Ok(())
}
