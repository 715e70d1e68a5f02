//! `y4m`: uncompressed video with a one-line header.
//!
//! Owns the formats such a stream may have.
//! Does not convert: frames leave as they are stored, and the header says how.
//!
//! Always: eight bits a sample.

use vramp_plan::Format;
use vramp_plan::catalog::{Entry, FormatRule, Liveness, Output, PortMedia, RateRule, SizeRule, ValueType};

use crate::declare::required;

/// What the source `y4m` declares.
pub static ENTRY: Entry = Entry {
    name: "y4m",
    about: "reads YUV4MPEG2 video from a file or standard input",
    example: "y4m path=clip.y4m ! null",
    outputs: &[Output {
        media: PortMedia::video(&[Format::I420, Format::I422, Format::I444, Format::Gray8]),
        format: FormatRule::Probed,
        size: SizeRule::Probed(None),
        rate: RateRule::Probed(None),
        ..Output::VIDEO
    }],
    settings: &[required("path", ValueType::Path, Liveness::Fixed, "a file, or - for standard input")],
    bare: Some("path"),
    ..Entry::SOURCE
};
