//! `waveform`: a curve over the picture, either a running sine or the brightness of its columns.
//!
//! Owns which of the two.
//! Does not keep a history: the curve belongs to this frame.
//!
//! Always: which rows a column's curve covers is decided in integers or once on the host.

use vramp_plan::catalog::{Class, Entry, Family, Kernel, KernelRule, Liveness, Units, ValueType, Work};

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
    small: true,
    kernel: KernelRule::By { setting: "kind", cases: &[("luma", Kernel::REDUCTION)], otherwise: Kernel::POINTWISE },
    work: Work {
        class: Class::Draw,
        units: Units::PerFrameBy(|_, _, frame| boxed(f64::from(frame.width), 3.0, frame)),
    },
    // All pixels are read for the means; the quarter that is drawn on costs less than reading it.
    work_when: &[("kind", "luma", Work { class: Class::Reduce, units: Units::PerPixel(1.25) })],
    ..Entry::FILTER
};
