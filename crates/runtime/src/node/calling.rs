//! One call of a node's handler: the inputs, the node as owner of the call's memory in the ledger, and retries.
//!
//! When a handler fails on a frame, the frame's slot is sent empty, and `on-error` decides whether the run stops or
//! continues. With `on-error=retry`, the handler is first called once more for that frame. A fused node follows the
//! policy of the member that failed and counts the failure for that member. A retry continues with that member, so that
//! no other member is called twice. Unless the run stops, the first failure of a handler is reported and its later
//! failures are only counted.
//!
//! Frames that the handler leaves in its inputs are released, except the frame of a call that will be repeated.

use vramp_plan::{OnError, Space};

use crate::clock::Clock;
use crate::failure::catch;
use crate::frame::Frame;
use crate::frame::notes::Notes;
use crate::handler::{Call, Flow, HandlerError, Now};
use crate::lane::context::{LaneContext, LaneRequest};

use super::Node;

/// The result of a call: what the handler did, and whether its frame comes later, from the device.
pub(super) type Outcome = Result<(Flow, bool), HandlerError>;

impl Node {
    /// Calls the handler, and calls it once more for each member that fails and whose policy is to retry. A fused unit
    /// continues with the member that failed, so that no other member is called twice for a frame.
    pub(super) fn call(&mut self, now: Now, context: &mut LaneContext) -> Outcome {
        // Keeps a second reference to the frame for retries only: without a second reference the handler may be the
        // sole holder and edit in place.
        let spare = if self.retries { self.given.get(self.inputs.lead()).cloned().flatten() } else { None };
        let mut outcome = self.call_once(now, context);
        let supplied_again = self.supplied_again;
        let mut tried = None;
        while let Err(error) = &outcome
            && !self.has_to_repeat()
            && self.members[self.failing_member(error)].on_error == OnError::Retry
            && tried < Some(self.failing_member(error))
        {
            tried = Some(self.failing_member(error));
            if let Some(given) = self.given.get_mut(self.inputs.lead()) {
                given.clone_from(&spare);
            }
            outcome = self.call_once(now, context);
            self.supplied_again = supplied_again;
        }
        outcome
    }

    fn call_once(&mut self, now: Now, context: &mut LaneContext) -> Outcome {
        if self.handler.computes() {
            self.raise_late(context).inspect_err(|error| {
                self.handler.forget_failure();
                self.keep_short_call(now, error);
            })?;
        }
        self.supplied_again = self.inputs.supply(&mut self.given);
        for made in &mut self.made {
            *made = None;
        }
        self.last = now;
        let (owner, leave) = (self.memory.owner, self.memory.leave_bytes);
        let leave_bytes = if self.is_source() && !self.handler.can_repeat() { 0 } else { leave };
        context.serve(owner, now.number);
        self.given.iter().flatten().for_each(|frame| frame.hand_to(owner));
        let lead = self.inputs.lead();
        // A frame that ends on the device counts as arrived only when the device has finished the work on it.
        let ends_there = self.is_sink() && self.given.get(lead).and_then(Option::as_ref).is_some_and(is_on_device);
        let before = self.given.get(lead).and_then(Option::as_ref).and_then(|frame| frame.notes().cloned());
        self.new_notes.clear();
        let (inputs, outputs, notes) = (&mut self.given[..], &mut self.made[..], &mut self.new_notes);
        let services = self.services.as_ref();
        if let Some(services) = services {
            services.play_queued(context);
        }
        let mut call =
            Call { now, inputs, outputs, context, lead, leave_bytes, later: false, stamped_ns: None, notes, services };
        let mut outcome = catch(|| self.handler.process(&mut call));
        if let Some(services) = services {
            services.play_queued(call.context);
        }
        let stamped_ns = call.stamped_ns;
        if let (Ok(Flow::Produced), true, Some(device_context)) = (&outcome, ends_there, call.context.device_context())
        {
            device_context.requests.push(LaneRequest::Finished);
            call.later = true;
        }
        let (later, mut now) = (call.later, now);
        // The call of a live source waits for its frame, so the frame is born when the call ends.
        if self.clock.as_ref().is_some_and(Clock::is_of_arrivals)
            && let Some(arrived) = call.context.since_began()
        {
            now.birth.at_ns = arrived.as_nanos() as u64;
            self.last = now;
        }
        if let Some(pts_ns) = stamped_ns.filter(|_| self.is_source()) {
            if let (Ok(Flow::Produced), Some(before_ns)) = (&outcome, self.before_ns.filter(|before| *before >= pts_ns))
            {
                outcome = Err(HandlerError::failed(format!(
                    "its frame has the time {pts_ns} ns, but the previous frame had {before_ns} ns; the times of a \
                     source must grow"
                )));
            } else {
                now.pts_ns = pts_ns;
                (self.last, self.stamps) = (now, true);
            }
        }
        // A frame of another input or of an earlier call that is sent on has the number, the time and the notes of the
        // lead. What a source sends has its own notes.
        let drops_notes = before.is_none() && self.new_notes.is_empty() && !self.is_source();
        if matches!(outcome, Ok(Flow::Produced)) && (before.is_some() || !self.new_notes.is_empty()) {
            outcome = self.attach_notes(before, later, context).map(|()| Flow::Produced);
        }
        self.keep_call(now, &outcome);
        for given in &mut self.given {
            *given = None;
        }
        for made in self.made.iter_mut().flatten() {
            made.stamp(now.number, now.pts_ns, now.birth);
            if drops_notes && made.notes().is_some() {
                made.set_notes(None);
            }
        }
        outcome.map(|flow| (flow, later))
    }
}

impl Node {
    /// Gives the frames of the last call the notes of the lead's frame, and those that the call has attached.
    fn attach_notes(&mut self, before: Option<Notes>, later: bool, context: &LaneContext) -> Result<(), HandlerError> {
        let adds = !self.new_notes.is_empty();
        // The notes of a frame that a source was given are the source's own.
        let own = self.is_source();
        let notes = if adds {
            Some(self.new_notes.attach(before.as_ref(), context.pool()).map_err(HandlerError::failed)?)
        } else {
            before
        };
        for made in self.made.iter_mut().flatten().filter(|made| adds || !own || made.notes().is_none()) {
            made.set_notes(notes.clone());
        }
        self.later_notes = notes.filter(|_| later);
        Ok(())
    }
}

fn is_on_device(frame: &Frame) -> bool {
    frame.space() == Space::Gpu
}
