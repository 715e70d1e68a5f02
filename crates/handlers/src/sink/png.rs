//! `png`: lossless picture files.
//!
//! Owns where they go and how hard to compress.
//! Does not change a pixel: quality is about time and bytes only.
//!
//! Always: a file has its final name only once it is complete.

use vramp_plan::catalog::{Class, Entry, Liveness, Units, ValueType, Work};

use crate::declare::{int, optional, required};

/// What `png` declares.
pub static ENTRY: Entry = Entry {
    name: "png",
    about: "writes PNG files, one per frame",
    example: "pattern frames=3 ! png path=out-%04d.png",
    settings: &[
        required("path", ValueType::Path, Liveness::Fixed, "the file; %04d in it stands for the frame number"),
        optional(
            "quality",
            int(0, 100),
            Liveness::Fixed,
            "from 0 (quick) to 100 (smallest file); the picture is the same",
        ),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SINK
};
