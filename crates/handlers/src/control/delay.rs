//! `delay`: holds frames back.
//!
//! Owns the frames it holds.
//! Does not change their timestamps: they arrive later, unaltered.
//!
//! Always: once full it gives one frame for each it takes; at the end it gives back all it holds.

use vramp_plan::catalog::{Entry, Frames, Liveness};

use crate::declare::{int, required};

/// What `delay` declares.
pub static ENTRY: Entry = Entry {
    name: "delay",
    about: "hands each frame on a number of frames later",
    example: "pattern ! delay frames=5 ! null",
    // Every held frame is memory in a pool: two minutes at 30 frames a second are more than any machine has at 1080p.
    settings: &[required("frames", int(0, 3600), Liveness::Fixed, "how many frames to hold back")],
    bare: Some("frames"),
    delay: Frames::Setting("frames"),
    stateful: true,
    ..Entry::CONTROL
};
