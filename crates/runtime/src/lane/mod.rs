//! A lane: nodes that run one after another, on one thread or stepped from outside.
//!
//! The nodes of the device lane are divided into segments. What a segment records is played, that is, turned into one
//! submit. There is one device lane per device, and a full ring after one segment does not block the other segments. In
//! each step the device lane receives finished downloads, plays a recording that could not be played before, and then
//! fires the segment furthest downstream that can move, so that frames leave before others enter. `--in-flight` bounds
//! the submissions in flight, and `--batch` puts several frames into one submit.
//!
//! Lanes share only links and wake signals. An idle lane waits for its signal, or for the device if only the device can
//! let the lane move. A wait for the device is short and any other wait ends at the signal, so that notifying the
//! signal suffices to stop a lane.

pub(crate) mod context;
mod recovery;

pub use recovery::Reopen;
pub(crate) use recovery::{MakePlayer, RecoveryState};

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

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
    /// By segment and node: the downstream nodes through which frames leave the segment. A frame enters a segment only
    /// if it can leave the segment, so that the frame's work in that segment is one submit.
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

/// What a lane is doing, for the watching thread.
#[derive(Debug, Default)]
pub struct Busy {
    /// 0 if idle, otherwise the node's position in the lane plus 1.
    at: AtomicUsize,
    moves: AtomicU64,
    tries: AtomicU64,
    /// 0 while something moves, a clock runs or the device works; otherwise [`FOR_OTHERS`] or [`FOR_MEMORY`].
    waits: AtomicU8,
    shortage: Mutex<Option<Shortage>>,
}

/// Waits for other lanes.
const FOR_OTHERS: u8 = 1;
/// Waits for memory or other lanes.
const FOR_MEMORY: u8 = 2;

impl Busy {
    /// Position in the lane of the node that is being called.
    pub fn node(&self) -> Option<usize> {
        self.at.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The state for the detection of stalls.
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

    /// The memory that the lane waits for.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        if self.waits.load(Ordering::Acquire) != FOR_MEMORY {
            return None;
        }
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the outcome of a step.
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

/// The result of [`Lane::step`].
#[derive(Debug)]
pub enum Stepped {
    Moved,
    /// Nothing moves until a wake signal comes or the device makes progress.
    Stuck,
    /// Nothing moves until a wake signal comes or this time has passed.
    Wait(Duration),
    /// Every node has ended.
    Over,
    /// A handler failed and its policy is to stop the run.
    Failed(HandlerFailure),
}

impl Lane {
    /// A host lane of these nodes, in running order.
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

    /// The device lane: nodes in segments, in running order, and the player of their recordings. `gates` holds, for
    /// each node that admits frames to its segment, the nodes through which those frames leave.
    pub fn on_device(
        segments: Vec<Vec<Node>>,
        gates: Vec<Vec<Vec<usize>>>,
        signal: WakeSignal,
        context: LaneContext,
        player: LanePlayer,
    ) -> Lane {
        Lane { segments, gates, player: Some(player), ..Lane::new(Vec::new(), signal, context) }
    }

    /// Lets the lane continue after a device loss.
    #[must_use]
    pub(crate) fn recovering(mut self, recovery: RecoveryState) -> Lane {
        self.recovery = Some(recovery);
        self
    }

    /// Connects the lane, by its number, to the analysis of late frames.
    pub(crate) fn ask(&mut self, lateness: &Arc<Lateness>, number: usize) {
        self.slow = LatenessReporter::of(lateness, number, self.nodes().count());
    }

    /// Puts this many frames into one submit.
    #[must_use]
    pub fn batch(mut self, frames: usize) -> Lane {
        self.batch = frames.max(1);
        self
    }

    /// In running order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.segments.iter().flatten()
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.segments.iter_mut().flatten()
    }

    /// Each node, with the device on which its frames are.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn nodes_with_device(&mut self) -> impl Iterator<Item = (Option<vramp_gpu::Device>, &mut Node)> {
        let Lane { segments, context, .. } = self;
        let device = context.device_context().map(|device_context| device_context.device().clone());
        segments.iter_mut().flatten().map(move |node| (device.clone(), node))
    }

    /// Whether the lane's only node is a source. If that source fails, its consumers can still finish.
    pub fn is_lone_source(&self) -> bool {
        let mut nodes = self.nodes();
        nodes.next().is_some_and(Node::is_source) && nodes.next().is_none()
    }

    /// Whether the lane computes pixels on the host, so that more threads would help.
    pub fn computes(&self) -> bool {
        (self.player.is_none() || self.may_leave()) && self.nodes().any(Node::computes)
    }

    /// Whether this is the device lane and the lane continues after a loss of its device.
    pub(crate) fn may_leave(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.rule != vramp_plan::OnLoss::Stop)
    }

    /// The lane's wake signal. Notify it after a stop.
    pub fn signal(&self) -> &WakeSignal {
        &self.signal
    }

    /// Grows while a handler makes progress in a long call.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn alive(&self) -> &Arc<AtomicU64> {
        self.context.alive()
    }

    pub fn busy(&self) -> &Arc<Busy> {
        &self.busy
    }

    /// The player of the device lane.
    pub fn player(&self) -> Option<&LanePlayer> {
        self.player.as_ref()
    }

    /// Totals measured on the lane's device, even after its loss, and the bytes of the player's rings.
    pub(crate) fn measured(&self) -> Option<(&PlaybackTotals, u64)> {
        let live = self.player.as_ref().map(|player| (player.kept(), player.player().ring_bytes()));
        live.or_else(|| self.recovery.as_ref()?.kept().map(|kept| (kept, kept.ring_bytes())))
    }

    /// Tells the lane when the run began.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn begin(&mut self, began: Instant) {
        self.context.begin(began);
    }

    /// Starts the lane's handlers. Later calls do nothing.
    pub fn start(&mut self) -> Result<(), HandlerFailure> {
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        self.start_some(|_| true)
    }

    /// Starts these handlers of the lane.
    pub(crate) fn start_some(&mut self, which: impl Fn(&Node) -> bool) -> Result<(), HandlerFailure> {
        let Lane { segments, context, busy, .. } = self;
        let mut nodes = segments.iter_mut().flatten().enumerate().filter(|(_, node)| which(node));
        let started = nodes.try_for_each(|(position, node)| {
            busy.set(Some(position));
            node.start(context)
        });
        busy.set(None);
        started
    }

    /// Fires each node once; in the device lane, only the nodes of the segment furthest downstream that can move.
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

    /// Fires nodes without a device. A host lane has one segment. The device lane without its device may have several
    /// segments; the segment furthest downstream that can move fires first.
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
        let mut ended = |(position, node): (usize, &Node), interval, done, context: &LaneContext| {
            context.sunk(node.counts().emitted);
            slow.look_at_sink(position, interval, done, node.last_number(), context);
        };
        let mut arrived = match player.receive(segments, context, now, &mut ended) {
            Ok(arrived) => arrived,
            Err(failure) => return Stepped::Failed(failure),
        };
        player.collect_times();
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
                let mut recorded = |node: usize, frame: u64, context: &mut LaneContext| {
                    player.note_requests(at, node, frame, context);
                };
                match fire_all((nodes, &gates[at]), base, now, context, busy, slow, &mut recorded) {
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
                        // Submits what was recorded before the failure: those frames are valid.
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
            // Memory that the device returns is left to this segment, so that frames leave before others enter.
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

    /// Runs until every node has ended, a handler fails, or `stopped` returns true. `now` returns the time since the
    /// start. A stop takes effect at the next wake signal.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(&mut self, now: &dyn Fn() -> Duration, stopped: impl Fn() -> bool) -> Result<(), HandlerFailure> {
        /// Longest wait for a signal: a missed signal must not hang a lane for good. The exact length does not matter.
        const LONGEST: Duration = Duration::from_secs(1);
        /// Interval of new attempts while memory is short, because returned memory wakes no lane.
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

    /// The memory that the lane waits for.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        let delivering = self.player.as_ref().and_then(LanePlayer::shortage);
        delivering.or_else(|| self.nodes().find_map(Node::shortage))
    }

    /// Whether the device works for this lane.
    pub(crate) fn is_at_work(&self) -> bool {
        self.player.as_ref().is_some_and(LanePlayer::is_at_work)
    }

    /// Waits at most this long for the device. Returns false if the lane does not wait for the device.
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

    /// Stops the lane's handlers. Queued frames are dropped and counted under `reason`. Handlers whose stream has not
    /// ended are stopped early. Returns the first failure, after all handlers have been stopped.
    pub fn stop(&mut self, reason: DropReason) -> Result<(), HandlerFailure> {
        self.end(reason, false, &mut Vec::new())
    }

    /// As [`Lane::stop`], but no handler is stopped early if the end was `intended`. Adds the files that were left
    /// unfinished to `partial`.
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

/// Fires each node once, in order, and times the calls.
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
    for at_node in 0..nodes.len() {
        if gates[at_node].iter().any(|way_out| !nodes[*way_out].has_room()) {
            nodes[at_node].look_at_barrier();
            over = false;
            continue;
        }
        let node = &mut nodes[at_node];
        busy.set(Some(base + at_node));
        let (before, was_over) = (node.taken(), node.is_over());
        let measured = node.is_measured() || context.is_traced();
        if measured && !fresh {
            at = now();
        }
        let fired = node.fire(at, context);
        if context.has_left_device() && node.taken() != before {
            node.stats().took_without_device(node.taken() - before);
        }
        after(at_node, node.last_number(), context);
        fresh = false;
        if measured && node.taken() != before {
            let done = now();
            let took = done.saturating_sub(at);
            let interval = node.note_call(took, done);
            context.span(base + at_node, node.last_number(), at, done);
            if node.is_sink() && !node.awaits() {
                context.sunk(node.taken());
                slow.look_at_sink(base + at_node, interval, done, node.last_number(), context);
            }
            if took > longest.0 {
                longest = (took, base + at_node, node.last_number());
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
            // The consumers of a node that has just ended can move now.
            Fired::Over => {
                moved |= !was_over;
                if !was_over {
                    node.announce_end();
                }
            }
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
