//! `waveform`: a curve over the picture, either a running sine or the brightness of its columns.
//!
//! Owns which of the two.
//! Does not keep a history: the curve belongs to this frame.
//!
//! Always: which rows a column's curve covers is decided in integers or once on the host.

use vramp_plan::Size;
use vramp_plan::catalog::{Class, Entry, Family, Kernel, KernelRule, Liveness, Settings, Units, ValueType, Work};

use crate::declare::defaults;

use super::boxed;

/// What `waveform` declares.
pub static ENTRY: Entry = Entry {
    name: "waveform",
    family: Family::Draw,
    about: "draws a sine wave, or the mean brightness of each column",
    example: "pattern ! waveform kind=luma ! null",
    settings: &[defaults(
        "kind",
        ValueType::Choice(&["sine", "luma"]),
        "sine",
        Liveness::Rebuild,
        "a running sine, or the picture's own brightness",
    )],
    bare: Some("kind"),
    kernel: KernelRule::By { setting: "kind", cases: &[("luma", Kernel::REDUCTION)], otherwise: Kernel::POINTWISE },
    work: Work { class: Class::Draw, units: Units::PerFrameBy(touched) },
    ..Entry::FILTER
};

/// The sine is three pixels in each column; for luma all pixels are read and the lowest quarter is drawn.
fn touched(settings: &Settings, frame: Size) -> f64 {
    let width = f64::from(frame.width);
    if settings.text("kind") == Some("luma") {
        frame.pixels() as f64 + boxed(width, f64::from(frame.height / 4), frame)
    } else {
        boxed(width, 3.0, frame)
    }
}
