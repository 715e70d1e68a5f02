//! `wgsl`: a shader of the user's own.
//!
//! Owns the shader's text and whatever settings it declares.
//! Does not have a twin on the host, so it needs the device.
//!
//! Always: the shader is checked before the first frame, and a mistake is shown with its line.

use vramp_plan::Space;
use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Units, ValueType, Work};

use crate::declare::optional;

/// What `wgsl` declares.
pub static ENTRY: Entry = Entry {
    name: "wgsl",
    about: "runs your own WGSL pixel function or kernel",
    example: "pattern ! wgsl path=glow.wgsl strength=0.5 ! null",
    settings: &[
        optional("path", ValueType::Path, Liveness::Fixed, "a file with the shader"),
        optional("code", ValueType::Text, Liveness::Rebuild, "the shader itself"),
    ],
    bare: Some("path"),
    one_of: &[&["path", "code"]],
    open_settings: true,
    spaces: &[Space::Gpu],
    kernel: KernelRule::Always(Kernel::OPAQUE),
    // What it computes is not known here; a handful of pixel functions is a middling guess.
    work: Work { class: Class::Pixel, units: Units::PerPixel(4.0) },
    ..Entry::FILTER
};
