//! Lesson 8: frames of your own program. The program pushes images into a pipeline and pulls the results; the pipeline
//! runs on its own threads. Frames are written into and read from the pipeline's memory.
//!
//! `cargo run --release --example 08_app_loop`

use vramp::prelude::*;

pub fn main() -> Result<(), Error> {
    let pipeline = Pipeline::parse("app name=camera size=640x480 fps=30 ! blur sigma=4 ! edges ! app name=screen");
    let running = pipeline.build()?.spawn()?;
    let (camera, screen) = (running.input("camera")?, running.output("screen")?);

    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..90_usize {
                // No copy: the frame is drawn in the memory that the first handler reads.
                let mut frame = camera.lend()?;
                for (at, pixel) in frame.bytes_mut().as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let is_inside = (at % 640).abs_diff(100 + 4 * number).max((at / 640).abs_diff(240)) < 60;
                    *pixel = if is_inside { [255, 160, 0, 255] } else { [20, 30, 40, 255] };
                }
                camera.send(frame, Wait::Forever)?;
            }
            camera.close();
            Ok::<(), PushError>(())
        });
        for frame in &screen {
            let frame = frame?;
            if frame.meta().number.is_multiple_of(30) {
                let bright = frame.bytes().as_chunks::<4>().0.iter().filter(|pixel| pixel[0] > 60).count();
                println!("frame {}: {bright} pixels on edges", frame.meta().number);
            }
        }
        Ok::<(), PullError>(())
    })?;
    let report = running.wait()?;
    println!("{} frames, {} copies", report.frames_out, report.counters.frame_copies);
    Ok(())
}
