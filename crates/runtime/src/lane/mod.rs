//! Lanes: nodes that run one after another, on one thread or stepped from outside.
//!
//! Owns the nodes of a lane, its wake signal, its context, and the loop that lets them fire. The device's lane has its nodes
//! in segments and plays what they record, one submit each.
//! Does not know other lanes: links and wake signals are all they share.
//!
//! Always: a lane that can do nothing waits for its wake signal or for the device, never long, so stopping it is waking it;
//! the latest segment that can move goes first, so frames leave before others come.

pub(crate) mod context;
mod recovery;

pub use recovery::Reopen;
pub(crate) use recovery::{MakePlayer, RecoveryState};

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::device::lane_player::{DEVICE, LanePlayer, PlaybackTotals};
use crate::failure::HandlerFailure;
use crate::lane::context::LaneContext;
use crate::link::ring::DropReason;
use crate::link::wake_signal::WakeSignal;
use crate::memory::heap::counted;
use crate::memory::shortage::Shortage;
use crate::node::{Fired, Node};
use crate::observe::lateness::{Lateness, LatenessReporter};
use crate::observe::report::KeptPartial;

/// Nodes that run one after another.
pub struct Lane {
    segments: Vec<Vec<Node>>,
    /// For each segment and node: the nodes behind it whose frames leave the segment. A frame enters a segment only
    /// where it can leave it, so that one frame is one submit.
    gates: Vec<Vec<Vec<usize>>>,
    signal: WakeSignal,
    context: LaneContext,
    player: Option<LanePlayer>,
    recovery: Option<RecoveryState>,
    busy: Arc<Busy>,
    slow: LatenessReporter,
    batch: usize,
    started: bool,
}

/// Which node a lane is in, for whoever wonders why it does not come back.
#[derive(Debug, Default)]
pub struct Busy {
    /// 0 for none, otherwise one more than the node's place among all of the lane.
    at: AtomicUsize,
    moves: AtomicU64,
    tries: AtomicU64,
    /// 0 while something moves, a clock runs or the device works; otherwise what it waits for.
    waits: AtomicU8,
    shortage: Mutex<Option<Shortage>>,
}

/// Only other lanes can wake it.
const FOR_OTHERS: u8 = 1;
/// Memory can, too.
const FOR_MEMORY: u8 = 2;

impl Busy {
    /// The node that is at work, by its place in the lane.
    pub fn node(&self) -> Option<usize> {
        self.at.load(Ordering::Relaxed).checked_sub(1)
    }

    /// What it shows to whoever judges whether waiting is of any use.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn look(&self) -> crate::memory::shortage::WaitingLane {
        let waits = self.waits.load(Ordering::Acquire);
        crate::memory::shortage::WaitingLane {
            moves: self.moves.load(Ordering::Acquire),
            tries: self.tries.load(Ordering::Acquire),
            idle: waits != 0 && self.node().is_none(),
            starves: waits == FOR_MEMORY,
        }
    }

    /// What it waits for, where that is memory.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        if self.waits.load(Ordering::Acquire) != FOR_MEMORY {
            return None;
        }
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what came of a step.
    #[cfg(not(target_arch = "wasm32"))]
    fn note(&self, stepped: &Stepped, shortage: Option<&Shortage>, device_works: bool) {
        let waits = match (stepped, shortage) {
            (Stepped::Stuck, _) if device_works => 0,
            (Stepped::Stuck, None) => FOR_OTHERS,
            (Stepped::Stuck, Some(_)) => FOR_MEMORY,
            _ => 0,
        };
        if waits == FOR_MEMORY {
            *self.shortage.lock().unwrap_or_else(PoisonError::into_inner) = shortage.cloned();
        }
        self.waits.store(waits, Ordering::Release);
        self.moves.fetch_add(u64::from(matches!(stepped, Stepped::Moved)), Ordering::Release);
        self.tries.fetch_add(1, Ordering::Release);
    }

    fn set(&self, node: Option<usize>) {
        self.at.store(node.map_or(0, |node| node + 1), Ordering::Relaxed);
    }
}

/// What came of letting every node of a lane fire once.
#[derive(Debug)]
pub enum Stepped {
    /// Something moved.
    Moved,
    /// Nothing moves before the signal comes or the device has done something.
    Stuck,
    /// Nothing moves before the signal comes or this much time has passed.
    Wait(Duration),
    /// Every node has ended.
    Over,
    /// A handler failed, and its policy is to stop the run.
    Failed(HandlerFailure),
}

impl Lane {
    /// A lane of these nodes, in running order, woken by this wake signal.
    pub fn new(nodes: Vec<Node>, signal: WakeSignal, context: LaneContext) -> Lane {
        Lane {
            gates: vec![vec![Vec::new(); nodes.len()]],
            segments: vec![nodes],
            signal,
            context,
            player: None,
            recovery: None,
            busy: Arc::default(),
            slow: LatenessReporter::default(),
            batch: 1,
            started: false,
        }
    }

    /// The device's lane: nodes in segments, in running order, and who plays what they record. `gates` are, for each
    /// node that lets frames into its segment, the nodes behind it that let them out.
    pub fn on_device(
        segments: Vec<Vec<Node>>,
        gates: Vec<Vec<Vec<usize>>>,
        signal: WakeSignal,
        context: LaneContext,
        player: LanePlayer,
    ) -> Lane {
        Lane { segments, gates, player: Some(player), ..Lane::new(Vec::new(), signal, context) }
    }

    /// Goes on when its device is lost.
    #[must_use]
    pub(crate) fn recovering(mut self, recovery: RecoveryState) -> Lane {
        self.recovery = Some(recovery);
        self
    }

    /// Says whom to ask for the cause when frames are late, and the lane's own number there.
    pub(crate) fn ask(&mut self, lateness: &Arc<Lateness>, number: usize) {
        self.slow = LatenessReporter::of(lateness, number, self.nodes().count());
    }

    /// Puts this many frames into one submit.
    #[must_use]
    pub fn batch(mut self, frames: usize) -> Lane {
        self.batch = frames.max(1);
        self
    }

    /// Its nodes, in running order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.segments.iter().flatten()
    }

    /// Whether it is a source by itself: where that fails, everybody behind it can still finish.
    pub fn is_lone_source(&self) -> bool {
        let mut nodes = self.nodes();
        nodes.next().is_some_and(Node::is_source) && nodes.next().is_none()
    }

    /// Whether it computes pixels on the host, so that more threads would help.
    pub fn computes(&self) -> bool {
        (self.player.is_none() || self.may_leave()) && self.nodes().any(Node::computes)
    }

    /// Whether it is the device's, and goes on without it where need be.
    pub(crate) fn may_leave(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.rule != vramp_plan::OnLoss::Stop)
    }

    /// What wakes it: notify it after asking it to stop.
    pub fn signal(&self) -> &WakeSignal {
        &self.signal
    }

    /// Which of its nodes is at work.
    pub fn busy(&self) -> &Arc<Busy> {
        &self.busy
    }

    /// What plays its recordings, in the device's lane.
    pub fn player(&self) -> Option<&LanePlayer> {
        self.player.as_ref()
    }

    /// What was measured on its device, also where that is gone; and what the rings of its player take.
    pub(crate) fn measured(&self) -> Option<(&PlaybackTotals, u64)> {
        let live = self.player.as_ref().map(|player| (player.kept(), player.player().ring_bytes()));
        live.or_else(|| self.recovery.as_ref()?.kept().map(|kept| (kept, kept.ring_bytes())))
    }

    /// Starts its handlers. Later calls do nothing.
    pub fn start(&mut self) -> Result<(), HandlerFailure> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        let busy = Arc::clone(&self.busy);
        let started = self.segments.iter_mut().flatten().enumerate().try_for_each(|(place, node)| {
            busy.set(Some(place));
            node.start()
        });
        busy.set(None);
        started
    }

    /// Lets its nodes fire once each; in the device's lane, those of the latest segment that can move.
    pub fn step(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        let tally = Arc::clone(self.context.tally());
        if self.recovery.is_some() {
            self.lose_on_purpose();
            #[cfg(not(target_arch = "wasm32"))]
            self.look_for_device(now());
        }
        let stepped =
            counted(&tally, || if self.player.is_some() { self.step_device(now) } else { self.step_host(now) });
        match stepped {
            Stepped::Failed(mut failure) => {
                if failure.handler == DEVICE {
                    failure.frame = self.nodes().map(Node::last_number).max().unwrap_or(0);
                }
                self.recover(failure, now())
            }
            stepped => stepped,
        }
    }

    /// Lets nodes fire that need no device: a lane of the host has one segment, a device's lane without its device may
    /// have several, of which the latest that can move goes first here too.
    fn step_host(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        let Lane { segments, gates, context, busy, slow, .. } = self;
        let (mut over, mut wait) = (true, None::<Duration>);
        let mut base: usize = segments.iter().map(Vec::len).sum();
        for (nodes, gates) in segments.iter_mut().zip(gates).rev() {
            base -= nodes.len();
            match fire_all((nodes, gates), base, now, context, busy, slow, &mut |_, _, _| {}) {
                Stepped::Stuck => over = false,
                Stepped::Wait(time) => {
                    over = false;
                    wait = Some(wait.map_or(time, |other| other.min(time)));
                }
                Stepped::Over => {}
                stepped => return stepped,
            }
        }
        match (over, wait) {
            (true, _) => Stepped::Over,
            (_, Some(wait)) => Stepped::Wait(wait),
            _ => Stepped::Stuck,
        }
    }

    fn step_device(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        let Lane { segments, gates, context, busy, slow, player, batch, .. } = self;
        let Some(player) = player else { return Stepped::Over };
        let mut ended = |(place, node): (usize, &Node), interval, done, context: &LaneContext| {
            context.sunk(node.counts().emitted);
            slow.look_at_sink(place, interval, done, node.last_number(), context);
        };
        let mut arrived = match player.receive(segments, context, now, &mut ended) {
            Ok(arrived) => arrived,
            Err(failure) => return Stepped::Failed(failure),
        };
        player.hear_times();
        match player.play_what_waits(context, now) {
            Ok(played) => arrived |= played,
            Err(failure) => return Stepped::Failed(failure),
        }
        let (mut over, mut wait) = (true, None::<Duration>);
        let mut base: usize = segments.iter().map(Vec::len).sum();
        for (at, nodes) in segments.iter_mut().enumerate().rev() {
            base -= nodes.len();
            match player.has_room(context) {
                Ok(true) => {}
                Ok(false) => return if arrived { Stepped::Moved } else { Stepped::Stuck },
                Err(failure) => return Stepped::Failed(failure),
            }
            let (mut moved, mut starves) = (false, false);
            for _ in 0..*batch {
                let mut asked = |node: usize, frame: u64, context: &mut LaneContext| {
                    player.note_asked(at, node, frame, context);
                };
                match fire_all((nodes, &gates[at]), base, now, context, busy, slow, &mut asked) {
                    Stepped::Moved => moved = true,
                    Stepped::Stuck => {
                        (over, starves) = (false, nodes.iter().any(|node| node.shortage().is_some()));
                        break;
                    }
                    Stepped::Wait(time) => {
                        over = false;
                        wait = Some(wait.map_or(time, |other| other.min(time)));
                        break;
                    }
                    Stepped::Over => break,
                    Stepped::Failed(failure) => {
                        // What was recorded before it goes on its way: those frames are fine.
                        let _ = player.play(context, now);
                        return Stepped::Failed(failure);
                    }
                }
            }
            if moved {
                player.note_recorded(at, nodes.first().map_or(0, |first| first.counts().taken));
                return match player.play(context, now) {
                    Ok(()) => Stepped::Moved,
                    Err(failure) => Stepped::Failed(failure),
                };
            }
            // What the device gives back is for the latest segment, not for more frames to come in.
            if starves && player.is_at_work() {
                return if arrived { Stepped::Moved } else { Stepped::Stuck };
            }
        }
        match (arrived, over && player.is_idle(), wait) {
            (true, ..) => Stepped::Moved,
            (_, true, _) => Stepped::Over,
            (_, _, Some(wait)) => Stepped::Wait(wait),
            _ => Stepped::Stuck,
        }
    }

    /// Runs until everything has ended, a handler fails, or `stopped` says so; `now` tells the time since the start.
    /// Stopping takes effect at the next signal to the lane.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(&mut self, now: &dyn Fn() -> Duration, stopped: impl Fn() -> bool) -> Result<(), HandlerFailure> {
        /// A signal that never comes must not hang a lane for good; nothing depends on this length.
        const LONGEST: Duration = Duration::from_secs(1);
        /// Memory that comes back wakes no lane.
        const FOR_MEMORY: Duration = Duration::from_millis(1);
        while !stopped() {
            let stepped = self.step(now);
            let longest = if self.shortage().is_some() { FOR_MEMORY } else { LONGEST };
            if !matches!(stepped, Stepped::Moved) || self.busy.waits.load(Ordering::Relaxed) != 0 {
                self.busy.note(&stepped, self.shortage(), self.player.as_ref().is_some_and(LanePlayer::is_at_work));
            }
            match stepped {
                Stepped::Moved => {}
                Stepped::Stuck => self.wait(longest),
                Stepped::Wait(wait) => self.wait(wait.min(longest)),
                Stepped::Over => return Ok(()),
                Stepped::Failed(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// What it waits for, where that is memory.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        let delivering = self.player.as_ref().and_then(LanePlayer::shortage);
        delivering.or_else(|| self.nodes().find_map(Node::shortage))
    }

    /// Whether the device works on something for it.
    pub(crate) fn is_at_work(&self) -> bool {
        self.player.as_ref().is_some_and(LanePlayer::is_at_work)
    }

    /// Waits for the device, at most this long; false where only something else can make it move.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait_for_device(&mut self, most: Duration) -> bool {
        match &mut self.player {
            Some(player) if player.waits_for_device() => {
                player.wait(most);
                true
            }
            _ => false,
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn wait(&mut self, most: Duration) {
        if !self.wait_for_device(most) {
            self.signal.wait(most);
        }
    }

    /// Stops its handlers; frames that still wait in front of them are dropped for this reason. Those whose stream has
    /// not ended are stopped early. The first failure is handed back after all have been stopped.
    pub fn stop(&mut self, reason: DropReason) -> Result<(), HandlerFailure> {
        self.end(reason, false, &mut Vec::new())
    }

    /// As `stop`; no handler is stopped early if the end was `intended`. Adds the files that were left unfinished.
    pub(crate) fn end(
        &mut self,
        reason: DropReason,
        intended: bool,
        partial: &mut Vec<KeptPartial>,
    ) -> Result<(), HandlerFailure> {
        if let Some(player) = &mut self.player {
            player.stop(&mut self.context);
        }
        let mut first = Ok(());
        for node in self.segments.iter_mut().flatten() {
            match node.stop(reason, intended) {
                Ok(kept) => partial.extend(kept),
                Err(failure) if first.is_ok() => first = Err(failure),
                Err(_) => {}
            }
        }
        first
    }
}

/// Lets nodes fire once each, in order, and notes how long each took.
fn fire_all(
    (nodes, gates): (&mut [Node], &[Vec<usize>]),
    base: usize,
    now: &dyn Fn() -> Duration,
    context: &mut LaneContext,
    busy: &Busy,
    slow: &mut LatenessReporter,
    after: &mut dyn FnMut(usize, u64, &mut LaneContext),
) -> Stepped {
    let (mut moved, mut over, mut wait) = (false, true, None::<Duration>);
    let begun = now();
    let (mut at, mut fresh, mut longest) = (begun, true, (Duration::ZERO, 0, 0));
    for place in 0..nodes.len() {
        if gates[place].iter().any(|way_out| !nodes[*way_out].has_room()) {
            over = false;
            continue;
        }
        let node = &mut nodes[place];
        busy.set(Some(base + place));
        let (before, was_over) = (node.taken(), node.is_over());
        let measured = node.is_measured() || context.is_traced();
        if measured && !fresh {
            at = now();
        }
        let fired = node.fire(at, context);
        after(place, node.last_number(), context);
        fresh = false;
        if measured && node.taken() != before {
            let done = now();
            let took = done.saturating_sub(at);
            let interval = node.note_call(took, done);
            context.span(base + place, node.last_number(), at, done);
            if node.is_sink() && !node.awaits() {
                context.sunk(node.taken());
                slow.look_at_sink(base + place, interval, done, node.last_number(), context);
            }
            if took > longest.0 {
                longest = (took, base + place, node.last_number());
            }
            (at, fresh) = (done, true);
        }
        match fired {
            Fired::Moved => (moved, over) = (true, false),
            Fired::Stuck | Fired::Starved => over = false,
            Fired::Wait(time) => {
                over = false;
                wait = Some(wait.map_or(time, |other| other.min(time)));
            }
            // Whoever waits behind it can move now.
            Fired::Over => moved |= !was_over,
            Fired::Failed(failure) => {
                busy.set(None);
                return Stepped::Failed(failure);
            }
        }
    }
    busy.set(None);
    slow.look(at.saturating_sub(begun), longest, at, context);
    match (moved, over, wait) {
        (true, ..) => Stepped::Moved,
        (_, true, _) => Stepped::Over,
        (_, _, Some(wait)) => Stepped::Wait(wait),
        _ => Stepped::Stuck,
    }
}
