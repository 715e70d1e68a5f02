//! `every`: passes the first frame and then one in n; filters out the others without blending.

use vramp_plan::catalog::{Entry, Frames, Setting};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

pub static ENTRY: Entry = Entry {
    name: "every",
    about: "passes the first frame and then one in n",
    example: "pattern ! every n=10 ! null",
    settings: &[Setting::int("n", 1..=1_000_000, "interval in frames")],
    bare: Some("n"),
    every: Frames::Setting("n"),
    ..Entry::CONTROL
};

/// Has no state: the node around it counts frames, since slots without a frame count too.
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

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Every))
}
