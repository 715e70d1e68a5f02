//! `video`: decodes a file or an address with an ffmpeg process, which sends raw 4:2:0 frames through a pipe. Nearly
//! all video is stored as 4:2:0.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Output, PathUse, PortMedia, RateRule, Setting, SizeRule, Units, Work};

/// A year in seconds, the longest time that can be set.
const YEAR_S: f64 = 366.0 * 24.0 * 3600.0;

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
        Setting::path("path", PathUse::Read, "file or address that ffmpeg can open"),
        Setting::number("start", 0.0..=YEAR_S, "seconds to skip at the beginning").optional(),
        Setting::number("duration", 0.001..=YEAR_S, "seconds to read; reads to the end by default").optional(),
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
            "hardware decoder of ffmpeg",
        )
        .default("none"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};
