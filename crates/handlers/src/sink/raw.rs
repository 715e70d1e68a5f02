//! `raw`: writes frames without a header, one after another, in the format of the stream and without padding.
//!
//! A file has its final name only once the stream has ended; the file then holds whole frames, even after an error.

use vramp_plan::catalog::{Entry, Input, PathUse, Setting};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, PartialFile, Setup, StartContext, Worker};

use super::frame_writer::{FrameWriter, PARTIAL, replaces};
use super::outlet;

pub static ENTRY: Entry = Entry {
    name: "raw",
    about: "writes headerless frames to a file or standard output",
    example: "pattern size=64x64 frames=1 ! raw path=out.rgba",
    inputs: &[Input::ANY],
    settings: &[Setting::path("path", PathUse::Write, "file, or - for standard output"), PARTIAL],
    bare: Some("path"),
    ..Entry::SINK
};

struct RawSink {
    settings: Settings,
    state: State,
}

struct Settings {
    path: String,
    replaces: bool,
}

#[derive(Default)]
struct State {
    writer: Option<FrameWriter>,
}

impl FrameHandler for RawSink {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
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

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").ok_or_else(|| HandlerError::failed("the setting `path` is missing"))?;
    let settings = Settings { path: path.to_owned(), replaces: replaces(setup.settings) };
    Ok(Worker::frames(RawSink { settings, state: State::default() }))
}
