//! `app`: hands frames to the program ([`AppOutput`]).
//!
//! The handler never waits: while the program has not pulled, the node takes no frame. A frame on the device is handed
//! over when the device has finished it.

use std::collections::VecDeque;

use vramp_plan::catalog::{Entry, Frames, Input, Setting, Work};
use vramp_plan::{Format, Space};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Setup, StartContext, Waker, Worker};

use crate::app::{AppOutput, OutputEnd};

pub static ENTRY: Entry = Entry {
    name: "app",
    about: "hands frames to the program that runs the pipeline",
    example: "pattern ! app",
    inputs: &[Input { format_by: Some("format"), ..Input::EVERY }],
    settings: &[
        Setting::choice("space", &["cpu", "gpu", "any"], "where the program takes its frames").default("cpu"),
        Setting::choice("format", FORMATS, "format of the frames; any keeps what comes").default("rgba8"),
        Setting::int("hold", 1..=1024, "frames that the program may hold at the same time").default("16"),
    ],
    spaces: &[Space::Gpu, Space::Cpu],
    space_by: Some("space"),
    work: Work::NONE,
    blocking: false,
    holds: Frames::Setting("hold"),
    ..Entry::SINK
};

/// Every format, and `any`.
static FORMATS: &[&str] = &[
    Format::Rgba8.name(),
    Format::Rgb8.name(),
    Format::I444.name(),
    Format::I422.name(),
    Format::I420.name(),
    Format::Nv12.name(),
    Format::Gray8.name(),
    "any",
];

struct AppSink {
    end: OutputEnd,
    /// Frames that the device has not finished.
    pending: VecDeque<Frame>,
}

impl FrameHandler for AppSink {
    fn keep_waker(&mut self, waker: &Waker) -> bool {
        self.end.keep_waker(waker);
        true
    }

    fn is_ready(&mut self) -> bool {
        self.end.has_room(self.pending.len())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        match frame.space() {
            Space::Gpu => self.pending.push_back(frame),
            Space::Cpu => self.end.put(frame),
        }
        Ok(Flow::Produced)
    }

    fn finished(&mut self) {
        if let Some(frame) = self.pending.pop_front() {
            self.end.put(frame);
        }
    }

    fn ended(&mut self) {
        self.end.close();
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.pending.clear();
        self.end.close();
        Ok(())
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        self.pending.clear();
        true
    }

    fn enter_device(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.pending.clear();
        Ok(())
    }
}

/// The maker, for registries without the built-in handlers.
pub fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(sink(setup, setup.int("hold")?))
}

/// An `app` sink that stands in for a sink with another entry. The program may hold one frame at a time.
pub fn stand_in(setup: &Setup<'_>) -> Worker {
    sink(setup, 1)
}

fn sink(setup: &Setup<'_>, hold: usize) -> Worker {
    Worker::frames(AppSink { end: AppOutput::of(setup, hold).end(), pending: VecDeque::with_capacity(16) })
}
