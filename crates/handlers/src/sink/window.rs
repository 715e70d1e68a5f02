//! `window`: shows frames in a window.
//!
//! Owns the window's title and extent.
//! Does not bring frames down: on the device they are presented from where they are.
//!
//! Always: the newest frame is the one that is shown.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Setting};

/// What `window` declares.
pub static ENTRY: Entry = Entry {
    name: "window",
    about: "shows the frames in a window",
    example: "pattern ! window title=ball",
    settings: &[
        Setting::text("title", "what the window is called").default("vramp"),
        Setting::bool("fullscreen", "whether it covers the screen").default("false"),
    ],
    spaces: &[Space::Gpu, Space::Cpu],
    ..Entry::SINK
};
