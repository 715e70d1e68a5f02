//! `every`: thins a stream out.
//!
//! Owns which frames pass.
//! Does not average or blend: frames in between are filtered out.
//!
//! Always: the first frame passes.

use vramp_plan::catalog::{Entry, Frames, Setting};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

/// What `every` declares.
pub static ENTRY: Entry = Entry {
    name: "every",
    about: "lets the first frame pass and then one in n",
    example: "pattern ! every n=10 ! null",
    settings: &[Setting::int("n", 1..=1_000_000, "one frame in how many")],
    bare: Some("n"),
    every: Frames::Setting("n"),
    ..Entry::CONTROL
};

/// Nothing of its own: the node around it counts frames, since places without a frame count too.
#[derive(Debug)]
struct Every;

impl FrameHandler for Every {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(pass_on(call))
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Every))
}
