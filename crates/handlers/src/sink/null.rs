//! `null`: counts frames and forgets them.
//!
//! Owns nothing; the node around it counts.
//! Does not read a pixel and does not bring frames down from the device.
//!
//! Always: a frame it counts has been written completely.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Input, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

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

#[derive(Debug)]
struct Null;

impl FrameHandler for Null {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        drop(call.take(0));
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Null))
}
