//! `camera`: captures live frames through ffmpeg.
//!
//! A camera whose size and rate are set is not opened for planning; otherwise ffprobe opens it for a moment. A camera
//! cannot wait, so links after a camera keep only the newest frame.

use std::time::Duration;

use vramp_media::{DecoderInput, Reading, camera_input};
use vramp_plan::catalog::{
    Class, Entry, Output, PortMedia, ProbeError, Probed, RateRule, Setting, SettingValues, SizeRule, Units, When, Work,
};
use vramp_plan::{Format, Rate, Size};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker};

use super::playback::{Playback, Playing};
use crate::videos::Videos;

/// The longest wait for a camera.
const TIMEOUT: Duration = Duration::from_secs(10);

pub static ENTRY: Entry = Entry {
    name: "camera",
    about: "captures from a camera with ffmpeg (v4l2, avfoundation, dshow)",
    example: "camera device=0 size=1280x720 fps=30 ! terminal",
    outputs: &[Output {
        media: PortMedia::video(&[Format::I420]),
        size: SizeRule::Probed(Some("size")),
        rate: RateRule::Probed(Some("fps")),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::text("device", "number, path or name of the camera, or lavfi:testsrc2 for a made-up picture")
            .default("0"),
        Setting::size("size", "frame size, which the camera must support").optional(),
        Setting::rate("fps", "frame rate, which the camera must support").optional(),
    ],
    // High-definition cameras send JPEG images over USB, and ffmpeg decodes the images.
    work: Work { class: Class::Codec, units: Units::PerPixel(0.125) },
    live: When::Always,
    ..Entry::SOURCE
};

struct Camera {
    videos: Videos,
    settings: Settings,
    state: Option<Playback>,
}

struct Settings {
    device: String,
    size: Option<Size>,
    rate: Option<Rate>,
}

impl Settings {
    fn of(settings: &SettingValues) -> Settings {
        Settings {
            device: settings.text("device").unwrap_or("0").to_owned(),
            size: settings.size("size"),
            rate: settings.rate("fps"),
        }
    }
}

impl FrameHandler for Camera {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { device, size, rate } = &self.settings;
        let size = match size {
            Some(size) => *size,
            None => look(&self.videos, &self.settings).map_err(HandlerError::failed)?.size,
        };
        let playing = Playing {
            name: format!("camera {device}"),
            input: DecoderInput::Device(camera_input(device, self.settings.size, *rate)),
            hwaccel: None,
            again: false,
            live: true,
            stops: false,
            timeout: TIMEOUT,
            period_ns: 0,
        };
        let reading = Reading::of_camera(size);
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
    Worker::frames(Camera { videos: videos.clone(), settings: Settings::of(setup.settings), state: None })
}

/// Opens the camera if its size or rate is not set.
pub(crate) fn probe(videos: &Videos, settings: &SettingValues) -> Result<Probed, ProbeError> {
    let settings = Settings::of(settings);
    if settings.size.is_some() && settings.rate.is_some() {
        return Ok(Probed::default());
    }
    let reading = look(videos, &settings)?;
    Ok(Probed { size: Some(reading.size), rate: reading.rate, ..Probed::default() })
}

fn look(videos: &Videos, settings: &Settings) -> Result<Reading, ProbeError> {
    videos.look_at_camera(&settings.device, settings.size, settings.rate, TIMEOUT)
}
