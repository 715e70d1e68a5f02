//! What a node passes on to a node of the same handler in a succeeding engine: the handler with its state, the frames that
//! a delay holds, and the clock of a source.

use crate::clock::Clock;
use crate::failure::{HandlerFailure, catch};
use crate::frame::Birth;
use crate::handler::{Call, Flow, FrameHandler, HandlerError};
use crate::node::delay_line::DelayLine;
use crate::node::pace::SourcePace;

use super::Node;

/// A handler of whole frames, started, without its node.
pub(crate) struct KeptHandler {
    handler: Box<dyn FrameHandler>,
    frame: u64,
    /// Slots that the node has seen, which `every` counts.
    slots: u64,
    /// The time of the last frame.
    before_ns: Option<i64>,
    held: DelayLine,
    /// Number of frames that are held.
    frames: u64,
}

/// The position of a source in its stream.
#[derive(Debug, Clone)]
pub(crate) struct KeptSource {
    clock: Clock,
    pace: SourcePace,
    born: Option<(u64, Birth)>,
    before_ns: Option<i64>,
    taken: u64,
}

impl KeptHandler {
    /// Number of frames that leave the run if no node takes the handler over.
    pub(crate) fn held_frames(&self) -> u64 {
        self.frames
    }

    /// Stops a handler that no node takes over.
    pub(crate) fn stop(mut self, name: &str) -> Result<(), HandlerFailure> {
        let stopped = catch(|| {
            self.handler.ended();
            self.handler.stop()
        });
        stopped.map_err(|error| HandlerFailure { handler: name.to_owned(), frame: self.frame, error })
    }
}

/// Stands in for a handler that has left its node.
struct Gone;

impl FrameHandler for Gone {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Ended)
    }
}

impl Node {
    /// The name of the node's first handler.
    pub(crate) fn first_name(&self) -> &str {
        &self.members[0].name
    }

    /// Takes the handler out, if it was started and processes whole frames. Fused handlers are made anew. Held frames
    /// count as taken by the node that continues with them.
    pub(crate) fn take_handler(&mut self) -> Option<KeptHandler> {
        if !self.started || self.handler.parts().is_some() {
            return None;
        }
        self.started = false;
        let handler = std::mem::replace(&mut self.handler, Box::new(Gone));
        let (held, frames) = (std::mem::take(&mut self.held), std::mem::take(&mut self.counts.held));
        let frame = self.counts.taken;
        self.counts.taken -= frames;
        self.stats.show(&self.counts);
        Some(KeptHandler { handler, frame, slots: self.slots, before_ns: self.before_ns, held, frames })
    }

    /// Whether the node's handler processes whole frames.
    pub(crate) fn is_plain(&self) -> bool {
        self.handler.parts().is_none()
    }

    /// Puts a started handler in place of the handler that was made for this node.
    pub(crate) fn put_handler(&mut self, kept: KeptHandler) {
        (self.handler, self.slots, self.held) = (kept.handler, kept.slots, kept.held);
        self.before_ns = self.before_ns.max(kept.before_ns);
        self.counts.taken += kept.frames;
        self.counts.held += kept.frames;
        self.stats.show(&self.counts);
        self.started = true;
        self.give_waker();
    }

    /// The position of a source.
    pub(crate) fn position(&self) -> Option<KeptSource> {
        let clock = self.clock.clone()?;
        let (pace, born, before_ns) = (self.pace, self.born, self.before_ns);
        // What earlier engines have taken is part of the limit.
        Some(KeptSource { clock, pace, born, before_ns, taken: self.counts.taken + self.taken_before })
    }

    /// Continues from the position of another source, with the numbers and times that follow.
    pub(crate) fn continue_from(&mut self, kept: &KeptSource) {
        if let Some(clock) = &mut self.clock {
            clock.continue_after(&kept.clock);
        }
        (self.pace, self.born, self.before_ns) = (kept.pace, kept.born, kept.before_ns);
        self.limit = self.limit.saturating_sub(kept.taken);
        self.taken_before = kept.taken;
    }
}

impl KeptSource {
    /// The number of the next frame.
    pub(crate) fn next(&self) -> u64 {
        self.clock.next()
    }
}
