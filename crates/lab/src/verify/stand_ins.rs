//! Stand-ins: what takes the place of sources, sinks and transfers while a graph is tried.
//!
//! Owns their entries and handlers, and the kinds in which they are made instead of the real ones.
//! Does not decide which graph is tried.
//!
//! Always: a stand-in for a source or a sink has the entry of the real one, so that the plan is the same; nothing
//! outside is touched by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use vramp_plan::catalog::{
    Entry, EntryError, Fallback, FormatRule, Liveness, Output, PortMedia, RateRule, Setting, SizeRule, ValueType, Work,
};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Make, Registry, Setup, Worker};

use crate::harness::Caught;
use crate::harness::ends::{CATCH, Carry, Catch, Trays};

/// Stands in for a transfer where everything stays on the host.
pub(super) static CARRY: Entry = Entry { name: "verify-carry", about: "passes frames on", ..Entry::CONTROL };

/// Stands in for a source that cannot be made to wait: which of its frames come would depend on how fast a trial is.
pub(super) static REPLAY: Entry = Entry {
    name: "verify-replay",
    about: "hands out what was captured",
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
    Setting { name, value, fallback: Fallback::Required, liveness: Liveness::Fixed, about: "what was captured" }
}

/// Captured frames by the name of their source.
pub(super) type Captured = Arc<BTreeMap<String, Arc<[Caught]>>>;

/// The same kinds, made so that captured sources are replayed, sinks keep what they get, and nobody writes anything.
/// `handlers` is how many the graph has as its user wrote it, which some of them show.
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
            // It would print every frame of every trial.
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

/// Hands out what was captured.
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

/// Keeps the first frames of a source, as many as there is room for, and one at least.
pub(super) struct Capture {
    pub(super) to: Trays,
    pub(super) left_bytes: u64,
}

impl Capture {
    /// The tray that frames are laid in.
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
