//! Controls: handlers that decide which frames pass, and when. They never change pixels.

pub mod delay;
pub mod every;
pub mod identity;
pub mod probe;

use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Kind, Setup, StartContext, Worker};

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&identity::ENTRY, make_pass_on),
        Kind::new(&delay::ENTRY, make_pass_on),
        Kind::new(&every::ENTRY, make_pass_on),
        Kind::new(&probe::ENTRY, probe::make),
    ]
}

/// A handler that sends its input on, for `identity`, `delay` and `every`. The node around the handler holds frames
/// back or skips frames, because slots without a frame count too, and handlers do not see such slots.
#[derive(Debug)]
struct PassOn;

impl FrameHandler for PassOn {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(pass_on(call))
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
fn make_pass_on(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::frames(PassOn))
}

/// Sends the input frame on.
pub(crate) fn pass_on(call: &mut Call<'_>) -> Flow {
    let Some(frame) = call.take(0) else { return Flow::Filtered };
    call.send(0, frame);
    Flow::Produced
}
