//! `delay`: outputs the frame of N frames ago.
//!
//! For frame n it outputs the pixels of frame n - N with the number and time of frame n, and nothing for the first N
//! frames. With `keep-times` every frame leaves N frames later under its own number and time.

use vramp_plan::catalog::{Entry, Frames, Setting, When};

pub static ENTRY: Entry = Entry {
    name: "delay",
    about: "outputs the frame of N frames ago, under the current time",
    example: "pattern ! delay frames=5 ! null",
    // Every held frame is memory in a pool: two minutes at 30 fps need more than any machine has at 1080p.
    settings: &[
        Setting::int("frames", 0..=3600, "delay in frames"),
        Setting::bool("keep-times", "keep each frame's own time and output it that many frames later").default("false"),
    ],
    bare: Some("frames"),
    delay: Frames::Setting("frames"),
    keeps_times: When::Setting("keep-times"),
    stateful: true,
    ..Entry::CONTROL
};
