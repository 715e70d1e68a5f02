//! A node: a handler with its links. The node decides when the handler fires, and passes on frames, empty slots and
//! watermarks. The lane decides which node fires next.
//!
//! Everything is driven by data. A source fires by its clock. Any other node fires when its **lead** input has a frame
//! and every other lossless input is certain at the time of that frame: nothing up to that time will come any more. The
//! node then takes from each other input the newest frame up to the lead's time, and sends one frame under the lead's
//! number and time. For a kernel, an input on which no frame has come yet is transparent black; an input that has ended
//! keeps its last frame. How streams end is in [`inputs`], delays and downloads are in [`delay_line`], births in
//! [`pace`], errors and retries in [`calling`], changed settings in [`changes`].
//!
//! - **The simple path.** Most nodes have one input and hold nothing. They access their ring once: they take the oldest
//!   slot or, if there is none, read the ring's watermark. In this way a handler that passes frames on takes 0.12 µs of
//!   CPU time per frame (2 shared cores, `cargo bench -p vramp-runtime`).
//! - **Certainty before advancing.** A node with several inputs first checks whether the other inputs are certain at
//!   the lead's time, and only then takes their frames. In the other order, a frame that arrives in between would make
//!   its input certain without being taken, and the pairing of frames would depend on the timing of threads.
//! - **Empty slots.** A frame that fails, is dropped or is filtered leaves an empty slot in the ring, because `delay`
//!   and `every` count slots, not frames. A ring stores consecutive empty slots as one run. The node itself does
//!   `delay` and `every`, with the numbers from the handler's entry. A slot that `every` removes leaves no empty slot,
//!   because the stream after `every` has a lower rate.
//! - **Watermarks.** A node that cannot fire tells its consumers that nothing will come before its oldest slot. So no
//!   node waits for a frame that will never come. Watermarks, empty slots and the plan's depths form one contract: the
//!   simulation in `crates/plan/tests/depth.rs` states the contract, and `tests/engine.rs` runs it.
//!
//! Invariants: for each slot of the lead that `every` does not remove, one slot is sent. taken = emitted + filtered +
//! failed + lost + held.

mod calling;
pub(crate) mod changes;
mod configure;
pub(crate) mod delay_line;
pub(crate) mod inputs;
mod loss;
mod measuring;
pub(crate) mod pace;
mod presenting;
mod sending;
mod short;
mod source;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod succession;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use vramp_plan::{OnError, PlannedMemory, Size};

use crate::clock::Clock;
use crate::engine::barrier::{Barrier, SourceMark};
use crate::failure::{HandlerFailure, NodeMember, catch};
use crate::frame::notes::{NewNotes, Notes};
use crate::frame::{Birth, Frame};
use crate::handler::{Call, Flow, FrameHandler, HandlerError, Now, PartialFile};
use crate::lane::context::LaneContext;
use crate::link::LinkSender;
use crate::link::ring::{BEFORE_ALL, DropReason, StreamSlot};
use crate::node::calling::Outcome;
use crate::node::delay_line::DelayLine;
use crate::node::inputs::{Inputs, Watermark};
use crate::node::pace::SourcePace;
use crate::node::presenting::Gate;
use crate::observe::monitor::{Measuring, NodeCounts, NodeStats, RunEvent};
use crate::observe::report::KeptPartial;
use crate::services::{Reporter, Services, StartContext};

/// The result of [`Node::fire`].
#[derive(Debug)]
pub enum Fired {
    Moved,
    /// Nothing can move until a slot arrives or a link has room.
    Stuck,
    /// Waits for memory and must be fired again; no frame is lost.
    Starved,
    /// The next frame of a source is due after this long.
    Wait(Duration),
    /// The handler failed and its policy is to stop.
    Failed(HandlerFailure),
    /// The node has ended and its consumers have been notified.
    Over,
}

/// Stands in for a handler that has stopped or has left its node.
struct Gone;

impl FrameHandler for Gone {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Ended)
    }
}

/// Plans the graph again for a source's frame of a new size. Returns the memory that the pools then need, or why the
/// run cannot continue.
pub type Replan = Arc<dyn Fn(&str, Size) -> Result<PlannedMemory, String> + Send + Sync>;

/// A handler with its links.
#[expect(clippy::struct_excessive_bools, reason = "independent facts of its configuration and of its state")]
pub struct Node {
    members: Vec<NodeMember>,
    handler: Box<dyn FrameHandler>,
    inputs: Inputs,
    outputs: Vec<Vec<LinkSender<Frame>>>,
    /// By input: whether the end of that input ends the node, as the end of the lead does.
    ends_with: Vec<bool>,
    /// By input: the member that reads that input.
    input_of: Vec<usize>,
    clock: Option<Clock>,
    pace: SourcePace,
    /// Whether the node may have to wait for its handler or for the time of a frame.
    is_gated: bool,
    gate: Gate,
    /// Number and birth of a source's last frame.
    born: Option<(u64, Birth)>,
    planned: Option<(Size, Replan)>,
    limit: u64,
    /// Frames that this source has sent in earlier engines of the run.
    taken_before: u64,
    /// Whether a source has to look whether it ends or pauses.
    pauses: Arc<AtomicBool>,
    barrier: Arc<Barrier>,
    mark: Option<Arc<SourceMark>>,
    /// Whether the source has given a frame a time of its own.
    stamps: bool,
    delay: usize,
    /// Whether held frames leave under the number and time of the frame that pushes them out.
    shifts: bool,
    every: u64,
    slots: u64,
    held: DelayLine,
    sunk_ns: Option<u64>,
    before_ns: Option<i64>,
    announced: Watermark,
    /// The end of the produced stream, once the node is ending.
    end_ns: i64,
    given: Vec<Option<Frame>>,
    made: Vec<Option<Frame>>,
    /// What the last call has attached.
    new_notes: NewNotes,
    /// The notes of a frame that comes after the call, from the device.
    later_notes: Option<Notes>,
    /// The services that the handler has kept since its start.
    services: Option<Services>,
    /// Number of inputs that supplied to the last call a frame that they had supplied before.
    supplied_again: u64,
    counts: NodeCounts,
    stats: Arc<NodeStats>,
    last: Now,
    /// True if the node follows a single input and neither delays nor drops slots of that input.
    is_simple: bool,
    /// Whether any member's policy is to retry.
    retries: bool,
    enters_device: bool,
    measuring: Measuring,
    /// The handler has returned [`Flow::Ended`]; held slots are still sent.
    ending: bool,
    /// By member: whether a failure has been reported.
    reported: Vec<bool>,
    started: bool,
    over: bool,
    memory: short::NodeMemory,
    changes: changes::NodeChanges,
    /// By input: how a succeeding engine recognises it.
    #[cfg(not(target_arch = "wasm32"))]
    labels: Vec<Option<crate::engine::succession::InputLabel>>,
}

impl Node {
    /// The names of the node's handlers, joined by `+`.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        names.join("+")
    }

    pub fn members(&self) -> &[NodeMember] {
        &self.members
    }

    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether frames first reach the device in this node.
    pub(crate) fn enters_device(&self) -> bool {
        self.enters_device
    }

    /// Frames that arrived, or were due at a source.
    pub(crate) fn taken(&self) -> u64 {
        self.counts.taken
    }

    /// Counters and histograms that other threads may read while the node runs.
    pub fn stats(&self) -> &Arc<NodeStats> {
        &self.stats
    }

    pub fn computes(&self) -> bool {
        self.handler.computes()
    }

    pub fn is_sink(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Whether the node fires by a clock instead of following an input.
    pub fn is_source(&self) -> bool {
        self.clock.is_some() || self.inputs.is_empty()
    }

    /// Starts the handler, before the first frame. A handler from an earlier engine of the run has been started.
    pub fn start(&mut self, context: &mut LaneContext) -> Result<(), HandlerFailure> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let started = self.with_services(context, |handler, context| catch(|| handler.start(context)));
        started.map_err(|error| {
            if self.is_source() {
                // Consumers may be in other lanes and would wait for this source.
                self.end(BEFORE_ALL);
            }
            self.failure(0, error)
        })
    }

    /// Stops the handler; called once after the last frame. Queued input is dropped and counted. Calls `stop_early` if
    /// the stream has not ended or the run failed, unless the end was `intended`. Returns a file that the handler left
    /// beside an older file.
    pub fn stop(&mut self, reason: DropReason, intended: bool) -> Result<Option<KeptPartial>, HandlerFailure> {
        self.inputs.drain(reason);
        self.held.clear();
        self.memory = short::NodeMemory::default();
        if !std::mem::take(&mut self.started) {
            return Ok(None);
        }
        let number = self.counts.taken;
        let whole = intended || self.over && reason == DropReason::Stopped;
        let stopped = catch(|| if whole { self.handler.stop().map(|()| None) } else { self.handler.stop_early() });
        let kept = stopped.map_err(|error| self.failure(number, error));
        // Memory that the handler still holds returns to its pool.
        self.services = None;
        let handler = std::mem::replace(&mut self.handler, Box::new(Gone));
        let dropped = catch(|| {
            drop(handler);
            Ok(())
        });
        let kept = kept?;
        dropped.map_err(|error| HandlerFailure { handler: self.members[0].name.clone(), frame: number, error })?;
        Ok(kept.map(|PartialFile { path, instead_of }| KeptPartial { handler: self.name(), path, instead_of }))
    }

    /// Calls the handler with its services, and keeps the services if the handler does.
    fn with_services<T>(
        &mut self,
        context: &mut LaneContext,
        call: impl FnOnce(&mut dyn FrameHandler, &mut StartContext<'_>) -> T,
    ) -> T {
        let owner = self.memory.owner;
        let services = self.services.take().unwrap_or_else(|| Services::new(&self.members[0].name, owner, context));
        let reporter = Reporter::new(&self.members[0].name, &self.stats, context);
        let mut start = StartContext::new(&self.members, &services, context.thread_count(), reporter);
        let answer = call(&mut *self.handler, &mut start);
        self.services = services.are_kept().then_some(services);
        answer
    }

    fn failure(&self, frame: u64, error: HandlerError) -> HandlerFailure {
        let member = self.failing_member(&error);
        HandlerFailure { handler: self.members[member].name.clone(), frame, error }
    }

    /// The member that caused an error.
    fn failing_member(&self, error: &HandlerError) -> usize {
        match error {
            HandlerError::SideLost { input } => self.input_of[*input],
            _ => self.last_member(),
        }
    }

    /// The member that the last call had reached when the call failed or filtered its frame.
    fn last_member(&self) -> usize {
        self.handler.failed_member().min(self.members.len() - 1)
    }

    /// Fires at most once.
    pub fn fire(&mut self, since_start: Duration, context: &mut LaneContext) -> Fired {
        if self.over {
            return Fired::Over;
        }
        let (taken, again) = (self.counts.taken, self.has_to_repeat());
        let fired = match self.is_source() {
            _ if again && !self.is_unwanted() => self.fire_again(context),
            true => self.fire_source(since_start, context),
            false => self.fire_lead(since_start, context),
        };
        if self.counts.taken != taken || again {
            self.stats.show(&self.counts);
        }
        fired
    }

    /// Whether all consumers have ended, so that no frame would be taken and this node and its producers may end too.
    /// Since that is rare, it is checked only every 16 frames.
    fn is_unwanted(&self) -> bool {
        const CHECK_EVERY: u64 = 16;
        self.counts.taken.is_multiple_of(CHECK_EVERY)
            && self.outputs.iter().flatten().next().is_some()
            && self.outputs.iter().flatten().all(LinkSender::is_closed)
    }

    fn fire_lead(&mut self, since_start: Duration, context: &mut LaneContext) -> Fired {
        if self.is_unwanted() {
            return self.end(BEFORE_ALL);
        }
        if self.ending {
            return self.flush();
        }
        if self.is_gated
            && let Some(waits) = self.wait_at_gate(since_start)
        {
            return waits;
        }
        // Most nodes have one input and hold nothing: one access to their ring suffices.
        if self.is_simple && self.held.is_empty() && self.has_room() {
            return match self.inputs.take_or_look() {
                Some(Ok(slot)) => self.fire_slot(slot, context),
                Some(Err(lead)) => {
                    let news = self.pass_on(lead.known);
                    match self.inputs.end_ns(&lead) {
                        Some(end_ns) => self.finish(end_ns),
                        None if news => Fired::Moved,
                        None => Fired::Stuck,
                    }
                }
                None => self.finish(BEFORE_ALL),
            };
        }
        let Some(lead) = self.inputs.look() else { return self.end(BEFORE_ALL) };
        let head_ns = lead.head_ns;
        // Checked before frames are taken: otherwise a frame that arrives in between would make its input certain
        // without being taken.
        let certain = head_ns.is_some_and(|at| self.inputs.are_certain(at));
        let moved = self.inputs.advance(head_ns.or(lead.known.certain_ns));
        if self.is_due() {
            let released = self.release_due();
            self.stats.show(&self.counts);
            return if released || moved { Fired::Moved } else { Fired::Stuck };
        }
        if let Some(end_ns) = self.inputs.end_ns(&lead) {
            return self.finish(end_ns);
        }
        let ready = certain && (!self.sends_next() || self.has_room());
        match if ready { self.inputs.take_lead() } else { None } {
            Some(slot) => self.fire_slot(slot, context),
            None => {
                let news = self.pass_on(lead.before_head());
                if moved || news { Fired::Moved } else { Fired::Stuck }
            }
        }
    }

    fn fire_slot(&mut self, slot: StreamSlot<Frame>, context: &mut LaneContext) -> Fired {
        match slot {
            StreamSlot::Frame { pts_ns, frame } => self.fire_frame(pts_ns, frame, context),
            StreamSlot::Empty { count, first_ns, last_ns, lost } => {
                // `every` thins a run of empty slots as it thins frames.
                let kept = (self.slots + count).div_ceil(self.every) - self.slots.div_ceil(self.every);
                self.slots += count;
                if kept > 0 {
                    self.hold_or_send(StreamSlot::Empty { count: kept, first_ns, last_ns, lost });
                }
                // Only the lead's frames and watermarks tell how long the stream lasts.
                self.pass_on(Watermark { certain_ns: Some(last_ns), ..Watermark::NOTHING });
                Fired::Moved
            }
        }
    }

    fn fire_frame(&mut self, pts_ns: i64, frame: Frame, context: &mut LaneContext) -> Fired {
        self.counts.taken += 1;
        let keep = self.slots.is_multiple_of(self.every);
        self.slots += 1;
        if !keep {
            self.counts.filtered += 1;
            self.pass_on(Watermark::at(pts_ns));
            return Fired::Moved;
        }
        let meta = frame.meta();
        let delta_ns = self.before_ns.map_or(0, |before| pts_ns.saturating_sub(before));
        self.before_ns = Some(pts_ns);
        let now = Now { number: meta.number, pts_ns, delta_ns, birth: meta.birth };
        if self.inputs.lack_one() {
            return self.lack(now, context);
        }
        self.given[self.inputs.lead()] = Some(frame);
        let outcome = self.take_changes(now, context).and_then(|()| self.call(now, context));
        self.follow_lead(now, outcome, context)
    }

    /// Handles the outcome of a call on a frame of the lead.
    fn follow_lead(&mut self, now: Now, outcome: Outcome, context: &mut LaneContext) -> Fired {
        match outcome {
            Err(error) if self.has_to_repeat() => self.wait_for_memory(now.number, &error, context),
            Ok((Flow::Ended, _)) => {
                self.count_filtered();
                self.ending = true;
                self.finish(now.pts_ns - 1)
            }
            outcome => self.settle(now, outcome, context),
        }
    }

    /// Counts the outcome of a call and sends the frames that were made, or an empty slot.
    fn settle(&mut self, now: Now, outcome: Outcome, context: &LaneContext) -> Fired {
        let pts_ns = now.pts_ns;
        self.counts.repeats += self.supplied_again;
        // A frame on every output implies the watermark.
        let mut all_sent = false;
        match outcome {
            Ok((Flow::Produced, true)) => {
                self.counts.held += 1;
                self.held.await_frame(now, self.later_notes.take());
            }
            Ok((Flow::Produced, false)) => {
                self.counts.emitted += 1;
                if self.delay > 0 || !self.held.is_empty() {
                    let made = self.made.first_mut().and_then(Option::take);
                    self.hold_or_send(
                        made.map_or(StreamSlot::empty(pts_ns), |frame| StreamSlot::Frame { pts_ns, frame }),
                    );
                } else {
                    all_sent = self.made.iter().all(Option::is_some);
                    for output in 0..self.outputs.len() {
                        let made = self.made[output].take();
                        let slot = made.map_or(StreamSlot::empty(pts_ns), |frame| StreamSlot::Frame { pts_ns, frame });
                        self.send(output, slot);
                    }
                }
            }
            Ok((Flow::Filtered | Flow::Ended, _)) => {
                self.made.fill(None);
                self.count_filtered();
                self.hold_or_send(StreamSlot::empty(pts_ns));
            }
            Err(error) if error.trouble().is_some() => {
                // Not the handler's fault: the lane recovers the device, and the frame is lost.
                self.made.fill(None);
                self.counts.lost += 1;
                self.hold_or_send(StreamSlot::lost(pts_ns));
                return Fired::Failed(self.failure(now.number, error));
            }
            Err(error) => {
                self.made.fill(None);
                self.count_failed(&error);
                self.hold_or_send(StreamSlot::empty(pts_ns));
                if let Some(failure) = self.report(now.number, error, context) {
                    if self.is_source() {
                        // The frames that the source has sent are complete and still arrive.
                        self.end(self.last_ns());
                    }
                    return Fired::Failed(failure);
                }
            }
        }
        if all_sent {
            self.announced = Watermark::at(pts_ns);
        } else {
            self.pass_on(Watermark::at(pts_ns));
        }
        debug_assert!(self.counts.is_conserved(), "{}: {:?}", self.name(), self.counts);
        Fired::Moved
    }

    fn count_failed(&mut self, error: &HandlerError) {
        self.counts.failed += 1;
        self.stats.failed_in(self.failing_member(error));
    }

    fn count_filtered(&mut self) {
        self.counts.filtered += 1;
        self.stats.filtered_in(self.last_member());
    }

    /// Reports the first failure of each member. Returns the failure if the run must stop.
    fn report(&mut self, frame: u64, error: HandlerError, context: &LaneContext) -> Option<HandlerFailure> {
        let member = self.failing_member(&error);
        let policy = self.members[member].on_error;
        let failure = self.failure(frame, error);
        if policy == OnError::Stop || matches!(failure.error, HandlerError::Hopeless(_)) {
            return Some(failure);
        }
        if !std::mem::replace(&mut self.reported[member], true) {
            let HandlerFailure { handler, error, .. } = &failure;
            context.report(&RunEvent::Failed { handler: handler.clone(), frame, error: error.to_string(), policy });
        }
        None
    }

    /// Fills the oldest awaited slot with its frame, or leaves the slot empty after an error.
    pub(crate) fn deliver(
        &mut self,
        made: Result<Frame, HandlerError>,
        context: &LaneContext,
    ) -> Option<HandlerFailure> {
        let now = self.held.oldest_awaited()?;
        let mut failure = None;
        let slot = match made {
            Ok(mut frame) => {
                frame.stamp(now.number, now.pts_ns, now.birth);
                frame.set_notes(self.held.awaited_notes());
                StreamSlot::Frame { pts_ns: now.pts_ns, frame }
            }
            Err(error) => {
                self.counts.held -= 1;
                self.count_failed(&error);
                failure = self.report(now.number, error, context);
                StreamSlot::empty(now.pts_ns)
            }
        };
        self.held.arrive(slot);
        self.release_due();
        let oldest = self.held.first_frame_ns();
        self.pass_on(Watermark::at(oldest.map_or(now.pts_ns, |oldest| oldest - 1)));
        self.stats.show(&self.counts);
        failure
    }
}
