//! Lesson 2: your own handler that sees whole frames. The handler `trail` leaves a trail after bright pixels.
//!
//! `cargo run --release --example 02_own_handler` runs a pipeline with `trail`. With arguments, this example is the
//! whole `vramp` program with one more handler:
//!
//!     cargo run --release --example 02_own_handler -- inspect trail
//!     cargo run --release --example 02_own_handler -- top 'pattern ! trail fade=2 ! null'

use std::process::ExitCode;

use vramp::prelude::*;

struct Trail {
    fade: u8,
    /// The previous output, to be faded.
    before: Vec<u8>,
}

impl Trail {
    /// The description that the parser, the planner and `inspect` use before a handler exists. This handler has no
    /// kernel, runs only on the CPU, and its output depends on earlier frames.
    pub const ENTRY: Entry = Entry {
        name: "trail",
        about: "lets bright pixels fade slowly",
        example: "pattern ! trail fade=4 ! null",
        settings: &[Setting::int("fade", 1..=255, "levels that a pixel loses from frame to frame").default("8")],
        bare: Some("fade"),
        spaces: &[Space::Cpu],
        kernel: KernelRule::None,
        stateful: true,
        ..Entry::FILTER
    };

    /// Makes a handler from its settings, which vramp has already checked.
    fn new(setup: &Setup<'_>) -> Result<Trail, HandlerError> {
        Ok(Trail { fade: setup.int("fade")?, before: Vec::new() })
    }
}

impl FrameHandler for Trail {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(mut frame) = call.take(0) else { return Ok(Flow::Filtered) };
        // A stream may change its size, so each frame has its own size. In rgba8, a pixel has four bytes, and rows have
        // no padding.
        let Size { width, height } = frame.size();
        let bytes_per_frame = 4 * width as usize * height as usize;
        if self.before.len() != bytes_per_frame {
            self.before = vec![0; bytes_per_frame];
        }
        // Edits the frame's own memory if nothing else holds the frame, otherwise a copy from the pool.
        let mut bytes = frame.edit(call.pool())?;
        for (level, before) in bytes.iter_mut().zip(&mut self.before) {
            *level = (*level).max(before.saturating_sub(self.fade));
            *before = *level;
        }
        drop(bytes);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// The built-in handlers and `trail`.
pub fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&Trail::ENTRY, Trail::new).expect("no built-in handler is called trail");
    registry
}

fn main() -> Result<ExitCode, Error> {
    if std::env::args().len() > 1 {
        return Ok(vramp_cli::main(&registry()));
    }
    let path = std::env::temp_dir().join("vramp-trail-%02d.png");
    // Of 40 frames, keep the first and the last.
    let text = format!(
        "pattern kind=ball size=640x480 frames=40 fps=15 label=false ! trail fade=4 ! every n=39 ! png path={}",
        path.display()
    );
    let mut pipeline = Pipeline::parse(text).register(&Trail::ENTRY, Trail::new).build()?;
    println!("{}", pipeline.plan());

    let report = pipeline.run()?;
    for handler in report.handlers.iter().filter(|handler| handler.name == "trail0") {
        println!("trail0 saw {} frames, {:.0} us each", handler.calls, handler.p50_us.unwrap_or(0.0));
    }
    println!("frames 0 and 39 are in {}", path.display());
    Ok(ExitCode::SUCCESS)
}
