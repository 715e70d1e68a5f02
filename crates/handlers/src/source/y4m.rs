//! `y4m`: reads uncompressed video with a one-line header, eight bits per sample.
//!
//! Frames are sent as they are stored, tagged with the colours and chroma siting of the header. The probe parses the
//! header both for the plan and for the run; a header that has changed since planning is refused.

use vramp_plan::catalog::{Entry, FormatRule, Output, PathUse, PortMedia, RateRule, Setting, SettingValues, SizeRule};
use vramp_plan::{Content, Format, Size, StreamTags};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker};

use super::frame_reader::{ByteSource, FrameReader, Lead};
use crate::probe::{self, first_line, standard_input_header, yuv_of};

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
    settings: &[Setting::path("path", PathUse::Read, "file, or - for standard input")],
    bare: Some("path"),
    ..Entry::SOURCE
};

struct Y4mSource {
    settings: Settings,
    state: State,
}

/// The settings, and what the plan assumes about the stream.
struct Settings {
    given: SettingValues,
    path: String,
    planned: Option<(Format, Size)>,
    tags: Option<StreamTags>,
}

#[derive(Default)]
struct State {
    reader: Option<FrameReader>,
}

impl FrameHandler for Y4mSource {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { given, path, planned, tags } = &self.settings;
        // The probe remembers the header of standard input, and reads the header of a file again.
        let probed = probe::y4m(given).map_err(|error| HandlerError::failed(error.to_string()))?;
        let found = probed.tags.as_deref().cloned().unwrap_or_default();
        let Some((format, size)) = probed.format.zip(probed.size) else {
            return Err(HandlerError::failed(format!(
                "`{path}` has no format or size in its header; make the file again"
            )));
        };
        if let Some((planned_format, planned_size)) = planned
            && (*planned_format, *planned_size) != (format, size)
        {
            return Err(HandlerError::failed(format!(
                "`{path}` is now {format} {size} and was {planned_format} {planned_size} when the run was planned; \
                 restart the run"
            )));
        }
        if tags.as_ref().is_some_and(|tags| *tags != found) {
            return Err(HandlerError::failed(format!(
                "the header of `{path}` has changed since the run was planned; restart the run"
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
