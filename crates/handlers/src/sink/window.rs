//! `window`: shows frames in a window.
//!
//! Owns the window's title and extent.
//! Does not bring frames down: on the device they are presented from where they are.
//!
//! Always: the newest frame is the one that is shown.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Liveness, ValueType};

use crate::declare::defaults;

/// What `window` declares.
pub static ENTRY: Entry = Entry {
    name: "window",
    about: "shows the frames in a window",
    example: "pattern ! window title=ball",
    settings: &[
        defaults("title", ValueType::Text, "vramp", Liveness::Fixed, "what the window is called"),
        defaults("fullscreen", ValueType::Bool, "false", Liveness::Fixed, "whether it covers the screen"),
    ],
    spaces: &[Space::Gpu, Space::Cpu],
    ..Entry::SINK
};
