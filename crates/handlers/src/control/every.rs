//! `every`: thins a stream out.
//!
//! Owns the count of frames since the last one it let pass.
//! Does not average or blend: frames in between are filtered out.
//!
//! Always: the first frame passes.

use vramp_plan::catalog::{Entry, Frames, Liveness};

use crate::declare::{int, required};

/// What `every` declares.
pub static ENTRY: Entry = Entry {
    name: "every",
    about: "lets the first frame pass and then one in n",
    example: "pattern ! every n=10 ! null",
    settings: &[required("n", int(1, 1_000_000), Liveness::Fixed, "one frame in how many")],
    bare: Some("n"),
    every: Frames::Setting("n"),
    ..Entry::CONTROL
};
