use vramp::prelude::*;
use vramp::report::{Page, Recorder};

pub fn main() -> Result<(), vramp::Error> {
    let recorder = Recorder::new();
    let mut pipeline = Pipeline::parse("pattern size=64x48 frames=30 ! blur ! null")
        .trace(recorder.trace())
        .listener(recorder.listener())
        .build()?;
    let report = pipeline.run()?;
    let page = Page::of_run(pipeline.plan(), &report, recorder.record(&pipeline.watch()));
    std::fs::write(std::env::temp_dir().join("run.html"), page.to_html()).expect("the folder can be written");
    Ok(())
}
