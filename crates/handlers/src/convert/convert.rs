//! `convert`: the same picture in another pixel format.
//!
//! Owns the declaration of every pair of formats.
//! Does not scale or move pixels.
//!
//! Always: size and rate stay; converting to the format a frame already has changes nothing.

use vramp_plan::catalog::{
    Class, Entry, Family, FormatRule, Input, Kernel, KernelRule, Liveness, Output, Units, ValueType, Work,
};

use crate::declare::required;

/// What `convert` declares.
pub static ENTRY: Entry = Entry {
    name: "convert",
    family: Family::Convert,
    about: "changes the pixel format; inserted by itself where formats differ",
    example: "pattern ! convert format=i420 ! null",
    inputs: &[Input::ANY],
    outputs: &[Output { format: FormatRule::Setting("format"), ..Output::SAME }],
    settings: &[required("format", ValueType::Format, Liveness::Fixed, "the format to convert to")],
    bare: Some("format"),
    // To rgba8 each pixel is made from one place; towards smaller chroma planes four pixels are averaged into one.
    kernel: KernelRule::By { setting: "format", cases: &[("rgba8", Kernel::GATHER)], otherwise: Kernel::stencil(4) },
    // A matrix and the chroma samples: about two pixel functions.
    work: Work { class: Class::Pixel, units: Units::PerPixel(2.0) },
    ..Entry::FILTER
};
