//! `video`: encodes video files with an ffmpeg process, which gets raw frames with their times through a pipe.
//!
//! The file is written under a temporary name and renamed when it is complete; after an interruption it has all frames
//! that were written and is playable. Sound and subtitles are copied from the file that the pictures come from, for the
//! same part of it.

use std::time::Duration;

use vramp_media::{Container, EncodeError, Encoder, Encoding, SoundSource, add_sound, check_encoder};
use vramp_plan::catalog::{Class, Entry, Frames, Input, PathUse, PortMedia, Setting, SettingValues, Units, Work};
use vramp_plan::{Format, PixelAspect, Rate, Size, StreamOrigin};
use vramp_runtime::{
    Call, Flow, Frame, FrameHandler, HandlerError, Meta, PartialFile, Reporter, Setup, StartContext, Worker, Yuv,
};

use super::frame_writer::{PARTIAL, replaces};
use super::outlet::{OutletTarget, OutputFile};
use crate::videos::{Videos, colours};

pub static ENTRY: Entry = Entry {
    name: "video",
    about: "encodes mp4, mov, mkv, webm, avi, ts or gif files with ffmpeg",
    example: "pattern frames=90 ! video path=out.mp4 crf=23",
    inputs: &[Input { media: YUV, media_by: Some(media), ..Input::VIDEO }],
    settings: &[
        Setting::path("path", PathUse::Write, "file, whose extension selects the container"),
        Setting::text("codec", "ffmpeg encoder; defaults to the usual encoder of the container").optional(),
        Setting::int("crf", 0..=63, "constant quality, lower is better; defaults to the value of the encoder")
            .optional(),
        Setting::text("preset", "preset of the encoder, such as fast; defaults to the preset of the encoder")
            .optional(),
        Setting::choice("audio", &["copy", "none"], "copy the sound and subtitles of the source, or write none")
            .default("copy"),
        PARTIAL,
    ],
    bare: Some("path"),
    check,
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    // A frame may be in the pipe while the next one is written.
    holds: Frames::Fixed(2),
    writes_tags: true,
    ..Entry::SINK
};

/// Most codecs store 4:2:0, which takes 1.5 bytes per pixel in the pipe.
const YUV: PortMedia = PortMedia::video(&[Format::I420, Format::Nv12]);

/// A GIF needs the full colours.
fn media(settings: &SettingValues) -> PortMedia {
    match settings.text("path").map(Container::of) {
        Some(Ok(Container::Gif)) => PortMedia::RGBA,
        _ => YUV,
    }
}

fn check(settings: &SettingValues) -> Result<(), String> {
    let path = settings.text("path").unwrap_or_default();
    if path == "-" {
        return Err("`video` writes files only; write `y4m path=-` and pipe it into ffmpeg".to_owned());
    }
    Container::of(path).map(drop).map_err(|error| error.to_string())
}

struct VideoSink {
    videos: Videos,
    settings: Settings,
    state: State,
}

struct Settings {
    path: String,
    container: Container,
    codec: Option<String>,
    crf: Option<i64>,
    preset: Option<String>,
    replaces: bool,
    rate: Option<Rate>,
    aspect: Option<PixelAspect>,
    /// The file whose sound is copied.
    origin: Option<StreamOrigin>,
}

#[derive(Default)]
struct State {
    reporter: Option<Reporter>,
    output: Option<Output>,
    /// The file, before its first frame.
    file: Option<OutputFile>,
}

/// A file that is being encoded.
struct Output {
    encoder: Encoder<Frame>,
    file: OutputFile,
    first: (Format, Size, Yuv),
    /// The file begins with its first frame.
    first_ns: i64,
    last_ns: i64,
    period_ns: i64,
}

impl FrameHandler for VideoSink {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { path, codec, crf, preset, .. } = &self.settings;
        let target = match OutletTarget::look(path, std::path::PathBuf::new()).map_err(HandlerError::failed)? {
            OutletTarget::File(target) => target,
            OutletTarget::Special(_) => {
                return Err(HandlerError::failed(format!("`{path}` is a pipe or a device, expected a file to write")));
            }
        };
        let codec = codec.as_deref().unwrap_or_else(|| self.container().codec());
        check_encoder(self.videos.tools(), codec, crf.is_some(), preset.is_some()).map_err(HandlerError::failed)?;
        self.state.file = Some(OutputFile::begin(target, std::path::PathBuf::new()).map_err(HandlerError::failed)?);
        let reporter = context.reporter();
        if let Some(origin) = &self.settings.origin
            && let Some(why) = origin.no_copy.filter(|_| origin.has_audio)
        {
            reporter.warn(format!("the sound of `{}` is not copied: {why}", origin.address));
        }
        self.state.reporter = Some(reporter);
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        if self.state.output.is_none() {
            self.open(frame.meta())?;
        }
        let Settings { path, .. } = &self.settings;
        let State { output: Some(output), reporter: Some(reporter), .. } = &mut self.state else {
            return Ok(Flow::Filtered);
        };
        refuse_change(path, output.first, frame.meta())?;
        let pts_ns = frame.meta().pts_ns;
        let written = output.encoder.write(pts_ns, &frame.bytes(), frame.clone(), &mut || reporter.progress());
        if let Err(error) = written {
            // An encoder that has failed takes no further frame, and its file is not playable.
            let error = HandlerError::hopeless(format!("`{path}`: {error}"));
            self.state.output = None;
            return Err(error);
        }
        output.last_ns = pts_ns;
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        let Some(file) = self.finish()? else { return Ok(()) };
        file.persist().map(drop).map_err(HandlerError::failed)
    }

    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        if self.settings.replaces {
            return self.stop().map(|()| None);
        }
        let Some(file) = self.finish()? else { return Ok(None) };
        file.persist_beside().map_err(HandlerError::failed)
    }
}

impl VideoSink {
    fn container(&self) -> Container {
        self.settings.container
    }

    /// Starts the encoder for frames like this one.
    fn open(&mut self, meta: &Meta) -> Result<(), HandlerError> {
        let Some(file) = self.state.file.take() else {
            return Err(HandlerError::hopeless("the encoder has failed and takes no further frame"));
        };
        let (settings, picture) = (&self.settings, meta.picture());
        let encoding = Encoding {
            container: self.container(),
            codec: settings.codec.clone(),
            crf: settings.crf,
            preset: settings.preset.clone(),
            format: picture.format,
            size: picture.size,
            colours: colours(picture.yuv),
            aspect: settings.aspect,
            rate: settings.rate,
        };
        if let (Some(even), Some(reporter)) = (encoding.even_size(), &self.state.reporter) {
            reporter.warn(format!(
                "{} needs even sides: the last column or row of {} is repeated, and `{}` is {even}",
                encoding.codec(),
                picture.size,
                settings.path
            ));
        }
        if let (true, Some(reporter)) = (encoding.thins(), &self.state.reporter) {
            reporter.warn(format!("`{}` gets 50 frames a second, the most that a GIF can show", settings.path));
        }
        let encoder = Encoder::start(self.videos.tools(), &encoding, file.path());
        let encoder = encoder.map_err(|error| {
            let help = match &error {
                EncodeError::NotStarted(_) => format!("; {}", vramp_media::install()),
                _ => String::new(),
            };
            HandlerError::hopeless(format!("`{}`: {error}{help}", settings.path))
        })?;
        let period_ns =
            settings.rate.map_or(40_000_000, |rate| i64::from(rate.den()) * 1_000_000_000 / i64::from(rate.num()));
        let first = (picture.format, picture.size, picture.yuv);
        self.state.output =
            Some(Output { encoder, file, first, first_ns: meta.pts_ns, last_ns: meta.pts_ns, period_ns });
        Ok(())
    }

    /// Ends the encoder and adds the sound. `None` if there was no frame.
    fn finish(&mut self) -> Result<Option<OutputFile>, HandlerError> {
        let State { output, reporter, .. } = std::mem::take(&mut self.state);
        let (Some(output), Some(reporter)) = (output, reporter) else { return Ok(None) };
        let path = &self.settings.path;
        let failed = |error: EncodeError| HandlerError::failed(format!("`{path}`: {error}"));
        let mut alive = || reporter.progress();
        output.encoder.finish(output.file.path(), &mut alive).map_err(failed)?;
        let (container, length_ns) = (self.container(), output.last_ns + output.period_ns - output.first_ns);
        let origin = self.settings.origin.as_ref().filter(|origin| origin.no_copy.is_none() && container.has_audio());
        let Some(origin) = origin.filter(|origin| origin.has_audio || origin.has_subtitles) else {
            return Ok(Some(output.file));
        };
        let start_ns = origin.start_ns.saturating_add_signed(output.first_ns);
        let sound = SoundSource {
            address: origin.address.clone(),
            start_s: (start_ns > 0).then(|| Duration::from_nanos(start_ns).as_secs_f64()),
            has_audio: origin.has_audio,
            has_subtitles: origin.has_subtitles,
        };
        let joined = output.file.another().map_err(HandlerError::failed)?;
        let duration_s = Duration::from_nanos(u64::try_from(length_ns).unwrap_or(0)).as_secs_f64();
        let paths = (output.file.path(), joined.path());
        let added = add_sound(self.videos.tools(), &sound, container, duration_s, paths, &mut alive);
        match added {
            Ok((is_added, notes)) => {
                for note in notes {
                    reporter.warn(note);
                }
                Ok(Some(if is_added { joined } else { output.file }))
            }
            Err(error) => {
                reporter.warn(format!("the sound of `{}` could not be copied: {error}", origin.address));
                Ok(Some(output.file))
            }
        }
    }
}

fn refuse_change(path: &str, first: (Format, Size, Yuv), meta: &Meta) -> Result<(), HandlerError> {
    let (number, picture) = (meta.number, meta.picture());
    let problem = if picture.size != first.1 {
        format!(
            "frame {number} is {}, but earlier frames are {}; put `resize size={}` before this sink",
            picture.size, first.1, first.1
        )
    } else if picture.format != first.0 {
        format!(
            "frame {number} is {}, but earlier frames are {}; put `convert format={}` before this sink",
            picture.format, first.0, first.0
        )
    } else if picture.yuv != first.2 {
        format!("frame {number} has other colours than earlier frames; put `convert format=rgba8` before this sink")
    } else {
        return Ok(());
    };
    Err(HandlerError::failed(format!("`{path}`: {problem}")))
}

pub(crate) fn make(videos: &Videos, setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.text("path")?;
    let copies = setup.word("audio")? == "copy";
    let settings = Settings {
        path: path.to_owned(),
        container: Container::of(path).map_err(HandlerError::failed)?,
        codec: setup.settings.text("codec").map(str::to_owned),
        crf: setup.settings.int("crf"),
        preset: setup.settings.text("preset").map(str::to_owned),
        replaces: replaces(setup.settings),
        rate: setup.rate,
        aspect: setup.tags.and_then(|tags| tags.aspect).filter(|aspect| *aspect != PixelAspect::UNKNOWN),
        origin: setup.tags.and_then(|tags| tags.origin.clone()).filter(|_| copies),
    };
    Ok(Worker::frames(VideoSink { videos: videos.clone(), settings, state: State::default() }))
}
