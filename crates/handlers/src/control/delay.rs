//! `delay`: an older picture now.
//!
//! Owns how many frames are held, and under which times they leave.
//!
//! Always: what leaves for frame n is the picture of frame n - N, with the number and time of frame n, and nothing leaves
//! for the first N. With `keep-times` every frame leaves, N frames later, under its own number and time.

use vramp_plan::catalog::{Entry, Frames, Setting, When};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

/// What `delay` declares.
pub static ENTRY: Entry = Entry {
    name: "delay",
    about: "shows the picture of a number of frames ago, under the time of now",
    example: "pattern ! delay frames=5 ! null",
    // Every held frame is memory in a pool: two minutes at 30 frames a second are more than any machine has at 1080p.
    settings: &[
        Setting::int("frames", 0..=3600, "how many frames ago"),
        Setting::bool("keep-times", "frames keep their own times and leave that many frames later").default("false"),
    ],
    bare: Some("frames"),
    delay: Frames::Setting("frames"),
    keeps_times: When::Setting("keep-times"),
    stateful: true,
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
