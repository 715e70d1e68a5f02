//! Lesson 2: a handler of your own that sees whole frames. This one keeps a trail behind whatever is bright.
//!
//! `cargo run --release --example 02_own_handler`

use vramp::plan::catalog::{Fallback, KernelRule, Liveness, Setting, Status, ValueType};
use vramp::prelude::*;
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Kinds, Worker};

/// What is known of it before there is one: the reader, the planner and `inspect` all go by this. It has no kernel and
/// is on the cpu only, and what it makes depends on the frames before.
pub static ENTRY: Entry = Entry {
    name: "trail",
    about: "lets bright pixels fade slowly",
    example: "pattern ! trail fade=4 ! null",
    settings: &[Setting {
        name: "fade",
        value: ValueType::Int { min: 1, max: 255 },
        fallback: Fallback::Is("8"),
        liveness: Liveness::Fixed,
        about: "levels that a pixel loses from frame to frame",
    }],
    bare: Some("fade"),
    spaces: &[Space::Cpu],
    kernel: KernelRule::None,
    stateful: true,
    status: Status::Runs,
    ..Entry::FILTER
};

struct Trail {
    fade: u8,
    /// What was sent last, to be faded.
    before: Vec<u8>,
}

impl FrameHandler for Trail {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(mut frame) = call.take(0) else { return Ok(Flow::Filtered) };
        // The frame's own memory where nobody else holds it, a copy from the pool otherwise.
        let mut bytes = frame.edit(call.pool())?;
        if self.before.len() != bytes.len() {
            self.before = vec![0; bytes.len()];
        }
        for (level, before) in bytes.iter_mut().zip(&mut self.before) {
            *level = (*level).max(before.saturating_sub(self.fade));
            *before = *level;
        }
        drop(bytes);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// The built-in kinds and this one.
pub fn kinds() -> Result<Kinds, Box<dyn std::error::Error>> {
    let mut kinds = vramp::kinds();
    kinds.add(&ENTRY, |setup| {
        let fade = setup.settings.int("fade").and_then(|fade| u8::try_from(fade).ok()).unwrap_or(1);
        Ok(Worker::frames(Trail { fade, before: Vec::new() }))
    })?;
    Ok(kinds)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("vramp-trail-%02d.png");
    // One name more to write in a pipeline. Of 40 frames the first and the last are kept.
    let text = format!(
        "pattern kind=ball size=640x480 frames=40 fps=15 label=false ! trail fade=4 ! every n=39 ! png path={}",
        path.display()
    );
    let kinds = kinds()?;
    let spec = vramp::read(&text, kinds.catalog())?;
    let graph = Graph::check(&spec, kinds.catalog(), &FileProbe)?;
    let prepared = Session::of(&graph, &kinds).prepare()?;
    println!("{}", prepared.plan.to_text(false));

    let report = prepared.run(None)?.into_result()?;
    for handler in report.handlers.iter().filter(|handler| handler.name == "trail0") {
        println!("trail0 saw {} frames, {:.0} us each", handler.calls, handler.p50_us.unwrap_or(0.0));
    }
    println!("frames 0 and 39 are in {}", path.display());
    Ok(())
}
