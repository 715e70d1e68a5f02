//! Lesson 1: a pipeline is a line of text. This one blurs a moving ball and writes three pictures.
//!
//! `cargo run --release --example 01_hello_pipeline`

use vramp::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text =
        "pattern kind=ball size=640x480 frames=3 ! blur sigma=2 ! text \"frame {frame}\" ! png path=hello-%02d.png";

    // Text to graph: names, settings and ports are checked, and mistakes come back with a caret under the place.
    let kinds = vramp::kinds();
    let spec = vramp::read(text, kinds.catalog())?;
    let graph = Graph::check(&spec, kinds.catalog(), &FileProbe)?;

    // Graph to plan: where everything runs, what is fused, what has to be transferred and what that costs.
    let prepared = Session::of(&graph, &kinds).prepare()?;
    println!("{}", prepared.plan.to_text(false));

    // Plan to pictures.
    let report = prepared.run(None)?.into_result()?;
    println!("{} frames on {} in {:.3} s", report.frames_out, report.backend, report.seconds);
    Ok(())
}
