//! Stand-ins for sources, sinks and transfers in a trial.
//!
//! Captured sources become `app` sources that the trial pushes the captured frames into, and sinks become `app` sinks
//! that the trial pulls from.
//!
//! Invariants: a stand-in for a source or a sink has the entry of the real handler, so that the plan is the same. A
//! stand-in reads and writes nothing outside the process.

use std::collections::BTreeMap;
use std::sync::Arc;

use vramp_handlers::{sink, source};
use vramp_plan::catalog::{Entry, EntryError};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Make, Registry, Setup, Worker};

use crate::harness::Caught;

/// Stands in for a transfer when everything stays on the CPU.
pub(super) static CARRY: Entry = Entry { name: "verify-carry", about: "passes frames on", ..Entry::CONTROL };

/// Captured frames, by the name of their source. Each source has at least one frame.
pub(super) type Captured = Arc<BTreeMap<String, Vec<Caught>>>;

/// A registry with the same kinds, but with other functions that make the handlers: captured sources and all sinks are
/// `app` ends, and no handler writes anything. `handlers` is the number of handlers in the user's graph, a number that
/// some handlers show.
pub(super) fn cut_off(registry: &Registry, handlers: usize, captured: &Captured) -> Result<Registry, EntryError> {
    let carry = |_: &Setup<'_>| Ok(Worker::frames(Carry));
    let mut own = registry.remade(|entry, make| -> Option<Make> {
        if entry.outputs.is_empty() {
            return Some(Arc::new(|setup: &Setup<'_>| Ok(sink::app::stand_in(setup))));
        }
        if entry == &vramp_handlers::control::probe::ENTRY {
            // The real handler would print every frame of every trial.
            return Some(Arc::new(carry));
        }
        let (make, captured): (Make, Captured) = (Arc::clone(make?), Arc::clone(captured));
        Some(Arc::new(move |setup| match captured.get(setup.name).and_then(|frames| frames.first()) {
            Some(first) => Ok(source::app::stand_in(setup, first.content)),
            None => make(&Setup { handlers, ..setup.clone() }),
        }))
    });
    own.add(&CARRY, carry)?;
    Ok(own)
}

/// Passes frames through.
struct Carry;

impl FrameHandler for Carry {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}
