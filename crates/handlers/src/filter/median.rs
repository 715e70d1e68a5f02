//! `median`: the middle value of a square, channel by channel.
//!
//! Owns the side of the square.
//! Does not mix channels.
//!
//! Always: every value that leaves was one in the square; pixels beyond the border repeat the outermost ones.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Liveness, Settings, Units, ValueType, Work};

use crate::declare::defaults;

/// What `median` declares.
pub static ENTRY: Entry = Entry {
    name: "median",
    about: "replaces each value by the middle one around it; removes specks",
    example: "pattern ! median size=3 ! null",
    settings: &[defaults(
        "size",
        ValueType::Choice(&["3", "5"]),
        "3",
        Liveness::Rebuild,
        "side of the square in pixels",
    )],
    bare: Some("size"),
    kernel: KernelRule::By { setting: "size", cases: &[("3", Kernel::stencil(9))], otherwise: Kernel::stencil(25) },
    work: Work { class: Class::Sort, units: Units::PerPixelBy(exchanges) },
    ..Entry::FILTER
};

/// Compare-exchanges of the shortest known median networks of 9 and 25 values.
fn exchanges(settings: &Settings) -> f64 {
    if settings.text("size") == Some("5") { 99.0 } else { 19.0 }
}
