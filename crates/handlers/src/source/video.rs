//! `video`: whatever ffmpeg can decode, from a file or an address.
//!
//! Owns the declaration of what to decode and from where.
//! Does not decode: an ffmpeg process does, and hands over raw frames through a pipe.
//!
//! Always: frames arrive as 4:2:0, the form nearly all video has inside.

use vramp_plan::Format;
use vramp_plan::catalog::{
    Class, Entry, Liveness, Output, PathUse, PortMedia, RateRule, SizeRule, Units, ValueType, Work,
};

use crate::declare::{defaults, number, optional, required};

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
        required("path", ValueType::Path(PathUse::Read), Liveness::Fixed, "a file or an address that ffmpeg can open"),
        optional("start", number(0.0, YEAR_S), Liveness::Fixed, "seconds to skip at the beginning"),
        optional("duration", number(0.001, YEAR_S), Liveness::Fixed, "seconds to read; to the end if not given"),
        defaults(
            "hwaccel",
            ValueType::Choice(&[
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
            ]),
            "none",
            Liveness::Fixed,
            "ffmpeg's hardware decoder to use",
        ),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};
