//! `raw`: frames without any header, back to back.
//!
//! Owns the settings that stand in for the missing header.
//! Does not guess: size, format and rate are what was set.
//!
//! Always: rows and planes follow each other without padding in the file, whatever they have in memory.

use std::io::{self, IsTerminal};

use vramp_plan::catalog::{Entry, FormatRule, Output, PathUse, RateRule, Setting, SizeRule};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker, Yuv};

use super::frame_reader::{ByteSource, FrameReader, Lead};

/// What the source `raw` declares.
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
        Setting::path("path", PathUse::Read, "a file, or - for standard input").default("-"),
        Setting::size("size", "width and height of every frame"),
        Setting::format("format", "how the frames are stored").default("rgba8"),
        Setting::rate("fps", "frames per second").default("30"),
    ],
    ..Entry::SOURCE
};

/// Reads frames.
struct RawSource {
    settings: Settings,
    state: State,
}

/// What was set.
struct Settings {
    path: String,
    size: Size,
    format: Format,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    reader: Option<FrameReader>,
}

impl FrameHandler for RawSource {
    fn start(&mut self) -> Result<(), HandlerError> {
        let Settings { path, size, format } = &self.settings;
        if path == "-" && io::stdin().is_terminal() {
            return Err(HandlerError::failed(format!(
                "standard input is a terminal, expected {format} frames of {size}; pipe them in, or name a file"
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

/// Makes the source `raw`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings {
        path: setup.settings.text("path").unwrap_or("-").to_owned(),
        size: setup.size("size")?,
        format: setup.settings.format("format").unwrap_or(Format::Rgba8),
    };
    Ok(Worker::frames(RawSource { settings, state: State::default() }))
}
