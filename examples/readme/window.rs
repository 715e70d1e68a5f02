use vramp::prelude::*;

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report = vramp::window::main(|screen| {
        let registry = screen.register(&vramp::registry());
        let mut pipeline = Pipeline::parse("pattern ! blur ! window").registry(&registry).build()?;
        screen.attach(&pipeline); // closing the window ends the run, and `h` shows its settings
        pipeline.run()
    })??;
    println!("{} frames", report.frames);
    Ok(())
}
