//! `raw`: writes frames without any header, back to back.
//!
//! Owns where they go.
//! Does not choose a format: frames are written as they come.
//!
//! Always: rows and planes are written without padding, whatever they have in memory.

use vramp_plan::catalog::{Entry, Input, Liveness, ValueType};

use crate::declare::required;

/// What the sink `raw` declares.
pub static ENTRY: Entry = Entry {
    name: "raw",
    about: "writes headerless frames to a file or standard output",
    example: "pattern size=64x64 frames=1 ! raw path=out.rgba",
    inputs: &[Input::ANY],
    settings: &[required("path", ValueType::Path, Liveness::Fixed, "a file, or - for standard output")],
    bare: Some("path"),
    ..Entry::SINK
};
