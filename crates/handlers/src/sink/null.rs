//! `null`: drops frames; the node around the handler counts them.
//!
//! The handler reads no pixels and downloads nothing. A frame is counted once the device has finished it.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Input, Work};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker};

pub static ENTRY: Entry = Entry {
    name: "null",
    about: "drops frames, on the device or in host memory; the run counts the finished frames",
    example: "pattern frames=100 ! null",
    inputs: &[Input::EVERY],
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

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Null))
}
