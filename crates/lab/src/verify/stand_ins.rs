//! Stand-ins for sources, sinks and transfers in a trial.
//!
//! Invariants: a stand-in for a source or a sink has the entry of the real handler, so that the plan is the same. A
//! stand-in reads and writes nothing outside the process.

use std::collections::BTreeMap;
use std::sync::Arc;

use vramp_plan::catalog::{
    Entry, EntryError, Fallback, FormatRule, Liveness, Output, PortMedia, RateRule, Setting, SizeRule, ValueType, Work,
};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Make, Registry, Setup, Worker};

use crate::harness::Caught;
use crate::harness::ends::{CATCH, Carry, Catch, Trays};

/// Stands in for a transfer when everything stays on the CPU.
pub(super) static CARRY: Entry = Entry { name: "verify-carry", about: "passes frames on", ..Entry::CONTROL };

/// Stands in for a live source. A live source cannot wait, so the speed of the trial would decide which frames arrive.
pub(super) static REPLAY: Entry = Entry {
    name: "verify-replay",
    about: "sends the captured frames",
    outputs: &[Output {
        media: PortMedia::ANY,
        format: FormatRule::Setting("format"),
        size: SizeRule::Probed(Some("size")),
        rate: RateRule::Setting("fps"),
        ..Output::VIDEO
    }],
    settings: &[
        setting("format", ValueType::Format),
        setting("size", ValueType::Size),
        setting("fps", ValueType::Rate),
    ],
    work: Work::NONE,
    ..Entry::SOURCE
};

const fn setting(name: &'static str, value: ValueType) -> Setting {
    Setting { name, value, fallback: Fallback::Required, liveness: Liveness::Fixed, about: "of the captured frames" }
}

/// Captured frames, by the name of their source.
pub(super) type Captured = Arc<BTreeMap<String, Arc<[Caught]>>>;

/// A registry with the same kinds, but with other functions that make the handlers: captured sources are replayed,
/// sinks keep their frames, and no handler writes anything. `handlers` is the number of handlers in the user's graph, a
/// number that some handlers show.
pub(super) fn cut_off(
    registry: &Registry,
    handlers: usize,
    captured: &Captured,
    caught: &Trays,
) -> Result<Registry, EntryError> {
    let catch = |caught: &Trays| {
        let caught = caught.clone();
        move |setup: &Setup<'_>| Ok(Worker::frames(Catch::new(setup.name, &caught)))
    };
    let carry = |_: &Setup<'_>| Ok(Worker::frames(Carry));
    let mut own = registry.remade(|entry, make| -> Option<Make> {
        if entry.outputs.is_empty() {
            return Some(Arc::new(catch(caught)));
        }
        if entry == &vramp_handlers::control::probe::ENTRY {
            // The real handler would print every frame of every trial.
            return Some(Arc::new(carry));
        }
        let (make, captured): (Make, Captured) = (Arc::clone(make?), Arc::clone(captured));
        Some(Arc::new(move |setup| match captured.get(setup.name) {
            Some(frames) => Ok(Worker::frames(Replay { frames: Arc::clone(frames), next: 0 })),
            None => make(&Setup { handlers, ..setup.clone() }),
        }))
    });
    own.add(&CATCH, catch(caught))?;
    own.add(&CARRY, carry)?;
    let captured = Arc::clone(captured);
    own.add(&REPLAY, move |setup| {
        let frames = captured.get(setup.name).map_or_else(|| Arc::from([]), Arc::clone);
        Ok(Worker::frames(Replay { frames, next: 0 }))
    })?;
    Ok(own)
}

struct Replay {
    frames: Arc<[Caught]>,
    next: usize,
}

impl FrameHandler for Replay {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = self.frames.get(self.next) else { return Ok(Flow::Ended) };
        self.next += 1;
        frame.send(call, 0).map(|()| Flow::Produced)
    }
}

/// Keeps the first frames of a source: as many as `left_bytes` allows, but at least one.
pub(super) struct Capture {
    pub(super) to: Trays,
    pub(super) left_bytes: u64,
}

impl Capture {
    /// The name of the tray with the captured frames.
    pub(super) const TRAY: &'static str = "captured";
}

impl FrameHandler for Capture {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let bytes = frame.bytes().len() as u64;
        if bytes > self.left_bytes && self.to.count(Capture::TRAY) > 0 {
            return Ok(Flow::Ended);
        }
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.to.put(Capture::TRAY, Caught::of(frame));
        Ok(Flow::Produced)
    }
}
