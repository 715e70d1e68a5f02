//! `camera`: captures live frames through ffmpeg.
//!
//! The camera is not opened for planning: frame size and rate are known only if they are set. A camera cannot wait, so
//! links after a camera keep only the newest frame.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Output, PortMedia, RateRule, Setting, SizeRule, Units, When, Work};

pub static ENTRY: Entry = Entry {
    name: "camera",
    about: "captures from a camera with ffmpeg (v4l2, avfoundation, dshow)",
    example: "camera device=0 size=1280x720 fps=30 ! window",
    outputs: &[Output {
        media: PortMedia::video(&[Format::I420]),
        size: SizeRule::Probed(Some("size")),
        rate: RateRule::Probed(Some("fps")),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::text("device", "number, path or name of the camera").default("0"),
        Setting::size("size", "frame size, which the camera must support").optional(),
        Setting::rate("fps", "frame rate, which the camera must support").optional(),
    ],
    // High-definition cameras send JPEG images over USB, and ffmpeg decodes the images.
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    live: When::Always,
    ..Entry::SOURCE
};
