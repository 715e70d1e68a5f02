//! `delay`: outputs the frame of N frames ago.
//!
//! For frame n it outputs the pixels of frame n - N with the number and time of frame n, and nothing for the first N
//! frames. With `keep-times` every frame leaves N frames later under its own number and time.

use vramp_plan::catalog::{Entry, Frames, Setting, When};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

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

/// Has no state: the node around it holds frames back, since slots without a frame count too.
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

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Delay))
}
