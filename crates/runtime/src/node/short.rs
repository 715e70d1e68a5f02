//! A node that waits for memory: the call to repeat, and the memory that is missing.
//!
//! The lane waits and fires the node again. Meanwhile the frame of the call counts as held, and the other inputs stay
//! as they were.

use vramp_plan::Space;

use crate::frame::pool::{Owner, PoolError};
use crate::frame::{Frame, Meta};
use crate::handler::{Flow, HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::memory::shortage::Shortage;

use super::{Fired, Node};

/// A node's memory bookkeeping.
#[derive(Debug, Default)]
pub(super) struct NodeMemory {
    /// The node's owner number in the pool's ledger.
    pub(super) owner: Owner,
    /// Bytes that the node leaves to downstream nodes.
    pub(super) leave_bytes: u64,
    /// The frame to reserve before a source is called, because a source cannot be called twice for one frame.
    pub(super) aside: Option<Meta>,
    /// The call to repeat.
    again: Option<Again>,
    short: Option<Shortage>,
}

#[derive(Debug)]
struct Again {
    now: Now,
    frame: Option<Frame>,
    repeats: u64,
}

impl Node {
    /// Sets the node's owner number and the host bytes that it leaves to downstream nodes.
    #[must_use]
    pub(crate) fn remembered_as(mut self, owner: Owner, leave_bytes: u64) -> Node {
        (self.memory.owner, self.memory.leave_bytes) = (owner, leave_bytes);
        self
    }

    /// Reserves memory for a source's frames before the source is called.
    #[must_use]
    pub(crate) fn setting_aside(mut self, meta: Option<Meta>) -> Node {
        self.memory.aside = meta.filter(|_| !self.handler.can_repeat());
        self
    }

    /// The node's owner number and the bytes that the node leaves to downstream nodes.
    pub(crate) fn memory(&self) -> (Owner, u64) {
        (self.memory.owner, self.memory.leave_bytes)
    }

    /// The memory that the node waits for.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.memory.short.as_ref()
    }

    pub(super) fn has_to_repeat(&self) -> bool {
        self.memory.again.is_some()
    }

    /// Records which memory is missing.
    pub(super) fn starve(&mut self, frame: u64, error: &HandlerError, context: &LaneContext) -> Fired {
        if let Some((space, needed_bytes, available_bytes, budget_bytes)) = error.missing() {
            if self.memory.short.is_none() {
                context.count_wait();
            }
            let handler = self.members[self.last_member()].name.clone();
            let short = Shortage { handler, frame, space, needed_bytes, available_bytes, budget_bytes };
            self.memory.short = Some(short);
        }
        Fired::Starved
    }

    /// Reserves the memory that a source will request.
    pub(super) fn set_aside(&mut self, number: u64, context: &mut LaneContext) -> Result<(), Fired> {
        let Some(meta) = self.memory.aside else { return Ok(()) };
        context.serve(self.memory.owner, number);
        match context.set_aside(meta, self.memory.leave_bytes) {
            // If the system refuses, waiting does not help: the source requests the memory itself and fails on its
            // frame.
            Ok(()) | Err(PoolError::System(_)) => Ok(()),
            Err(error) => Err(self.starve(number, &error.into(), context)),
        }
    }

    /// Keeps a finished call for repetition if memory was short and the frame was not taken.
    pub(super) fn keep_call(&mut self, now: Now, outcome: &Result<Flow, HandlerError>) {
        self.memory.short = None;
        if let Err(error) = outcome {
            self.keep_short_call(now, error);
        }
    }

    /// Keeps a call for repetition if the error is a shortage of memory.
    pub(super) fn keep_short_call(&mut self, now: Now, error: &HandlerError) {
        if error.missing().is_none() {
            return;
        }
        let frame = self.given.get_mut(self.inputs.lead()).and_then(Option::take);
        if frame.is_some() || (self.is_source() && self.handler.can_repeat()) {
            self.memory.again = Some(Again { now, frame, repeats: self.supplied_again });
        }
    }

    /// Counts the frame of a call to repeat as held.
    pub(super) fn wait_for_memory(&mut self, frame: u64, error: &HandlerError, context: &LaneContext) -> Fired {
        if self.memory.again.as_ref().is_some_and(|again| again.frame.is_some()) {
            self.counts.held += 1;
        }
        self.starve(frame, error, context)
    }

    /// Repeats the call.
    pub(super) fn fire_again(&mut self, context: &mut LaneContext) -> Fired {
        let Some(Again { now, frame, repeats }) = self.memory.again.take() else { return Fired::Stuck };
        let led = frame.is_some();
        if let Some(given) = self.given.get_mut(self.inputs.lead()).filter(|_| led) {
            *given = frame;
            self.counts.held -= 1;
        }
        if self.inputs.lack_one() {
            if !led {
                self.counts.taken += 1;
                self.before_ns = Some(now.pts_ns);
            }
            self.given.fill(None);
            return self.lack(now, context);
        }
        let outcome = self.call(now, context);
        self.supplied_again = repeats;
        if let Some(again) = &mut self.memory.again {
            again.repeats = repeats;
        }
        if led { self.follow_lead(now, outcome, context) } else { self.follow_clock(now, outcome, context) }
    }

    /// Drops the call to repeat if its frame was on a lost device; returns the frame's time.
    pub(super) fn lose_call(&mut self) -> Option<i64> {
        let on_device = |frame: &Frame| frame.space() == Space::Gpu;
        let lost = self.memory.again.take_if(|again| again.frame.as_ref().is_some_and(on_device))?;
        self.memory.short = None;
        Some(lost.now.pts_ns)
    }

    /// Drops the call to repeat at the end of the node.
    pub(super) fn forget_call(&mut self) {
        self.memory.short = None;
        if self.memory.again.take().is_some_and(|again| again.frame.is_some()) {
            self.counts.held -= 1;
            self.count_filtered();
        }
    }
}
