//! `delay`: outputs the frame that arrived N frames earlier.
//!
//! For frame n the handler outputs the pixels of frame n - N with the number and time of frame n. For the first N
//! frames the handler outputs nothing. With `keep-times` every frame leaves N frames later under its own number and
//! time.

use vramp_plan::catalog::{Entry, Frames, Setting, When};

pub static ENTRY: Entry = Entry {
    name: "delay",
    about: "outputs the frame that arrived N frames earlier, with the number and time of the current frame",
    example: "pattern ! delay frames=5 ! null",
    // Every held frame takes memory from a pool: 3600 frames, two minutes at 30 fps, take 30 GB at 1080p.
    settings: &[
        Setting::int("frames", 0..=3600, "delay in frames"),
        Setting::bool("keep-times", "output each frame with its own number and time").default("false"),
    ],
    bare: Some("frames"),
    delay: Frames::Setting("frames"),
    keeps_times: When::Setting("keep-times"),
    stateful: true,
    ..Entry::CONTROL
};
