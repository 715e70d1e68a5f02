//! `video`: encodes video files with an ffmpeg process, which gets raw frames through a pipe.
//!
//! The file is playable even if the run was interrupted.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Input, PathUse, PortMedia, Setting, Units, Work};

pub static ENTRY: Entry = Entry {
    name: "video",
    about: "encodes mp4, mkv, webm or gif files with ffmpeg",
    example: "pattern frames=90 ! video path=out.mp4 crf=23",
    // Most codecs store 4:2:0, which takes 1.5 bytes per pixel in the pipe. A GIF needs the full colours.
    inputs: &[Input { media: PortMedia::video(&[Format::I420, Format::Rgba8]), ..Input::VIDEO }],
    settings: &[
        Setting::path("path", PathUse::Write, "file, whose extension selects the container"),
        Setting::text("codec", "ffmpeg encoder; defaults to the usual encoder of the container").optional(),
        Setting::int("crf", 0..=63, "constant quality, lower is better; defaults to the value of the encoder")
            .optional(),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};
