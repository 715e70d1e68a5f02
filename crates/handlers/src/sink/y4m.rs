//! `y4m`: writes uncompressed video with a one-line header.
//!
//! Owns the formats such a stream can have and where it goes.
//! Does not convert: the planner puts a `convert` in front where one is needed.
//!
//! Always: eight bits a sample; what this writes, the source of the same name reads back unchanged.

use vramp_plan::Format;
use vramp_plan::catalog::{Entry, Input, Liveness, PortMedia, ValueType};

use crate::declare::required;

/// What the sink `y4m` declares.
pub static ENTRY: Entry = Entry {
    name: "y4m",
    about: "writes YUV4MPEG2 video to a file or standard output",
    example: "pattern frames=30 ! y4m path=out.y4m",
    inputs: &[Input {
        media: PortMedia::video(&[Format::I420, Format::I422, Format::I444, Format::Gray8]),
        ..Input::VIDEO
    }],
    settings: &[required("path", ValueType::Path, Liveness::Fixed, "a file, or - for standard output")],
    bare: Some("path"),
    ..Entry::SINK
};
