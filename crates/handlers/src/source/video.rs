//! `video`: decodes a file or an address with an ffmpeg process, which sends raw frames with their times through a pipe.
//!
//! Frames have the decoder's own format, most often 4:2:0. The plan lists what ffmpeg converts before: more than eight
//! bits, interlacing, HDR.

use std::sync::Arc;
use std::time::Duration;

use vramp_media::{Address, DecoderInput, MediaFile, Reading};
use vramp_plan::catalog::{
    Class, Entry, FormatRule, Output, PathUse, PortMedia, ProbeError, Probed, RateRule, Setting, SettingValues,
    SizeRule, StreamLength, Units, When, Work,
};
use vramp_plan::{Content, Format, Size, StreamOrigin, StreamTags};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker};

use super::playback::{Playback, Playing};
use crate::videos::Videos;

/// A year in seconds, the longest time that can be set.
const YEAR_S: f64 = 366.0 * 24.0 * 3600.0;

pub static ENTRY: Entry = Entry {
    name: "video",
    about: "decodes a video file or address with ffmpeg",
    example: "video path=clip.mp4 start=10 duration=5 ! null",
    outputs: &[Output {
        media: PortMedia::video(&[
            Format::I420,
            Format::Nv12,
            Format::I422,
            Format::I444,
            Format::Gray8,
            Format::Rgb8,
            Format::Rgba8,
        ]),
        format: FormatRule::Probed,
        size: SizeRule::Probed(None),
        rate: RateRule::Probed(None),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::path("path", PathUse::Read, "file or address that ffmpeg can open, such as rtsp://host/stream"),
        Setting::number("start", 0.0..=YEAR_S, "seconds to skip at the beginning").optional(),
        Setting::number("duration", 0.001..=YEAR_S, "seconds to read; reads to the end by default").optional(),
        Setting::bool("loop", "start again after the last frame").default("false"),
        Setting::choice(
            "hwaccel",
            &[
                "none",
                "auto",
                "vaapi",
                "cuda",
                "qsv",
                "vulkan",
                "videotoolbox",
                "d3d11va",
                "d3d12va",
                "dxva2",
                "vdpau",
                "drm",
                "mediacodec",
            ],
            "hardware decoder of ffmpeg; the CPU decodes if it does not work",
        )
        .default("none"),
        Setting::choice("errors", &["count", "stop"], "count errors of the decoder, or end the run at the first one")
            .default("count"),
        Setting::number("timeout", 0.1..=3600.0, "longest wait for the file or the network in seconds").default("10"),
    ],
    bare: Some("path"),
    // Decoding 1080p H.264 takes 8 ms, an eighth of what the class takes for a PNG file.
    work: Work { class: Class::Codec, units: Units::PerPixel(0.125) },
    live: When::LiveAddress("path"),
    ..Entry::SOURCE
};

struct VideoSource {
    videos: Videos,
    settings: Settings,
    /// What the plan assumes about the stream.
    planned: Option<(Format, Size)>,
    period_ns: i64,
    state: Option<Playback>,
}

struct Settings {
    path: String,
    start_s: Option<f64>,
    duration_s: Option<f64>,
    again: bool,
    hwaccel: Option<String>,
    stops: bool,
    timeout: Duration,
}

impl Settings {
    fn of(settings: &SettingValues) -> Settings {
        Settings {
            path: settings.text("path").unwrap_or_default().to_owned(),
            start_s: settings.number("start").filter(|start| *start > 0.0),
            duration_s: settings.number("duration"),
            again: settings.flag("loop"),
            hwaccel: settings.word("hwaccel").filter(|word| *word != "none").map(str::to_owned),
            stops: settings.word("errors") == Some("stop"),
            timeout: Duration::from_secs_f64(settings.number("timeout").unwrap_or(10.0)),
        }
    }

    fn is_live(&self) -> bool {
        Address::of(&self.path).is_live()
    }
}

impl FrameHandler for VideoSource {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { path, start_s, duration_s, again, hwaccel, stops, timeout } = &self.settings;
        let (_, reading) = self.videos.look(path, *timeout).map_err(HandlerError::failed)?;
        if let Some((format, size)) = self.planned
            && (format, size) != (reading.format, reading.size)
        {
            return Err(HandlerError::failed(format!(
                "`{path}` is now {} {} and was {format} {size} when the run was planned; restart the run",
                reading.format, reading.size
            )));
        }
        let playing = Playing {
            name: path.clone(),
            input: DecoderInput::Address {
                address: path.clone(),
                start_s: *start_s,
                duration_s: *duration_s,
                timeout: *timeout,
            },
            hwaccel: hwaccel.clone(),
            again: *again,
            live: self.settings.is_live(),
            stops: *stops,
            timeout: *timeout,
            period_ns: self.period_ns,
        };
        self.state = Some(Playback::start(self.videos.tools(), playing, reading, context.reporter())?);
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.state.as_mut().map_or(Ok(Flow::Ended), |playback| playback.send_next(call))
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.state = None;
        Ok(())
    }
}

pub(crate) fn make(videos: &Videos, setup: &Setup<'_>) -> Worker {
    let frame = setup.outputs.first().and_then(Option::as_ref).and_then(Content::frame);
    Worker::frames(VideoSource {
        videos: videos.clone(),
        settings: Settings::of(setup.settings),
        planned: frame.map(|frame| (frame.format, frame.size)),
        period_ns: setup.rate.map_or(40_000_000, |rate| i64::from(rate.den()) * 1_000_000_000 / i64::from(rate.num())),
        state: None,
    })
}

/// Size, rate, format, length and colours of a video, from ffprobe.
pub(crate) fn probe(videos: &Videos, settings: &SettingValues) -> Result<Probed, ProbeError> {
    let settings = Settings::of(settings);
    if settings.path == "-" {
        return Err(ProbeError {
            problem: "`video` cannot read standard input, because probing would consume the stream".to_owned(),
            help: "give a file or an address, or pipe y4m into `y4m path=-`".to_owned(),
        });
    }
    let (media, reading) = videos.look(&settings.path, settings.timeout)?;
    let tags = StreamTags { aspect: reading.aspect, origin: Some(origin(&settings, &media)), ..StreamTags::default() };
    Ok(Probed {
        format: Some(reading.format),
        size: Some(reading.size),
        rate: reading.rate,
        tags: Some(Arc::new(tags)),
        length: length(&settings, &media, &reading),
        notes: reading.notes,
    })
}

/// Where a sink finds the sound of the pictures.
fn origin(settings: &Settings, media: &MediaFile) -> StreamOrigin {
    let no_copy = if settings.is_live() {
        Some("the source is live")
    } else if settings.again {
        Some("the source repeats")
    } else {
        None
    };
    StreamOrigin {
        address: settings.path.clone(),
        start_ns: (settings.start_s.unwrap_or(0.0) * 1e9) as u64,
        has_audio: media.has_audio(),
        has_subtitles: media.has_subtitles(),
        no_copy,
    }
}

/// The part of the stream that is read.
fn length(settings: &Settings, media: &MediaFile, reading: &Reading) -> Option<StreamLength> {
    if settings.is_live() || settings.again {
        return None;
    }
    let whole_s = media.duration_s.map(|whole| (whole - settings.start_s.unwrap_or(0.0)).max(0.0));
    let seconds = match (whole_s, settings.duration_s) {
        (Some(whole), Some(part)) => Some(whole.min(part)),
        (whole, part) => whole.or(part),
    };
    let is_whole = settings.start_s.is_none() && settings.duration_s.is_none();
    let counted = media.video().and_then(|video| video.frames).filter(|_| is_whole);
    let frames = counted.or_else(|| {
        let rate = reading.rate?;
        Some((seconds? * f64::from(rate.num()) / f64::from(rate.den())).round() as u64)
    });
    let ns = seconds.map(|seconds| (seconds * 1e9) as u64);
    (frames.is_some() || ns.is_some()).then_some(StreamLength { frames, ns })
}
