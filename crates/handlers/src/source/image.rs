//! `image`: pictures from files, one after another.
//!
//! Owns the declaration of which files and how fast.
//! Does not decode; the size of the first file is found by probing.
//!
//! Always: files come in the order of their names.

use vramp_plan::catalog::{Class, Entry, Liveness, Output, RateRule, SizeRule, Units, ValueType, Work};

use crate::declare::{defaults, required};

/// What `image` declares.
pub static ENTRY: Entry = Entry {
    name: "image",
    about: "reads PNG, JPEG, WebP, BMP, TIFF and GIF files",
    example: "image path=photos/*.jpg ! resize size=640x480 ! null",
    outputs: &[Output { size: SizeRule::Probed(None), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[
        required("path", ValueType::Path, Liveness::Fixed, "a file, or a pattern such as photos/*.png"),
        defaults("loop", ValueType::Bool, "false", Liveness::Fixed, "whether to begin again after the last picture"),
        defaults("fps", ValueType::Rate, "30", Liveness::Fixed, "pictures per second"),
    ],
    bare: Some("path"),
    work: Work { class: Class::Codec, units: Units::PerPixel(1.0) },
    ..Entry::SOURCE
};
