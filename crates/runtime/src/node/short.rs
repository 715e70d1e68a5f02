//! A node that waits for memory.
//!
//! Owns the call that is repeated once memory has come back, and what is missing until then.
//! Does not wait: its lane does, and asks again.
//!
//! Always: the frame of such a call counts as held; its other inputs stay where they were.

use vramp_plan::Space;

use crate::frame::pool::{Owner, PoolError};
use crate::frame::{Frame, Meta};
use crate::handler::{Flow, HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::memory::shortage::Shortage;

use super::{Fired, Node};

/// What a node needs to know of memory.
#[derive(Debug, Default)]
pub(super) struct NodeMemory {
    /// In whose name it asks.
    pub(super) owner: Owner,
    /// What it leaves to those behind it.
    pub(super) leave_bytes: u64,
    /// What is lent ahead for a source, which cannot be called twice for one frame.
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
    /// Says in whose name it asks for memory, and how much of the host's it leaves to those behind it.
    #[must_use]
    pub(crate) fn remembered_as(mut self, owner: Owner, leave_bytes: u64) -> Node {
        (self.memory.owner, self.memory.leave_bytes) = (owner, leave_bytes);
        self
    }

    /// Has memory for a source's frames lent before it is called.
    #[must_use]
    pub(crate) fn setting_aside(mut self, meta: Option<Meta>) -> Node {
        self.memory.aside = meta.filter(|_| !self.handler.can_repeat());
        self
    }

    /// In whose name it asks for memory, and what it leaves to those behind it.
    pub(crate) fn memory(&self) -> (Owner, u64) {
        (self.memory.owner, self.memory.leave_bytes)
    }

    /// What it waits for, where that is memory.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.memory.short.as_ref()
    }

    /// Whether a call waits to be repeated.
    pub(super) fn has_to_repeat(&self) -> bool {
        self.memory.again.is_some()
    }

    /// Notes what is missing, and hands back what a lane makes of it.
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

    /// Lends ahead what a source will ask for.
    pub(super) fn set_aside(&mut self, number: u64, context: &mut LaneContext) -> Result<(), Fired> {
        let Some(meta) = self.memory.aside else { return Ok(()) };
        context.serve(self.memory.owner, number);
        match context.set_aside(meta, self.memory.leave_bytes) {
            // What will not come back is not waited for: the source asks for it itself, and fails on its frame.
            Ok(()) | Err(PoolError::System(_)) => Ok(()),
            Err(error) => Err(self.starve(number, &error.into(), context)),
        }
    }

    /// After a call: keeps it to be repeated where memory was short and nothing was taken.
    pub(super) fn keep_call(&mut self, now: Now, outcome: &Result<Flow, HandlerError>) {
        self.memory.short = None;
        if let Err(error) = outcome {
            self.keep_short_call(now, error);
        }
    }

    /// Keeps a call to be repeated where this error is that memory was short.
    pub(super) fn keep_short_call(&mut self, now: Now, error: &HandlerError) {
        if error.missing().is_none() {
            return;
        }
        let frame = self.given.get_mut(self.inputs.lead()).and_then(Option::take);
        if frame.is_some() || (self.is_source() && self.handler.can_repeat()) {
            self.memory.again = Some(Again { now, frame, repeats: self.supplied_again });
        }
    }

    /// Counts the frame of a call that is to be repeated as held.
    pub(super) fn wait_for_memory(&mut self, frame: u64, error: &HandlerError, context: &LaneContext) -> Fired {
        if self.memory.again.as_ref().is_some_and(|again| again.frame.is_some()) {
            self.counts.held += 1;
        }
        self.starve(frame, error, context)
    }

    /// Repeats a call.
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

    /// Gives up the frame of a call that was to be repeated where it was on a device that is gone; its time.
    pub(super) fn lose_call(&mut self) -> Option<i64> {
        let on_device = |frame: &Frame| frame.space() == Space::Gpu;
        let lost = self.memory.again.take_if(|again| again.frame.as_ref().is_some_and(on_device))?;
        self.memory.short = None;
        Some(lost.now.pts_ns)
    }

    /// Forgets a call that was to be repeated, at the end of its node.
    pub(super) fn forget_call(&mut self) {
        self.memory.short = None;
        if self.memory.again.take().is_some_and(|again| again.frame.is_some()) {
            self.counts.held -= 1;
            self.count_filtered();
        }
    }
}
