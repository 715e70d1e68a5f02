//! Control: which frames pass, and when.
//!
//! Owns one file per control handler: its declaration and what it does with a frame.
//! Does not change pixels.
//!
//! Always: a frame that passes is the one that came.

pub mod delay;
pub mod every;
pub mod identity;
pub mod probe;

use vramp_runtime::{Call, Flow, Kind};

/// Every handler of this family: a line each.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![
        Kind::new(&identity::ENTRY, identity::make),
        Kind::new(&delay::ENTRY, delay::make),
        Kind::new(&every::ENTRY, every::make),
        Kind::new(&probe::ENTRY, probe::make),
    ]
}

/// Sends on what came.
pub(crate) fn pass_on(call: &mut Call<'_>) -> Flow {
    let Some(frame) = call.take(0) else { return Flow::Filtered };
    call.send(0, frame);
    Flow::Produced
}
