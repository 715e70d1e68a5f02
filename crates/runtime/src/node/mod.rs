//! Nodes: when a handler fires, and what travels on besides frames.
//!
//! Owns the input rule, the places of frames that failed or were filtered, what `delay` holds and `every` keeps, what
//! comes later, and the count of it all.
//! Does not choose whose turn it is: a lane does.
//!
//! Always: one frame out per frame of the lead; a node that cannot fire passes on what it knows, so nobody waits for a
//! frame that will never come; taken = emitted + filtered + failed + lost + held.

mod calling;
mod configure;
pub(crate) mod delay_line;
pub(crate) mod inputs;
mod loss;
pub(crate) mod pace;
mod sending;
mod short;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vramp_plan::{OnError, PlannedMemory, Size};

use crate::clock::{Clock, Paced, Tick};
use crate::failure::{HandlerFailure, NodeMember, catch};
use crate::frame::{Birth, Frame, Meta};
use crate::handler::{Flow, FrameHandler, HandlerError, Now, PartialFile};
use crate::lane::context::LaneContext;
use crate::link::LinkSender;
use crate::link::ring::{BEFORE_ALL, DropReason, StreamSlot};
use crate::node::delay_line::DelayLine;
use crate::node::inputs::{Inputs, Watermark};
use crate::node::pace::SourcePace;
use crate::observe::monitor::{Measuring, NodeCounts, NodeStats, RunEvent};
use crate::observe::report::KeptPartial;

/// What came of asking a node to fire.
#[derive(Debug)]
pub enum Fired {
    /// Something moved.
    Moved,
    /// Nothing can move before something comes, or there is room.
    Stuck,
    /// It waits for memory, and has taken nothing meanwhile.
    Starved,
    /// The next frame of a source is due after this long.
    Wait(Duration),
    /// The handler failed, and the policy is to stop.
    Failed(HandlerFailure),
    /// It has ended, and everybody behind it knows.
    Over,
}

/// What a source's frame of a new size has to pass: planning anew. It hands back what the pools then need; an error is
/// why the run cannot go on.
pub type Replan = Arc<dyn Fn(&str, Size) -> Result<PlannedMemory, String> + Send + Sync>;

/// A handler with its links.
#[expect(clippy::struct_excessive_bools, reason = "four facts of its making and four of its life, each by itself")]
pub struct Node {
    members: Vec<NodeMember>,
    handler: Box<dyn FrameHandler>,
    inputs: Inputs,
    outputs: Vec<Vec<LinkSender<Frame>>>,
    /// Which inputs end it when they end, beside its lead.
    ends_with: Vec<bool>,
    /// Which member each input belongs to.
    input_of: Vec<usize>,
    clock: Option<Clock>,
    pace: SourcePace,
    /// The number and the birth of a source's last frame.
    born: Option<(u64, Birth)>,
    planned: Option<(Size, Replan)>,
    limit: u64,
    finishing: Arc<AtomicBool>,
    delay: usize,
    /// Whether what is held leaves under the number and time of the frame that pushes it out.
    shifts: bool,
    every: u64,
    places: u64,
    held: DelayLine,
    sunk_ns: Option<u64>,
    before_ns: Option<i64>,
    told: Watermark,
    /// When the stream that it makes has ended, once it is ending.
    end_ns: i64,
    given: Vec<Option<Frame>>,
    made: Vec<Option<Frame>>,
    /// Inputs that supplied a frame once more to the last call.
    supplied_again: u64,
    counts: NodeCounts,
    stats: Arc<NodeStats>,
    last: Now,
    /// Whether it follows its only input and neither delays nor thins it out.
    is_simple: bool,
    /// Whether a handler of it is tried again when it fails.
    retries: bool,
    enters_device: bool,
    measuring: Measuring,
    /// Whether its handler has said that there will be no more: what is held still goes.
    ending: bool,
    /// Members whose failures have been reported.
    reported: Vec<bool>,
    started: bool,
    over: bool,
    memory: short::NodeMemory,
}

impl Node {
    /// Its name: its handlers', joined.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        names.join("+")
    }

    /// Its handlers.
    pub fn members(&self) -> &[NodeMember] {
        &self.members
    }

    /// What it has counted.
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Whether frames come to the device here for the first time.
    pub(crate) fn enters_device(&self) -> bool {
        self.enters_device
    }

    /// Frames that came, or were due.
    pub(crate) fn taken(&self) -> u64 {
        self.counts.taken
    }

    /// What it shows while it runs.
    pub fn stats(&self) -> &Arc<NodeStats> {
        &self.stats
    }

    /// Whether it computes pixels.
    pub fn computes(&self) -> bool {
        self.handler.computes()
    }

    /// Whether it takes frames and sends none.
    pub fn is_sink(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Whether it makes frames by a clock instead of following an input.
    pub fn is_source(&self) -> bool {
        self.clock.is_some() || self.inputs.is_empty()
    }

    /// Called once before the first frame.
    pub fn start(&mut self) -> Result<(), HandlerFailure> {
        self.started = true;
        let started = catch(|| self.handler.start());
        started.map_err(|error| {
            if self.is_source() {
                // Those behind it may be in other lanes, and would wait.
                self.end(BEFORE_ALL);
            }
            self.failure(0, error)
        })
    }

    /// Called once after the last frame: what still waits in front is dropped and counted, files are finished. A node
    /// whose stream has not ended, or any after a failure, is stopped early unless the end was `intended`; a file that
    /// it then leaves beside an older one is returned.
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
        let kept = stopped.map_err(|error| self.failure(number, error))?;
        Ok(kept.map(|PartialFile { path, instead_of }| KeptPartial { handler: self.name(), path, instead_of }))
    }

    fn failure(&self, frame: u64, error: HandlerError) -> HandlerFailure {
        let member = self.blamed(&error);
        HandlerFailure { handler: self.members[member].name.clone(), frame, error }
    }

    /// The member that an error is blamed on.
    fn blamed(&self, error: &HandlerError) -> usize {
        match error {
            HandlerError::SideLost { input } => self.input_of[*input],
            _ => self.last_member(),
        }
    }

    /// The member that the last call came to before it failed or filtered its frame out.
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
            false => self.fire_lead(context),
        };
        if self.counts.taken != taken || again {
            self.stats.show(&self.counts);
        }
        fired
    }

    fn fire_source(&mut self, since_start: Duration, context: &mut LaneContext) -> Fired {
        let done = self.counts.taken >= self.limit || self.finishing.load(Ordering::Relaxed);
        if done || self.is_unwanted() {
            return self.end(self.last_ns());
        }
        if !self.has_room() {
            return Fired::Stuck;
        }
        let Some(clock) = &self.clock else { return self.end(self.last_ns()) };
        let tick = match clock.due(since_start) {
            Paced::Wait(wait) => return Fired::Wait(wait),
            Paced::Fire(tick) => tick,
        };
        // A generator that others are fused to has inputs too, none of which leads.
        let certain = self.inputs.are_certain(tick.pts_ns);
        let moved = self.inputs.advance(Some(tick.pts_ns));
        // What is told before the frame is made must not be later than the end: asked first, once for a tick.
        let past = if certain { self.inputs.end_before(tick.pts_ns) } else { None };
        if !certain || past.is_some() {
            let now = self.now_at(&tick, since_start);
            if catch(|| Ok(self.handler.has_ended(&now))).unwrap_or(false) {
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
        if let Some(clock) = &mut self.clock {
            clock.fired(&tick, since_start);
        }
        let now = self.now_at(&tick, since_start);
        if self.inputs.lack_one() {
            context.clear_aside();
            self.counts.taken += 1;
            self.before_ns = Some(now.pts_ns);
            return self.lack(now, context);
        }
        let outcome = self.call(now, context);
        context.clear_aside();
        self.follow_clock(now, outcome, context)
    }

    /// The time of the last place that a source made.
    fn last_ns(&self) -> i64 {
        self.before_ns.unwrap_or(BEFORE_ALL)
    }

    /// The birth of a frame is measured once, however often its node has to wait for other inputs.
    fn now_at(&mut self, tick: &Tick, since_start: Duration) -> Now {
        let known = self.born.filter(|(number, _)| *number == tick.number).map(|(_, birth)| birth);
        let birth = known.unwrap_or_else(|| self.pace.birth(since_start, tick));
        self.born = Some((tick.number, birth));
        Now { number: tick.number, pts_ns: tick.pts_ns, delta_ns: tick.delta_ns, birth }
    }

    /// What becomes of a source's call.
    fn follow_clock(
        &mut self,
        now: Now,
        outcome: Result<(Flow, bool), HandlerError>,
        context: &mut LaneContext,
    ) -> Fired {
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

    /// Whether everybody behind it has ended: then nothing it makes would be taken, and who feeds it may end too. Asked
    /// now and then, since that is rare.
    fn is_unwanted(&self) -> bool {
        const NOW_AND_THEN: u64 = 16;
        self.counts.taken.is_multiple_of(NOW_AND_THEN)
            && self.outputs.iter().flatten().next().is_some()
            && self.outputs.iter().flatten().all(LinkSender::is_closed)
    }

    /// Has the graph planned anew where a source's frames change their size.
    fn follow_size(&mut self, frame: u64, context: &LaneContext) -> Result<(), HandlerError> {
        let Some((planned, replan)) = &mut self.planned else { return Ok(()) };
        let Some(size) = self.made.iter().flatten().map(|made| made.meta().size).next() else { return Ok(()) };
        if size == *planned {
            return Ok(());
        }
        let name = self.members[0].name.as_str();
        replan(name, size).map_err(|problem| HandlerError::failed(format!("its frames became {size}: {problem}")))?;
        *planned = size;
        if let Some(meta) = &mut self.memory.aside {
            meta.size = size;
        }
        context.report(&RunEvent::Replanned { handler: name.to_owned(), frame, size });
        Ok(())
    }

    fn fire_lead(&mut self, context: &mut LaneContext) -> Fired {
        if self.is_unwanted() {
            return self.end(BEFORE_ALL);
        }
        if self.ending {
            return self.flush();
        }
        // Most nodes have one input and hold nothing: their ring is asked once.
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
        // Asked before looking what is there: what comes in between would be certain, and not taken.
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
                // Of a run of empty places as many stay as would have been kept.
                let kept = (self.places + count).div_ceil(self.every) - self.places.div_ceil(self.every);
                self.places += count;
                if kept > 0 {
                    self.hold_or_send(StreamSlot::Empty { count: kept, first_ns, last_ns, lost });
                }
                // How long the stream lasts is known from the lead's frames and watermarks alone.
                self.pass_on(Watermark { certain_ns: Some(last_ns), ..Watermark::NOTHING });
                Fired::Moved
            }
        }
    }

    fn fire_frame(&mut self, pts_ns: i64, frame: Frame, context: &mut LaneContext) -> Fired {
        self.counts.taken += 1;
        let keep = self.places.is_multiple_of(self.every);
        self.places += 1;
        if !keep {
            self.counts.filtered += 1;
            self.pass_on(Watermark::at(pts_ns));
            return Fired::Moved;
        }
        let meta = frame.meta();
        let delta_ns = self.before_ns.map_or(0, |before| pts_ns - before);
        self.before_ns = Some(pts_ns);
        let now = Now { number: meta.number, pts_ns, delta_ns, birth: meta.birth };
        if self.inputs.lack_one() {
            return self.lack(now, context);
        }
        self.given[self.inputs.lead()] = Some(frame);
        let outcome = self.call(now, context);
        self.follow_lead(now, outcome, context)
    }

    /// What becomes of a call on a frame of the lead.
    fn follow_lead(
        &mut self,
        now: Now,
        outcome: Result<(Flow, bool), HandlerError>,
        context: &mut LaneContext,
    ) -> Fired {
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

    /// Counts what came of a frame and sends it, or its empty place, on.
    fn settle(&mut self, now: Now, outcome: Result<(Flow, bool), HandlerError>, context: &LaneContext) -> Fired {
        let pts_ns = now.pts_ns;
        self.counts.repeats += self.supplied_again;
        // A frame on every output says as much as a watermark would.
        let mut all_sent = false;
        match outcome {
            Ok((Flow::Produced, true)) => {
                self.counts.held += 1;
                self.held.await_frame(now);
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
                // Nobody's fault here: the lane sees to it, and the frame is lost.
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
                        // What it has sent is whole and arrives.
                        self.end(self.last_ns());
                    }
                    return Fired::Failed(failure);
                }
            }
        }
        if all_sent {
            self.told = Watermark::at(pts_ns);
        } else {
            self.pass_on(Watermark::at(pts_ns));
        }
        debug_assert!(self.counts.is_conserved(), "{}: {:?}", self.name(), self.counts);
        Fired::Moved
    }

    /// Counts a frame that the last call failed on.
    fn count_failed(&mut self, error: &HandlerError) {
        self.counts.failed += 1;
        self.stats.failed_in(self.blamed(error));
    }

    /// Counts a frame that the last call filtered out.
    fn count_filtered(&mut self) {
        self.counts.filtered += 1;
        self.stats.filtered_in(self.last_member());
    }

    /// Reports a failure, once per member; hands it back where the run is to stop for it.
    fn report(&mut self, frame: u64, error: HandlerError, context: &LaneContext) -> Option<HandlerFailure> {
        let member = self.blamed(&error);
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

    /// Gives the oldest place that is awaited its frame, or says that there will be none.
    pub(crate) fn deliver(
        &mut self,
        made: Result<Frame, HandlerError>,
        context: &LaneContext,
    ) -> Option<HandlerFailure> {
        let now = self.held.oldest_awaited()?;
        let mut failure = None;
        let slot = match made {
            Ok(mut frame) => {
                let own = *frame.meta();
                frame.set_meta(Meta { pts_ns: now.pts_ns, number: now.number, birth: now.birth, ..own });
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

    /// Whether its next call is to be measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.is_sink() || self.measuring.is_due(self.counts.taken)
    }

    /// Notes how long the last call took; a sink's frame has arrived by then. Lanes call it, since they know the time.
    /// Hands back the time since a sink's frame before.
    pub(crate) fn note_call(&mut self, took: Duration, done: Duration) -> Option<Duration> {
        let took_ns = took.as_nanos() as u64;
        self.stats.call.add(took_ns);
        self.measuring.note(took_ns);
        // What is still awaited has not arrived.
        if !self.is_sink() || self.held.awaited() > 0 {
            return None;
        }
        self.note_arrival(self.last.birth.at_ns, done)
    }

    /// Notes that a frame that was born then has arrived at this sink; hands back the time since the one before.
    fn note_arrival(&mut self, born_ns: u64, done: Duration) -> Option<Duration> {
        let at_ns = done.as_nanos() as u64;
        self.stats.latency.add(at_ns.saturating_sub(born_ns));
        let interval_ns = at_ns.saturating_sub(self.sunk_ns.replace(at_ns)?);
        self.stats.interval.add(interval_ns);
        Some(Duration::from_nanos(interval_ns))
    }

    /// The number of the last frame it was given or made.
    pub(crate) fn last_number(&self) -> u64 {
        self.last.number
    }
}
