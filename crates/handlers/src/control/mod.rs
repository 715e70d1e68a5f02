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

mod xxh64;

use vramp_runtime::{Call, Flow, Kinds};

/// Says how the handlers of this family are made.
pub(crate) fn register(kinds: &mut Kinds) {
    kinds.makes(&identity::ENTRY, identity::make);
    kinds.makes(&delay::ENTRY, delay::make);
    kinds.makes(&every::ENTRY, every::make);
    kinds.makes(&probe::ENTRY, probe::make);
}

/// Sends on what came.
pub(crate) fn pass_on(call: &mut Call<'_>) -> Flow {
    let Some(frame) = call.take(0) else { return Flow::Filtered };
    call.send(0, frame);
    Flow::Produced
}
