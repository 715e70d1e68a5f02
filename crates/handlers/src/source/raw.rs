//! `raw`: reads frames without a header, one after another. Size, format and rate are set by the user.
//!
//! Rows and planes have no padding in the file.

use std::io::{self, IsTerminal};

use vramp_plan::catalog::{Entry, FormatRule, Output, PathUse, RateRule, Setting, SizeRule};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker, Yuv};

use super::frame_reader::{ByteSource, FrameReader, Lead};

pub static ENTRY: Entry = Entry {
    name: "raw",
    about: "reads headerless frames from a file or standard input",
    example: "raw path=clip.rgba size=640x480 format=rgba8 ! null",
    outputs: &[Output {
        format: FormatRule::Setting("format"),
        size: SizeRule::Setting("size"),
        rate: RateRule::Setting("fps"),
        ..Output::SAME
    }],
    settings: &[
        Setting::path("path", PathUse::Read, "file, or - for standard input").default("-"),
        Setting::size("size", "width and height of every frame"),
        Setting::format("format", "pixel format of the frames").default("rgba8"),
        Setting::rate("fps", "frames per second").default("30"),
    ],
    ..Entry::SOURCE
};

struct RawSource {
    settings: Settings,
    state: State,
}

struct Settings {
    path: String,
    size: Size,
    format: Format,
}

#[derive(Default)]
struct State {
    reader: Option<FrameReader>,
}

impl FrameHandler for RawSource {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { path, size, format } = &self.settings;
        if path == "-" && io::stdin().is_terminal() {
            return Err(HandlerError::failed(format!(
                "standard input is a terminal, expected {format} frames of {size}; pipe frames in, or give a file"
            )));
        }
        let origin = ByteSource::open(path).map_err(HandlerError::failed)?;
        let reader = FrameReader::new(path, origin, Lead::Nothing, 0, (*format, *size, Yuv::default()));
        self.state.reader = Some(reader);
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.state.reader.as_mut().map_or(Ok(Flow::Ended), |reader| reader.send_next(call))
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.state = State::default();
        Ok(())
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings {
        path: setup.settings.text("path").unwrap_or("-").to_owned(),
        size: setup.size("size")?,
        format: setup.settings.format("format").unwrap_or(Format::Rgba8),
    };
    Ok(Worker::frames(RawSource { settings, state: State::default() }))
}
