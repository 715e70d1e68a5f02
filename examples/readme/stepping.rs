use vramp::prelude::*;

pub fn main() -> Result<(), Error> {
    let mut pipeline = Pipeline::parse("pattern size=320x240 frames=90 ! blur sigma=2 ! null").build()?;
    let mut steps = 0;
    loop {
        match pipeline.step()? {
            Step::Moved => steps += 1,                    // more work may be ready
            Step::Wait(time) => std::thread::sleep(time), // until the next frame is due
            Step::Stuck => pipeline.wait_for_device(),    // until the device finishes something
            Step::Over => break,                          // the sources have ended
        }
        // Here the loop of a window, a game or a server does its own work.
    }
    let report = pipeline.finish()?;
    println!("{} frames in {steps} steps", report.frames_out);
    Ok(())
}
