//! `null`: counts frames and forgets them.
//!
//! Owns nothing but the count.
//! Does not read a pixel and does not bring frames down from the device.
//!
//! Always: a frame it counts has been written completely.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Input, Work};

/// What `null` declares.
pub static ENTRY: Entry = Entry {
    name: "null",
    about: "counts finished frames, wherever they are, and drops them",
    example: "pattern frames=100 ! null",
    inputs: &[Input::ANY],
    spaces: &[Space::Gpu, Space::Cpu],
    work: Work::NONE,
    blocking: false,
    ..Entry::SINK
};
