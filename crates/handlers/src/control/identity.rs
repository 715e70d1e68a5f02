//! `identity`: passes every frame on.
//!
//! Owns nothing; it is a place in the graph to name, link to and measure.
//! Does not copy.
//!
//! Always: the frame that leaves is the one that came.

use vramp_plan::catalog::Entry;
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

/// What `identity` declares.
pub static ENTRY: Entry = Entry {
    name: "identity",
    about: "passes frames on as they are",
    example: "pattern ! identity name=here ! null",
    ..Entry::CONTROL
};

#[derive(Debug)]
struct Identity;

impl FrameHandler for Identity {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(pass_on(call))
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Identity))
}
