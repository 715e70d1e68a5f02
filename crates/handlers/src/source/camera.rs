//! `camera`: live pictures from a camera, through ffmpeg's capture inputs.
//!
//! Owns the declaration of which camera and in which mode.
//! Does not ask the camera: its size and rate are known before the start only where they are set.
//!
//! Always: it cannot be made to wait, so links behind it prefer the newest frame.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Output, PortMedia, RateRule, Setting, SizeRule, Units, Work};

/// What `camera` declares.
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
        Setting::text("device", "its number, or its path or name on this system").default("0"),
        Setting::size("size", "one of the sizes the camera can deliver").optional(),
        Setting::rate("fps", "one of the rates the camera can deliver").optional(),
    ],
    // High-definition cameras send JPEG pictures over USB, which ffmpeg decodes.
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    live: true,
    ..Entry::SOURCE
};
