//! The gate of a node: reasons other than data for which a node waits before it takes a frame.
//!
//! - A handler that has no room for another frame, such as a sink whose frames the program has not pulled
//!   ([`FrameHandler::is_ready`](crate::FrameHandler::is_ready)). The handler's [`Waker`] wakes the lane when this
//!   changes.
//! - A sink that shows frames at their times. The first frame is shown when it arrives, and every later frame when as
//!   much time has passed since then as between the times of the two frames. A frame that comes later than that is
//!   shown at once. If a frame is late by more than [`STALL`], all later frames are shown later by the same time, so that
//!   no burst follows a stall. A sink on a link with the policy `latest` shows the newest frame at once instead.
//!
//! Neither reason holds back the end of a stream. A presenting sink on a link that may drop frames takes what is queued when
//! the stream has ended, even if it is not ready, for example because its window is paused: the run does not wait for it.

use std::time::Duration;

use crate::waker::Waker;

use super::{Fired, Node};

/// A frame that is later than this counts as late because of a stall.
const STALL: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Whether the handler uses its waker.
    asks: bool,
    presents: bool,
    /// Whether the end of the stream does not wait for the handler.
    never_waited_for: bool,
    waker: Option<Waker>,
    /// The time of the run at which stream time 0 is shown. `None` before the first frame.
    zero_ns: Option<i64>,
}

impl Node {
    /// Gives the handler its waker.
    #[must_use]
    pub(crate) fn waking(mut self, waker: &Waker) -> Node {
        self.gate.waker = Some(waker.clone());
        self.give_waker();
        self
    }

    /// Gives the current handler the waker of the node.
    pub(super) fn give_waker(&mut self) {
        self.gate.asks = self.gate.waker.as_ref().is_some_and(|waker| self.handler.keep_waker(waker));
        self.see_gate();
    }

    fn see_gate(&mut self) {
        self.is_gated = self.gate.asks || self.gate.presents;
    }

    /// Lets a sink receive each frame at the frame's time.
    #[must_use]
    pub(crate) fn presenting(mut self, presents: bool) -> Node {
        self.gate.presents = presents;
        self.see_gate();
        self
    }

    /// Lets a sink whose link may drop frames never hold up the end of the run.
    #[must_use]
    pub(crate) fn never_waited_for(mut self, never: bool) -> Node {
        self.gate.never_waited_for = never;
        self
    }

    /// The reason not to take the oldest slot of the lead now.
    pub(super) fn wait_at_gate(&mut self, since_start: Duration) -> Option<Fired> {
        let is_ready = !self.gate.asks || self.handler.is_ready();
        if is_ready && !self.gate.presents {
            return None;
        }
        let lead = self.inputs.look()?;
        let head_ns = lead.head_ns?;
        if !is_ready {
            return (!self.gate.never_waited_for || !lead.has_ended).then_some(Fired::Stuck);
        }
        let now_ns = i64::try_from(since_start.as_nanos()).unwrap_or(i64::MAX);
        let zero_ns = *self.gate.zero_ns.get_or_insert(now_ns - head_ns);
        let early_ns = zero_ns + head_ns - now_ns;
        if early_ns > 0 {
            return Some(Fired::Wait(Duration::from_nanos(early_ns.unsigned_abs())));
        }
        if early_ns.unsigned_abs() > STALL.as_nanos() as u64 {
            self.gate.zero_ns = Some(now_ns - head_ns);
        }
        None
    }
}
