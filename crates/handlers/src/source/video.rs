//! `video`: whatever ffmpeg can decode, from a file or an address.
//!
//! Owns the declaration of what to decode and from where.
//! Does not decode: an ffmpeg process does, and hands over raw frames through a pipe.
//!
//! Always: frames arrive as 4:2:0, the form nearly all video has inside.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Output, PathUse, PortMedia, RateRule, Setting, SizeRule, Units, Work};

/// The longest moment that can be named: a year, in seconds.
const YEAR_S: f64 = 366.0 * 24.0 * 3600.0;

/// What the source `video` declares.
pub static ENTRY: Entry = Entry {
    name: "video",
    about: "decodes a video file or address with ffmpeg",
    example: "video path=clip.mp4 start=10 duration=5 ! null",
    outputs: &[Output {
        media: PortMedia::video(&[Format::I420]),
        size: SizeRule::Probed(None),
        rate: RateRule::Probed(None),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::path("path", PathUse::Read, "a file or an address that ffmpeg can open"),
        Setting::number("start", 0.0..=YEAR_S, "seconds to skip at the beginning").optional(),
        Setting::number("duration", 0.001..=YEAR_S, "seconds to read; to the end if not given").optional(),
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
            "ffmpeg's hardware decoder to use",
        )
        .default("none"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};
