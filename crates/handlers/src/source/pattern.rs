//! `pattern`: moving test pictures made from formulas.
//!
//! Owns the kinds of picture there are and what of them can be set.
//! Does not keep time: a frame follows from its number alone.
//!
//! Always: equal settings and an equal frame number give equal pixels.

use vramp_plan::catalog::{
    Class, Entry, Family, Kernel, KernelRule, Liveness, Output, RateRule, Settings, SizeRule, Units, ValueType, Work,
};

use crate::declare::{defaults, int, optional};

/// What `pattern` declares.
pub static ENTRY: Entry = Entry {
    name: "pattern",
    family: Family::Source,
    about: "makes test pictures: a moving ball, colour bars, gradients, noise",
    example: "pattern kind=ball size=640x480 frames=60 ! null",
    inputs: &[],
    outputs: &[Output { size: SizeRule::Setting("size"), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[
        defaults(
            "kind",
            ValueType::Choice(&["ball", "bars", "gradient", "checker", "noise", "solid", "disc"]),
            "ball",
            Liveness::Rebuild,
            "which picture",
        ),
        defaults("size", ValueType::Size, "1280x720", Liveness::Fixed, "width and height"),
        defaults("fps", ValueType::Rate, "30", Liveness::Fixed, "frames per second, which also sets the motion"),
        optional("frames", int(1, i64::MAX), Liveness::Fixed, "how many frames to make; endless if not given"),
        defaults("color", ValueType::Color, "000000", Liveness::Live, "the colour of kind=solid"),
        defaults("seed", int(0, u32::MAX as i64), "0", Liveness::Live, "where the noise of kind=noise starts"),
        defaults("label", ValueType::Bool, "true", Liveness::Rebuild, "whether kind=ball shows the frame number"),
    ],
    bare: Some("kind"),
    kernel: KernelRule::Always(Kernel::GENERATOR),
    work: Work { class: Class::Pixel, units: Units::PerPixelBy(work) },
    // The glyphs of the label.
    small: true,
    ..Entry::FILTER
};

/// A flat colour is little more than the store; noise hashes every pixel twice over.
fn work(settings: &Settings) -> f64 {
    match settings.text("kind") {
        Some("noise") => 3.0,
        Some("gradient" | "disc") => 1.0,
        _ => 0.5,
    }
}
