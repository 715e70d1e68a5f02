//! Lesson 1: a pipeline is a line of text. This pipeline blurs a moving ball and writes three images.
//!
//! `cargo run --release --example 01_hello_pipeline`

use vramp::prelude::*;

fn main() -> Result<(), Error> {
    // From text to plan: names, settings and ports are checked, and mistakes are shown with a caret. The plan decides
    // where each handler runs, what is fused and what is transferred, and it estimates the cost.
    let mut pipeline = Pipeline::parse(
        "pattern kind=ball size=640x480 frames=3 ! blur sigma=2 ! text \"frame {frame}\" ! png path=hello-%02d.png",
    )
    .build()?;
    println!("{}", pipeline.plan());

    // From plan to images.
    let report = pipeline.run()?;
    println!("{} frames on {} in {:.3} s", report.frames_out, report.backend, report.seconds);
    Ok(())
}
