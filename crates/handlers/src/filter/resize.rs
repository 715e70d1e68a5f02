//! `resize`: the same picture with more or fewer pixels.
//!
//! Owns the new size and how pixels in between are found.
//! Does not crop or keep proportions: both axes are what was asked for.
//!
//! Always: a side is at least one pixel; the four channels are treated alike.

use vramp_plan::Size;
use vramp_plan::catalog::{
    Class, Entry, Kernel, KernelRule, Liveness, Output, Settings, SizeRule, Units, ValueType, Work,
};

use crate::declare::{defaults, number, optional};

/// What `resize` declares.
pub static ENTRY: Entry = Entry {
    name: "resize",
    about: "scales the picture to a size or by a factor",
    example: "pattern ! resize size=640x360 filter=area ! null",
    outputs: &[Output { size: SizeRule::SettingOrScaled("size", "scale"), ..Output::VIDEO }],
    settings: &[
        optional("size", ValueType::Size, Liveness::Fixed, "the new width and height"),
        optional("scale", number(0.000_1, 1000.0), Liveness::Fixed, "the factor for both sides"),
        defaults(
            "filter",
            ValueType::Choice(&["nearest", "bilinear", "area", "lanczos"]),
            "bilinear",
            Liveness::Rebuild,
            "how pixels are found: quick, smooth, exact means, sharpest",
        ),
    ],
    bare: Some("size"),
    one_of: &[&["size", "scale"]],
    kernel: KernelRule::By {
        setting: "filter",
        cases: &[("nearest", Kernel::GATHER), ("area", Kernel::separable(3)), ("lanczos", Kernel::separable(6))],
        otherwise: Kernel::stencil(4),
    },
    work: Work { class: Class::Sample, units: Units::PerFrameBy(samples) },
    small: true,
    ..Entry::FILTER
};

/// One bilinear sample is four taps. The two-pass filters take their taps along each axis, as many more as the
/// picture shrinks by.
fn samples(settings: &Settings, input: Size, output: Size) -> f64 {
    let shrink = |from: u32, to: u32| (f64::from(from) / f64::from(to)).max(1.0);
    let (across, down) = (shrink(input.width, output.width), shrink(input.height, output.height));
    let per_pixel = match settings.text("filter") {
        Some("nearest") => 0.25,
        Some("area") => (across + 1.0 + down + 1.0) / 4.0,
        Some("lanczos") => 6.0 * (across + down) / 4.0,
        _ => 1.0,
    };
    per_pixel * output.pixels() as f64
}
