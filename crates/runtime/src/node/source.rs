//! How a source fires: by its clock, under the clock's time or under a time of its own.
//!
//! A source may stamp its frames with its own times ([`Call::stamp`](crate::Call::stamp)), which must grow. The numbers
//! are always the clock's. A source that has nothing to send ([`FrameHandler::is_ready`]) is not called, and the clock
//! stands still for it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::{Clock, Paced, Tick};
use crate::failure::catch;
use crate::handler::{Flow, HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::link::ring::BEFORE_ALL;
use crate::node::inputs::Watermark;
use crate::observe::monitor::RunEvent;

use super::calling::Outcome;
use super::{Fired, Node};

impl Node {
    pub(super) fn fire_source(&mut self, since_start: Duration, context: &mut LaneContext) -> Fired {
        if self.counts.taken >= self.limit || self.is_unwanted() {
            return self.end(self.last_ns());
        }
        if self.pauses.load(Ordering::Relaxed)
            && let Some(paused) = self.pause()
        {
            return paused;
        }
        if !self.has_room() {
            return Fired::Stuck;
        }
        if self.is_gated && !self.handler.is_ready() {
            return Fired::Stuck;
        }
        let Some(clock) = &self.clock else { return self.end(self.last_ns()) };
        let tick = match clock.due(since_start) {
            Paced::Wait(wait) => return Fired::Wait(wait),
            Paced::Fire(tick) => tick,
        };
        // A generator with other handlers fused to it has inputs too, but none of these inputs leads.
        let certain = self.inputs.are_certain(tick.pts_ns);
        let moved = self.inputs.advance(Some(tick.pts_ns));
        // A watermark sent before the frame is made must not be later than the stream's end, so the end is checked
        // first, once per tick.
        let past = if certain { self.inputs.end_before(tick.pts_ns) } else { None };
        if !certain || past.is_some() {
            let now = self.now_at(&tick, since_start);
            let changed = self.take_changes(now, context).is_ok();
            if changed && catch(|| Ok(self.handler.has_ended(&now))).unwrap_or(false) {
                return self.end(self.last_ns());
            }
        }
        if let Some(end_ns) = past {
            return self.end(end_ns);
        }
        if !certain {
            let news = self.pass_on(Watermark::at(tick.pts_ns - 1));
            return if moved || news { Fired::Moved } else { Fired::Stuck };
        }
        if let Err(starved) = self.set_aside(tick.number, context) {
            return starved;
        }
        let now = self.now_at(&tick, since_start);
        if self.inputs.lack_one() {
            self.advance_clock(tick, since_start);
            context.clear_aside();
            self.counts.taken += 1;
            self.before_ns = Some(now.pts_ns);
            return self.lack(now, context);
        }
        self.last = now;
        let outcome = self.take_changes(now, context).and_then(|()| self.call(now, context));
        context.clear_aside();
        self.advance_clock(Tick { pts_ns: self.last.pts_ns, ..tick }, since_start);
        // The source may have stamped the frame with another time.
        self.follow_clock(self.last, outcome, context)
    }

    /// Lets a source that has no room tell whether it pauses.
    pub(crate) fn look_at_barrier(&mut self) {
        if self.pauses.load(Ordering::Relaxed) && self.barrier.round().is_some() && self.mark.is_some() {
            self.pause();
        }
    }

    /// Ends the source, or lets it wait at the barrier. `None` if the source is to send one more frame first.
    fn pause(&mut self) -> Option<Fired> {
        let last_ns = self.last_ns();
        let (Some(round), Some(mark)) = (self.barrier.round(), self.mark.clone()) else {
            return Some(self.end(last_ns));
        };
        let until_ns = mark.until_ns();
        if self.clock.as_ref().and_then(Clock::next_ns).is_some_and(|next_ns| next_ns <= until_ns) {
            return None;
        }
        // The next time of a source with times of its own is not known.
        if until_ns > BEFORE_ALL && !self.stamps {
            self.pass_on(Watermark { certain_ns: Some(until_ns), lasts_ns: BEFORE_ALL });
        }
        mark.pause(round, last_ns);
        Some(Fired::Stuck)
    }

    fn advance_clock(&mut self, tick: Tick, since_start: Duration) {
        if let Some(clock) = &mut self.clock {
            clock.fired(&tick, since_start);
        }
    }

    /// The time of the last slot that a source produced.
    pub(super) fn last_ns(&self) -> i64 {
        self.before_ns.unwrap_or(BEFORE_ALL)
    }

    /// Measures the birth of a frame once, however often its node waits for other inputs.
    fn now_at(&mut self, tick: &Tick, since_start: Duration) -> Now {
        let known = self.born.filter(|(number, _)| *number == tick.number).map(|(_, birth)| birth);
        let birth = known.unwrap_or_else(|| self.changes.stamp(self.pace.birth(since_start, tick)));
        self.born = Some((tick.number, birth));
        Now { number: tick.number, pts_ns: tick.pts_ns, delta_ns: tick.delta_ns, birth }
    }

    /// Handles the outcome of a source's call.
    pub(super) fn follow_clock(&mut self, now: Now, outcome: Outcome, context: &mut LaneContext) -> Fired {
        match outcome {
            Err(error) if self.has_to_repeat() => self.wait_for_memory(now.number, &error, context),
            Ok((Flow::Ended, _)) => self.end(self.last_ns()),
            outcome => {
                self.counts.taken += 1;
                self.before_ns = Some(now.pts_ns);
                let outcome = outcome.and_then(|flow| self.follow_size(now.number, context).map(|()| flow));
                self.settle(now, outcome, context)
            }
        }
    }

    /// Plans the graph again if a source's frames change their size.
    fn follow_size(&mut self, frame: u64, context: &LaneContext) -> Result<(), HandlerError> {
        let Some((planned, replan)) = &mut self.planned else { return Ok(()) };
        let Some(size) =
            self.made.iter().flatten().find_map(|made| made.meta().as_picture()).map(|picture| picture.size)
        else {
            return Ok(());
        };
        if size == *planned {
            return Ok(());
        }
        let name = self.members[0].name.as_str();
        replan(name, size)
            .map_err(|problem| HandlerError::failed(format!("its frames changed to {size}: {problem}")))?;
        *planned = size;
        if let Some(meta) = &mut self.memory.aside {
            meta.picture_mut().size = size;
        }
        context.report(&RunEvent::Replanned { handler: name.to_owned(), frame, size });
        Ok(())
    }
}
