//! Lesson 9: settings that change while a pipeline runs. A slider of your program would do what this loop does: the blur
//! grows and shrinks, and each change takes effect between two frames.
//!
//! `cargo run --release --example 09_live`

use std::time::Duration;

use vramp::prelude::*;

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = "pattern kind=ball size=640x480 ! blur sigma=1 ! text \"sigma 1\" name=label ! null";
    let options = RunOptions::new().pace(Rate::new(60, 1).expect("60 is a rate"));
    let running = Pipeline::parse(text).options(options).build()?.spawn()?;
    let controls = running.controls();

    for sigma in [2.0, 4.0, 6.0, 3.0, 1.0] {
        // Both settings change with the same frame.
        let label = format!("sigma {sigma}");
        let change = controls.set_all([("blur0.sigma", sigma.to_string()), ("label.text", label)])?;
        if let Some(frame) = change.frame(Duration::from_secs(1)) {
            println!("sigma {sigma} from frame {frame} on");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    // What cannot change is refused with the reason, and the pipeline goes on.
    println!("{}", controls.set("pattern0.size", "64x64").expect_err("the size is fixed"));

    running.finish();
    let report = running.wait()?;
    println!("{} frames, {} dropped", report.frames_out, report.dropped.sum());
    Ok(())
}
