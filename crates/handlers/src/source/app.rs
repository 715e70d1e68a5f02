//! `app`: sends the frames that the program pushes ([`AppInput`]).
//!
//! The handler never waits: while nothing is queued, its node is not called. With `live=true` the input drops its
//! oldest frame instead of letting the program wait, and frames have the times of their arrival.

use vramp_plan::catalog::{Entry, FormatRule, Frames, Output, PortMedia, RateRule, Setting, SizeRule, When, Work};
use vramp_plan::{Format, Space};
use vramp_runtime::{Call, Flow, FrameContent, FrameHandler, HandlerError, Meta, Setup, StartContext, Waker, Worker};

use crate::app::{AppInput, InputEnd, Taken};

pub static ENTRY: Entry = Entry {
    name: "app",
    about: "frames that the program pushes which runs the pipeline",
    example: "app size=640x480 ! blur ! app",
    outputs: &[Output {
        media: PortMedia::ANY,
        format: FormatRule::Setting("format"),
        // The size counts as probed, so that a frame of another size is a change in mid-stream.
        size: SizeRule::Probed(Some("size")),
        rate: RateRule::Probed(Some("fps")),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::size("size", "size of the frames"),
        Setting::format("format", "format of the frames").default("rgba8"),
        Setting::rate("fps", "frames per second, if the frames have no times of their own").optional(),
        Setting::bool("live", "drop the oldest frame instead of letting the program wait").default("false"),
        Setting::choice("space", &["cpu", "gpu"], "where the program's frames are").default("cpu"),
    ],
    bare: Some("size"),
    spaces: &[Space::Gpu, Space::Cpu],
    space_by: Some("space"),
    work: Work::NONE,
    blocking: false,
    live: When::Setting("live"),
    holds: Frames::Fixed(6),
    ..Entry::SOURCE
};

struct AppSource {
    end: InputEnd,
}

impl FrameHandler for AppSource {
    fn keep_waker(&mut self, waker: &Waker) -> bool {
        self.end.keep_waker(waker);
        true
    }

    fn is_ready(&mut self) -> bool {
        self.end.has_news()
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(Taken { frame, pts_ns }) = self.end.take() else { return Ok(Flow::Ended) };
        if let Some(pts_ns) = pts_ns {
            call.stamp(pts_ns);
        }
        let Some(frame) = frame else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn ended(&mut self) {
        self.end.end();
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.end.end();
        Ok(())
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        self.end.enter_device(None);
        true
    }

    fn enter_device(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.end.enter_device(context.device());
        Ok(())
    }

    /// The frames bring their own memory.
    fn can_repeat(&self) -> bool {
        true
    }
}

/// The maker, for registries without the built-in handlers.
pub fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let format: Format = setup.format("format")?;
    Ok(source(setup, Meta::new(format, setup.size("size")?), setup.flag("live")?))
}

/// An `app` source that stands in for a source with another entry. `content` is that of the first frame.
pub fn stand_in(setup: &Setup<'_>, content: FrameContent) -> Worker {
    source(setup, Meta::with(content), false)
}

fn source(setup: &Setup<'_>, meta: Meta, live: bool) -> Worker {
    Worker::frames(AppSource { end: AppInput::of(setup, meta, live).end() })
}
