//! Controls: handlers that decide which frames pass, and when. They never change pixels.

pub mod delay;
pub mod every;
pub mod identity;
pub mod probe;

use vramp_runtime::{Call, Flow, Kind};

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&identity::ENTRY, identity::make),
        Kind::new(&delay::ENTRY, delay::make),
        Kind::new(&every::ENTRY, every::make),
        Kind::new(&probe::ENTRY, probe::make),
    ]
}

/// Sends the input frame on.
pub(crate) fn pass_on(call: &mut Call<'_>) -> Flow {
    let Some(frame) = call.take(0) else { return Flow::Filtered };
    call.send(0, frame);
    Flow::Produced
}
