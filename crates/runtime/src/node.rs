//! Nodes: when a handler fires, and what travels on besides frames.
//!
//! Owns the input rule, the places of frames that failed or were filtered, what `delay` holds and `every` keeps, and the
//! count of it all.
//! Does not choose whose turn it is: a lane does.
//!
//! Always: one frame out per frame of the lead; a node that cannot fire passes on what it knows, so nobody waits for a
//! frame that will never come; taken = emitted + filtered + failed + held.

use std::collections::VecDeque;
use std::time::Duration;

use vramp_plan::{OnError, Policy, Until};

use crate::clock::{Clock, Paced};
use crate::frame::Frame;
use crate::handler::{Call, Flow, FrameHandler, HandlerError, Now};
use crate::link::{Input, Output};
use crate::pool::HostPool;
use crate::ring::{DropReason, Ring, Sent, Slot};

/// What a node has counted, in frames of its lead input; for sources, frames it made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// Frames that came, or were due.
    pub taken: u64,
    /// Frames that went on.
    pub emitted: u64,
    /// Frames that ended here on purpose.
    pub filtered: u64,
    /// Frames on which the handler failed.
    pub failed: u64,
    /// Frames that are held back.
    pub held: u64,
}

impl NodeCounts {
    /// Whether every frame is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.taken == self.emitted + self.filtered + self.failed + self.held
    }
}

/// What came of asking a node to fire.
#[derive(Debug)]
pub enum Fired {
    /// Something moved.
    Moved,
    /// Nothing can move before something comes, or there is room.
    Stuck,
    /// The next frame of a source is due after this long.
    Wait(Duration),
    /// The handler failed, and the policy is to stop.
    Failed(HandlerError),
    /// It has ended, and everybody behind it knows.
    Over,
}

/// A handler with its links.
pub struct Node {
    name: String,
    handler: Box<dyn FrameHandler>,
    inputs: Vec<Option<In>>,
    outputs: Vec<Vec<Output<Frame>>>,
    lead: usize,
    until: Until,
    on_error: OnError,
    clock: Option<Clock>,
    delay: usize,
    every: u64,
    places: u64,
    held: VecDeque<Slot<Frame>>,
    before_ns: Option<i64>,
    told_ns: Option<i64>,
    last_error: Option<HandlerError>,
    given: Vec<Option<Frame>>,
    made: Vec<Option<Frame>>,
    counts: NodeCounts,
    over: bool,
}

/// An input with how it delivers and its newest frame.
struct In {
    link: Input<Frame>,
    policy: Policy,
    newest: Option<Frame>,
}

impl Node {
    /// A node of this name around a handler with this many inputs and outputs; the first input leads.
    pub fn new(name: impl Into<String>, handler: Box<dyn FrameHandler>, inputs: usize, outputs: usize) -> Node {
        Node {
            name: name.into(),
            handler,
            inputs: (0..inputs).map(|_| None).collect(),
            outputs: (0..outputs).map(|_| Vec::new()).collect(),
            lead: 0,
            until: Until::default(),
            on_error: OnError::default(),
            clock: None,
            delay: 0,
            every: 1,
            places: 0,
            held: VecDeque::new(),
            before_ns: None,
            told_ns: None,
            last_error: None,
            given: vec![None; inputs],
            made: vec![None; outputs],
            counts: NodeCounts::default(),
            over: false,
        }
    }

    /// Follows another input than the first.
    #[must_use]
    pub fn lead(mut self, input: usize) -> Node {
        self.lead = input;
        self
    }

    /// Says when it ends.
    #[must_use]
    pub fn until(mut self, until: Until) -> Node {
        self.until = until;
        self
    }

    /// Says what happens when its handler fails.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Node {
        self.on_error = on_error;
        self
    }

    /// Makes it a source that fires by this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Node {
        self.clock = Some(clock);
        self
    }

    /// Holds back this many places, and lets one in `every` pass.
    #[must_use]
    pub fn pacing(mut self, delay: usize, every: u64) -> Node {
        (self.delay, self.every) = (delay, every.max(1));
        self.held.reserve(2 * delay + 2);
        self
    }

    /// Connects an input.
    pub fn connect_input(&mut self, input: usize, link: Input<Frame>, policy: Policy) {
        self.inputs[input] = Some(In { link, policy, newest: None });
    }

    /// Connects an output to one more link.
    pub fn connect_output(&mut self, output: usize, link: Output<Frame>) {
        self.outputs[output].push(link);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it has counted.
    pub fn counts(&self) -> NodeCounts {
        self.counts
    }

    /// The error of the last frame that was skipped for one.
    pub fn last_error(&self) -> Option<&HandlerError> {
        self.last_error.as_ref()
    }

    /// Called once before the first frame.
    pub fn start(&mut self) -> Result<(), HandlerError> {
        self.handler.start()
    }

    /// Called once after the last frame: what still waits in front is dropped and counted.
    pub fn stop(&mut self, reason: DropReason) -> Result<(), HandlerError> {
        for input in self.inputs.iter_mut().flatten() {
            input.link.drain(reason);
            input.newest = None;
        }
        self.held.clear();
        self.handler.stop()
    }

    /// Fires at most once.
    pub fn fire(&mut self, since_start: Duration, pool: &HostPool) -> Fired {
        if self.over {
            return Fired::Over;
        }
        if self.inputs.is_empty() { self.fire_source(since_start, pool) } else { self.fire_lead(pool) }
    }

    fn fire_source(&mut self, since_start: Duration, pool: &HostPool) -> Fired {
        if !self.has_room() {
            return Fired::Stuck;
        }
        let Some(clock) = &mut self.clock else { return self.end() };
        let tick = match clock.ask(since_start) {
            Paced::Wait(wait) => return Fired::Wait(wait),
            Paced::Fire(tick) => tick,
        };
        let now = Now { number: tick.number, pts_ns: tick.pts_ns, delta_ns: tick.delta_ns };
        match self.call(now, pool) {
            Ok(Flow::Ended) => self.end(),
            outcome => {
                self.counts.taken += 1;
                self.settle(now.pts_ns, outcome)
            }
        }
    }

    fn fire_lead(&mut self, pool: &HostPool) -> Fired {
        let Some(lead) = &self.inputs[self.lead] else { return self.end() };
        let (head_ns, known_ns, over) =
            lead.link.look(|ring| (ring.head().map(Slot::first_ns), ring.certain_ns(), ring.is_over()));
        let moved = self.advance_others(head_ns.or(known_ns));
        if self.held_places() > self.delay as u64 {
            return if self.release_due() || moved { Fired::Moved } else { Fired::Stuck };
        }
        if over || self.until == Until::Shortest && self.another_is_over() {
            return self.flush();
        }
        let ready = head_ns.is_some_and(|at| self.is_certain(at) && (!self.sends_next() || self.has_room()));
        let slot = if ready { self.inputs[self.lead].as_ref().and_then(|lead| lead.link.take()) } else { None };
        match slot {
            None => {
                let news = self.pass_on(head_ns.map(|at| at - 1).or(known_ns));
                if moved || news { Fired::Moved } else { Fired::Stuck }
            }
            Some(Slot::Frame { pts_ns, frame }) => self.fire_frame(pts_ns, frame, pool),
            Some(Slot::Empty { count, first_ns, last_ns }) => {
                // Of a run of empty places as many stay as would have been kept.
                let kept = (self.places + count).div_ceil(self.every) - self.places.div_ceil(self.every);
                self.places += count;
                if kept > 0 {
                    self.hold_or_send(Slot::Empty { count: kept, first_ns, last_ns });
                }
                self.pass_on(Some(last_ns));
                Fired::Moved
            }
        }
    }

    fn fire_frame(&mut self, pts_ns: i64, frame: Frame, pool: &HostPool) -> Fired {
        self.counts.taken += 1;
        let keep = self.places.is_multiple_of(self.every);
        self.places += 1;
        if !keep {
            self.counts.filtered += 1;
            self.pass_on(Some(pts_ns));
            return Fired::Moved;
        }
        let delta_ns = self.before_ns.map_or(0, |before| pts_ns - before);
        self.before_ns = Some(pts_ns);
        let now = Now { number: frame.meta().number, pts_ns, delta_ns };
        self.given[self.lead] = Some(frame);
        match self.call(now, pool) {
            Ok(Flow::Ended) => {
                self.counts.filtered += 1;
                self.flush()
            }
            outcome => self.settle(pts_ns, outcome),
        }
    }

    /// Calls the handler on what was given, once more where that is the policy.
    fn call(&mut self, now: Now, pool: &HostPool) -> Result<Flow, HandlerError> {
        // Only a handler that is tried twice needs its frame kept: any other may be its sole holder and edit in place.
        let spare = if self.on_error == OnError::Retry { self.given.get(self.lead).cloned().flatten() } else { None };
        let outcome = self.call_once(now, pool);
        match spare {
            Some(frame) if outcome.is_err() => {
                self.given[self.lead] = Some(frame);
                self.call_once(now, pool)
            }
            _ => outcome,
        }
    }

    fn call_once(&mut self, now: Now, pool: &HostPool) -> Result<Flow, HandlerError> {
        for (at, input) in self.inputs.iter().enumerate().filter(|(at, _)| *at != self.lead) {
            self.given[at] = input.as_ref().and_then(|input| input.newest.clone());
        }
        self.made.fill(None);
        let mut call = Call { now, inputs: &mut self.given, outputs: &mut self.made, pool };
        let outcome = self.handler.process(&mut call);
        self.given.fill(None);
        outcome
    }

    /// Counts what came of a frame and sends it, or its empty place, on.
    fn settle(&mut self, pts_ns: i64, outcome: Result<Flow, HandlerError>) -> Fired {
        match outcome {
            Ok(Flow::Produced) => {
                self.counts.emitted += 1;
                if self.delay > 0 {
                    let made = self.made.first_mut().and_then(Option::take);
                    self.hold_or_send(made.map_or(Slot::empty(pts_ns), |frame| Slot::Frame { pts_ns, frame }));
                } else {
                    for output in 0..self.outputs.len() {
                        let made = self.made[output].take();
                        let slot = made.map_or(Slot::empty(pts_ns), |frame| Slot::Frame { pts_ns, frame });
                        self.send(output, &slot);
                    }
                }
            }
            Ok(Flow::Filtered | Flow::Ended) => {
                self.counts.filtered += 1;
                self.hold_or_send(Slot::empty(pts_ns));
            }
            Err(error) => {
                self.counts.failed += 1;
                self.hold_or_send(Slot::empty(pts_ns));
                if self.on_error == OnError::Stop {
                    return Fired::Failed(error);
                }
                self.last_error = Some(error);
            }
        }
        self.pass_on(Some(pts_ns));
        debug_assert!(self.counts.is_conserved(), "{}: {:?}", self.name, self.counts);
        Fired::Moved
    }

    /// Sends a slot, or holds it back and sends what has been held long enough.
    fn hold_or_send(&mut self, slot: Slot<Frame>) {
        if self.delay == 0 {
            (0..self.outputs.len()).for_each(|output| self.send(output, &slot));
            return;
        }
        self.count_held(&slot, true);
        match (slot, self.held.back_mut()) {
            (Slot::Empty { count, last_ns, .. }, Some(Slot::Empty { count: before, last_ns: last, .. })) => {
                *before += count;
                *last = last_ns;
            }
            (slot, _) => self.held.push_back(slot),
        }
        self.release_due();
    }

    /// Sends what has been held long enough, as far as there is room: a run of empty places can make several frames
    /// due at once.
    fn release_due(&mut self) -> bool {
        let mut moved = false;
        while self.held_places() > self.delay as u64 && self.has_room() {
            self.release();
            moved = true;
        }
        moved
    }

    /// Sends the oldest place that is held.
    fn release(&mut self) {
        let Some(oldest) = self.held.front_mut() else { return };
        let slot = match oldest {
            Slot::Empty { count, first_ns, .. } if *count > 1 => {
                // Which times the rest of a run has is not known: only its first is certain.
                *count -= 1;
                Slot::empty(*first_ns)
            }
            _ => match self.held.pop_front() {
                Some(slot) => slot,
                None => return,
            },
        };
        self.count_held(&slot, false);
        (0..self.outputs.len()).for_each(|output| self.send(output, &slot));
    }

    /// A frame that is held counts as held, not as emitted, until it goes.
    fn count_held(&mut self, slot: &Slot<Frame>, held: bool) {
        if let Slot::Frame { .. } = slot {
            let (from, to) = if held {
                (&mut self.counts.emitted, &mut self.counts.held)
            } else {
                (&mut self.counts.held, &mut self.counts.emitted)
            };
            *from -= 1;
            *to += 1;
        }
    }

    fn held_places(&self) -> u64 {
        let places = |slot: &Slot<Frame>| match slot {
            Slot::Frame { .. } => 1,
            Slot::Empty { count, .. } => *count,
        };
        self.held.iter().map(places).sum()
    }

    /// Whether taking the next place from the lead makes this node send one.
    fn sends_next(&self) -> bool {
        self.places.is_multiple_of(self.every) && self.held_places() >= self.delay as u64
    }

    fn send(&self, output: usize, slot: &Slot<Frame>) {
        for link in &self.outputs[output] {
            let full = matches!(link.send(slot.clone()), Sent::Full(_));
            debug_assert!(!full, "{} fired without room", self.name);
        }
    }

    /// Says what is known: nothing will come before the oldest place that is held, or up to this time.
    fn pass_on(&mut self, known_ns: Option<i64>) -> bool {
        let known_ns = self.held.front().map_or(known_ns, |oldest| Some(oldest.first_ns() - 1).min(known_ns));
        let news = known_ns > self.told_ns;
        if let (true, Some(known)) = (news, known_ns) {
            self.told_ns = known_ns;
            self.outputs.iter().flatten().for_each(|link| link.watermark(known));
        }
        news
    }

    /// Takes from the other inputs what lies behind the lead: of that, only the newest frame counts.
    fn advance_others(&mut self, passed_ns: Option<i64>) -> bool {
        let Some(passed) = passed_ns else { return false };
        let mut moved = false;
        for (at, input) in self.inputs.iter_mut().enumerate() {
            if let (true, Some(input)) = (at != self.lead, input)
                && let Some(newest) = input.link.take_up_to(passed)
            {
                input.newest = Some(newest);
                moved = true;
            }
        }
        moved
    }

    /// Whether every other input is certain at this time: over a lossless link it waits, over others it takes what
    /// is there.
    fn is_certain(&self, at_ns: i64) -> bool {
        let others = self.inputs.iter().enumerate().filter(|(at, _)| *at != self.lead);
        others
            .filter_map(|(_, input)| input.as_ref())
            .all(|input| input.policy != Policy::Lossless || input.link.look(|ring| ring.is_certain(at_ns)))
    }

    fn another_is_over(&self) -> bool {
        let others = self.inputs.iter().enumerate().filter(|(at, _)| *at != self.lead);
        others.filter_map(|(_, input)| input.as_ref()).any(|input| input.link.look(Ring::is_over))
    }

    fn has_room(&self) -> bool {
        self.outputs.iter().flatten().all(Output::has_room)
    }

    /// Sends what is held, one place at a time, and then ends.
    fn flush(&mut self) -> Fired {
        if self.held.is_empty() {
            return self.end();
        }
        if !self.has_room() {
            return Fired::Stuck;
        }
        self.release();
        Fired::Moved
    }

    fn end(&mut self) -> Fired {
        self.outputs.iter().flatten().for_each(Output::end);
        // Its other inputs may still be fed: nobody must wait for room in front of a node that takes no more.
        for input in self.inputs.iter_mut().flatten() {
            input.link.close();
            input.newest = None;
        }
        self.over = true;
        Fired::Over
    }
}
