//! `every`: passes the first frame and then every nth frame. The other frames are filtered out, without blending.

use vramp_plan::catalog::{Entry, Frames, Setting};

pub static ENTRY: Entry = Entry {
    name: "every",
    about: "passes the first frame and then every nth frame",
    example: "pattern ! every n=10 ! null",
    settings: &[Setting::int("n", 1..=1_000_000, "interval in frames")],
    bare: Some("n"),
    every: Frames::Setting("n"),
    ..Entry::CONTROL
};
