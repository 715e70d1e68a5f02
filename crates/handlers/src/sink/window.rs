//! `window`: shows the newest frame in a window. Frames on the device are presented without a download.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Setting};

pub static ENTRY: Entry = Entry {
    name: "window",
    about: "shows frames in a window",
    example: "pattern ! window title=ball",
    settings: &[
        Setting::text("title", "window title").default("vramp"),
        Setting::bool("fullscreen", "cover the whole screen").default("false"),
    ],
    spaces: &[Space::Gpu, Space::Cpu],
    ..Entry::SINK
};
