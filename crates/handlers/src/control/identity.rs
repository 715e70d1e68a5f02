//! `identity`: passes every frame on unchanged, without a copy. It is a point in the graph to name, link to and
//! measure.

use vramp_plan::catalog::Entry;
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker};

use super::pass_on;

pub static ENTRY: Entry = Entry {
    name: "identity",
    about: "passes frames on unchanged",
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

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(Identity))
}
