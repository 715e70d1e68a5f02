use vramp::prelude::*;

pub fn main() -> Result<(), Error> {
    let running = Pipeline::parse("app size=640x480 fps=30 ! blur sigma=2 ! app").build()?.spawn()?;
    let pixels = vec![128; 640 * 480 * 4];
    for _ in 0..30 {
        running.push(&pixels)?; // one copy, into memory of the pipeline
        let frame = running.pull()?.expect("the stream has not ended");
        assert_eq!(frame.bytes().len(), pixels.len()); // no copy: a view of that memory
    }
    running.input("")?.close();
    println!("{} frames", running.wait()?.frames_out);
    Ok(())
}
