//! `y4m`: uncompressed video with a one-line header.
//!
//! Owns the formats such a stream may have, and that its header is still the one that was planned with.
//! Does not convert: frames leave as they are stored, tagged with how the header says they are to be read.
//!
//! Always: eight bits a sample; the header is read where probing reads it, so that both agree.

use vramp_plan::catalog::{Entry, FormatRule, Output, PathUse, PortMedia, RateRule, Setting, SettingValues, SizeRule};
use vramp_plan::{Content, Format, Size, StreamTags};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::frame_reader::{ByteSource, FrameReader, Lead};
use crate::probe::{self, first_line, standard_input_header, yuv_of};

/// What the source `y4m` declares.
pub static ENTRY: Entry = Entry {
    name: "y4m",
    about: "reads YUV4MPEG2 video from a file or standard input",
    example: "y4m path=clip.y4m ! null",
    outputs: &[Output {
        media: PortMedia::video(&[Format::I420, Format::I422, Format::I444, Format::Gray8]),
        format: FormatRule::Probed,
        size: SizeRule::Probed(None),
        rate: RateRule::Probed(None),
        ..Output::VIDEO
    }],
    settings: &[Setting::path("path", PathUse::Read, "a file, or - for standard input")],
    bare: Some("path"),
    ..Entry::SOURCE
};

/// Reads frames.
struct Y4mSource {
    settings: Settings,
    state: State,
}

/// What was set, and what was planned with.
struct Settings {
    given: SettingValues,
    path: String,
    planned: Option<(Format, Size)>,
    tags: Option<StreamTags>,
}

/// What changes from frame to frame.
#[derive(Default)]
struct State {
    reader: Option<FrameReader>,
}

impl FrameHandler for Y4mSource {
    fn start(&mut self) -> Result<(), HandlerError> {
        let Settings { given, path, planned, tags } = &self.settings;
        // Of standard input, probing remembers the header it has read; of a file, it reads it again.
        let probed = probe::y4m(given).map_err(|error| HandlerError::failed(error.to_string()))?;
        let found = probed.tags.as_deref().cloned().unwrap_or_default();
        let Some((format, size)) = probed.format.zip(probed.size) else {
            return Err(HandlerError::failed(format!("`{path}` has no format or size in its header; make it again")));
        };
        if let Some((planned_format, planned_size)) = planned
            && (*planned_format, *planned_size) != (format, size)
        {
            return Err(HandlerError::failed(format!(
                "`{path}` is {format} {size} now and was {planned_format} {planned_size} when the run was planned; \
                 start the run again"
            )));
        }
        if tags.as_ref().is_some_and(|tags| *tags != found) {
            return Err(HandlerError::failed(format!(
                "the header of `{path}` has changed since the run was planned; start the run again"
            )));
        }
        let mut origin = ByteSource::open(path).map_err(HandlerError::failed)?;
        let head = match &origin {
            ByteSource::Standard(_) => standard_input_header().to_vec(),
            #[cfg(test)]
            ByteSource::Memory(_) => Vec::new(),
            ByteSource::File(_) => {
                origin.with(first_line).map_err(|error| HandlerError::failed(format!("`{path}`: {error}")))?
            }
        };
        let content = (format, size, yuv_of(&found, &head));
        self.state.reader = Some(FrameReader::new(path, origin, Lead::Line, head.len() as u64, content));
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

/// Makes the source `y4m`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.text("path")?;
    let frame = setup.outputs.first().and_then(Option::as_ref).and_then(Content::frame);
    let settings = Settings {
        given: setup.settings.clone(),
        path: path.to_owned(),
        planned: frame.map(|frame| (frame.format, frame.size)),
        tags: setup.tags.cloned(),
    };
    Ok(Worker::frames(Y4mSource { settings, state: State::default() }))
}
