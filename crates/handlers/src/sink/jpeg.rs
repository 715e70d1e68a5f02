//! `jpeg`: small picture files with some loss.
//!
//! Owns where they go and how much is lost.
//! Does not keep alpha: JPEG has none.
//!
//! Always: a file has its final name only once it is complete.

use vramp_plan::Format;
use vramp_plan::catalog::{Class, Entry, Input, Liveness, PortMedia, Units, ValueType, Work};

use crate::declare::{defaults, int, required};

/// What `jpeg` declares.
pub static ENTRY: Entry = Entry {
    name: "jpeg",
    about: "writes JPEG files, one per frame",
    example: "pattern frames=3 ! jpeg path=out-%04d.jpg quality=85",
    inputs: &[Input { media: PortMedia::video(&[Format::Rgba8, Format::Rgb8, Format::Gray8]), ..Input::VIDEO }],
    settings: &[
        required("path", ValueType::Path, Liveness::Fixed, "the file; %04d in it stands for the frame number"),
        defaults("quality", int(1, 100), "90", Liveness::Fixed, "from 1 (smallest file) to 100 (least loss)"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};
