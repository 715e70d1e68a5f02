//! `raw`: frames without any header, back to back.
//!
//! Owns the settings that stand in for the missing header.
//! Does not guess: size, format and rate are what was set.
//!
//! Always: rows and planes follow each other without padding in the file, whatever they have in memory.

use vramp_plan::catalog::{Entry, FormatRule, Liveness, Output, RateRule, SizeRule, ValueType};

use crate::declare::{defaults, required};

/// What the source `raw` declares.
pub static ENTRY: Entry = Entry {
    name: "raw",
    about: "reads headerless frames from a file or standard input",
    example: "raw path=clip.rgba size=640x480 format=rgba8 ! null",
    outputs: &[Output {
        format: FormatRule::Setting("format"),
        size: SizeRule::Setting("size"),
        rate: RateRule::Setting("fps"),
        ..Output::SAME
    }],
    settings: &[
        defaults("path", ValueType::Path, "-", Liveness::Fixed, "a file, or - for standard input"),
        required("size", ValueType::Size, Liveness::Fixed, "width and height of every frame"),
        defaults("format", ValueType::Format, "rgba8", Liveness::Fixed, "how the frames are stored"),
        defaults("fps", ValueType::Rate, "30", Liveness::Fixed, "frames per second"),
    ],
    ..Entry::SOURCE
};
