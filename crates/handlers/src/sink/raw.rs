//! `raw`: writes frames without any header, back to back.
//!
//! Owns where they go.
//! Does not choose a format: frames are written as they come.
//!
//! Always: rows and planes are written without padding, whatever they have in memory; a file has its final name only
//! once the stream has ended, and then holds whole frames, also after an error.

use vramp_plan::catalog::{Entry, Input, PathUse, Setting};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, PartialFile, Setup, Worker};

use super::frame_writer::{FrameWriter, PARTIAL, replaces};
use super::outlet;

/// What the sink `raw` declares.
pub static ENTRY: Entry = Entry {
    name: "raw",
    about: "writes headerless frames to a file or standard output",
    example: "pattern size=64x64 frames=1 ! raw path=out.rgba",
    inputs: &[Input::ANY],
    settings: &[Setting::path("path", PathUse::Write, "a file, or - for standard output"), PARTIAL],
    bare: Some("path"),
    ..Entry::SINK
};

/// Writes frames.
struct RawSink {
    settings: Settings,
    state: State,
}

/// What was set.
struct Settings {
    path: String,
    /// Whether an unfinished file replaces an older one.
    replaces: bool,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    writer: Option<FrameWriter>,
}

impl FrameHandler for RawSink {
    fn start(&mut self) -> Result<(), HandlerError> {
        let path = &self.settings.path;
        self.state.writer = Some(FrameWriter::new(path, outlet::open(path).map_err(HandlerError::failed)?));
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let (Some(frame), Some(writer)) = (call.input(0), &mut self.state.writer) else { return Ok(Flow::Filtered) };
        writer.write(&[], frame.meta(), &frame.bytes()).map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.state.writer.take().map_or(Ok(()), FrameWriter::finish).map_err(HandlerError::failed)
    }

    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        if self.settings.replaces {
            return self.stop().map(|()| None);
        }
        self.state.writer.take().map_or(Ok(None), FrameWriter::finish_early).map_err(HandlerError::failed)
    }
}

/// Makes the sink `raw`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").ok_or_else(|| HandlerError::failed("the setting `path` is missing"))?;
    let settings = Settings { path: path.to_owned(), replaces: replaces(setup.settings) };
    Ok(Worker::frames(RawSink { settings, state: State::default() }))
}
