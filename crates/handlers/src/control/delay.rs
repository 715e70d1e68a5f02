//! `delay`: holds frames back.
//!
//! Owns how many frames are held.
//! Does not change their timestamps: they arrive later, unaltered.
//!
//! Always: once full it gives one frame for each it takes; at the end it gives back all it holds.

use vramp_plan::catalog::{Entry, Frames, Liveness, Status};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use crate::declare::{int, required};

use super::pass_on;

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
    status: Status::Runs,
    ..Entry::CONTROL
};

/// Nothing of its own: the node around it holds frames back, since places without a frame count too.
#[derive(Debug)]
struct Delay;

impl FrameHandler for Delay {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(pass_on(call))
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Delay))
}
