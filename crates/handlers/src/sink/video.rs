//! `video`: compressed video files, made by ffmpeg.
//!
//! Owns the declaration of file, codec and quality.
//! Does not encode: an ffmpeg process does, fed with raw frames through a pipe.
//!
//! Always: the file is playable also when the run was interrupted.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Input, PathUse, PortMedia, Setting, Units, Work};

/// What the sink `video` declares.
pub static ENTRY: Entry = Entry {
    name: "video",
    about: "encodes mp4, mkv, webm or gif files with ffmpeg",
    example: "pattern frames=90 ! video path=out.mp4 crf=23",
    // 4:2:0 is what most codecs store and 1.5 bytes a pixel through the pipe; gif wants the colours themselves.
    inputs: &[Input { media: PortMedia::video(&[Format::I420, Format::Rgba8]), ..Input::VIDEO }],
    settings: &[
        Setting::path("path", PathUse::Write, "the file; its ending chooses the container"),
        Setting::text("codec", "ffmpeg's encoder; the container's usual one if not given").optional(),
        Setting::int("crf", 0..=63, "constant quality, lower is better; the encoder's own if not given").optional(),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};
