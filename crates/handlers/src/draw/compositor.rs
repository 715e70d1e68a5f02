//! `compositor`: up to eight pictures in one.
//!
//! Owns the layout and the size of the whole.
//! Does not wait for inputs that are not linked, or have nothing yet.
//!
//! Always: every pixel is written; where no input lies it is opaque black.

use vramp_plan::catalog::{
    Class, Entry, Family, Input, Kernel, KernelRule, Liveness, Output, SizeRule, Units, ValueType, Work,
};

use crate::declare::{defaults, optional};

/// What `compositor` declares.
pub static ENTRY: Entry = Entry {
    name: "compositor",
    family: Family::Draw,
    about: "puts up to eight pictures into one",
    example: "pattern ! compositor size=640x480 name=all ! null; pattern kind=bars ! all.in1",
    inputs: &[
        Input { name: "in0", ..Input::VIDEO },
        Input { name: "in1", required: false, ..Input::VIDEO },
        Input { name: "in2", required: false, ..Input::VIDEO },
        Input { name: "in3", required: false, ..Input::VIDEO },
        Input { name: "in4", required: false, ..Input::VIDEO },
        Input { name: "in5", required: false, ..Input::VIDEO },
        Input { name: "in6", required: false, ..Input::VIDEO },
        Input { name: "in7", required: false, ..Input::VIDEO },
    ],
    outputs: &[Output { size: SizeRule::SettingOrInput("size"), ..Output::VIDEO }],
    settings: &[
        // The cells are worked out on the host and reach the kernel as parameters.
        defaults(
            "layout",
            ValueType::Choice(&["grid", "row", "column", "pip"]),
            "grid",
            Liveness::Live,
            "where the inputs go; pip puts all but the first into the lower right",
        ),
        optional("size", ValueType::Size, Liveness::Fixed, "size of the whole; that of the lead input if not given"),
    ],
    bare: Some("layout"),
    kernel: KernelRule::Always(Kernel::GATHER),
    work: Work { class: Class::Sample, units: Units::PerPixel(1.0) },
    ..Entry::FILTER
};
