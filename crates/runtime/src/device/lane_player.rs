//! The lane player: plays (submits) the recordings of the device lane, and delivers results to the waiting nodes.
//!
//! A result is a download, or the completion of a frame that ends on the device. Downloads are in a ring of mapped
//! buffers, in order, with one ring slot for all downloads of one recording. The bytes of a download are copied into a
//! frame of the host pool, so that the slot is free at once, however long the frame is kept.
//!
//! Invariants: what a segment records in one step is one submit. Results arrive in the order of their requests, each at
//! the node that requested it. A frame that ends on the device (in a `null` sink there) counts as arrived when the
//! device has finished the frame's work, not when that work was recorded; until then the sink holds the frame.

use std::collections::VecDeque;
use std::time::Duration;

use vramp_gpu::{Arrived, Counters, PlayError, Played, Player, ReadbackError, Timing};

use crate::device::times::DeviceTimes;
use crate::failure::HandlerFailure;
use crate::frame::Meta;
use crate::handler::{DeviceError, HandlerError};
use crate::lane::context::{LaneContext, LaneRequest};
use crate::memory::heap::foreign;
use crate::memory::shortage::Shortage;
use crate::node::Node;
use crate::observe::milestones::Milestones;

/// The handler name of failures that belong to the device itself.
pub(crate) const DEVICE: &str = "device";

/// Plays what one lane records.
pub struct LanePlayer {
    player: Player,
    /// Downloads that nodes wait for. Downloads that are not submitted yet have no `played`.
    awaited: VecDeque<AwaitedResult<Meta>>,
    /// Completions that sinks wait for. Separate from downloads, which may have to wait for memory.
    ending: VecDeque<AwaitedResult<()>>,
    /// The last submission; initially a submission that counts as finished.
    last: Played,
    /// The segment whose recording is to be played, and the number of frames that the segment's first node has taken.
    recorded: Option<(usize, u64)>,
    kept: PlaybackTotals,
    /// A readback that waits for host memory, and the index of the next download in that readback.
    come: Option<(Arrived, usize)>,
    short: Option<Shortage>,
}

/// Device work of one segment. The device's counters are read before and after the segment is played, so that figures
/// per frame are exact however many frames are in flight elsewhere.
#[derive(Debug, Clone)]
struct SegmentCount {
    /// Number of the segment's frames per frame of the fastest source.
    share: f64,
    frames: u64,
    /// Number of frames that the segment's first node had taken when the segment was last played; `None` after a time
    /// without a device.
    seen: Option<u64>,
    counters: Counters,
    milestones: Milestones<Counters>,
}

/// A result and the node that waits for it.
#[derive(Debug, Clone, Copy)]
struct AwaitedResult<T> {
    played: Option<Played>,
    segment: usize,
    node: usize,
    request: T,
}

/// Called when a frame has ended on the device, with the position in the lane and the node, the interval since the
/// previous frame, and the time.
pub(crate) type FrameEnded<'a> = &'a mut dyn FnMut((usize, &Node), Option<Duration>, Duration, &LaneContext);

impl LanePlayer {
    /// A lane player. `shares` holds, for each segment, the number of its frames per frame of the fastest source.
    pub(crate) fn new(player: Player, shares: Vec<f64>, times: DeviceTimes) -> LanePlayer {
        let count = |share| SegmentCount {
            share,
            frames: 0,
            seen: None,
            counters: Counters::default(),
            milestones: Milestones::default(),
        };
        let segments = shares.into_iter().map(count).collect();
        let mut lane_player =
            LanePlayer::again(player, PlaybackTotals { segments, times, timing: None, ring_bytes: 0 });
        lane_player.kept.segments.iter_mut().for_each(|segment| segment.seen = Some(0));
        lane_player
    }

    /// A lane player that continues these totals with another player.
    pub(crate) fn again(player: Player, kept: PlaybackTotals) -> LanePlayer {
        let last = Played { submission: 0, ticket: None, timed: false };
        let segments = kept.segments.into_iter().map(|own| SegmentCount { seen: None, ..own }).collect();
        let kept = PlaybackTotals { segments, timing: player.timing(), ..kept };
        LanePlayer {
            player,
            awaited: VecDeque::with_capacity(16),
            ending: VecDeque::with_capacity(16),
            last,
            recorded: None,
            kept,
            come: None,
            short: None,
        }
    }

    /// Collects the times of submissions that have ended.
    pub(crate) fn collect_times(&mut self) {
        let LanePlayer { player, kept, .. } = self;
        foreign(|| player.tell_times(&mut |time| kept.times.record(time)));
    }

    pub(crate) fn kept(&self) -> &PlaybackTotals {
        &self.kept
    }

    pub fn player(&self) -> &Player {
        &self.player
    }

    /// Whether nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.awaited.is_empty() && self.ending.is_empty() && self.player.under_way() == 0
    }

    /// Plays a recording that could not be played before; returns whether it was submitted.
    pub(crate) fn play_what_waits(
        &mut self,
        context: &mut LaneContext,
        now: &dyn Fn() -> Duration,
    ) -> Result<bool, HandlerFailure> {
        if context.device_context().is_none_or(|device_context| device_context.recording.is_empty()) {
            return Ok(false);
        }
        self.play(context, now)?;
        Ok(context.device_context().is_none_or(|device_context| device_context.recording.is_empty()))
    }

    /// Whether one more segment can be played.
    pub(crate) fn has_room(&mut self, context: &mut LaneContext) -> Result<bool, HandlerFailure> {
        if context.device_context().is_some_and(|device_context| !device_context.recording.is_empty()) {
            return Ok(false);
        }
        let free = self.player.readbacks().pending() < self.player.readbacks().slots();
        Ok(foreign(|| self.player.has_room()).map_err(|error| self.refused(error))? && free)
    }

    /// Records the segment that is played next, and how many frames the segment's first node has taken in all.
    pub(crate) fn note_recorded(&mut self, segment: usize, frames: u64) {
        self.recorded = Some((segment, frames));
    }

    /// Attributes to a node what was recorded and requested since the last call.
    pub(crate) fn note_requests(&mut self, segment: usize, node: usize, frame: u64, context: &mut LaneContext) {
        let Some(device_context) = context.device_context() else { return };
        self.kept.times.mark(
            (segment, node),
            frame,
            (device_context.recording.len(), device_context.recording.dispatches()),
        );
        for request in device_context.requests.drain(..) {
            match request {
                LaneRequest::Download(meta) => {
                    self.awaited.push_back(AwaitedResult { played: None, segment, node, request: meta });
                }
                LaneRequest::Finished => {
                    self.ending.push_back(AwaitedResult { played: None, segment, node, request: () });
                }
            }
        }
    }

    /// Submits the recording. If the device has no room, the recording is kept and played first in the next step.
    pub(crate) fn play(&mut self, context: &mut LaneContext, now: &dyn Fn() -> Duration) -> Result<(), HandlerFailure> {
        let Some(device_context) = context.device_context() else { return Ok(()) };
        if device_context.recording.is_empty() {
            // No device work was recorded. A frame that ended on the device was made by the last submission or by an
            // earlier submission.
            self.recorded = None;
            self.played(self.last);
            return Ok(());
        }
        let before = device_context.device().counters();
        match foreign(|| self.player.try_play(&mut device_context.recording)) {
            Ok(played) => {
                // Offset from the device's clock to the run's clock, for the timeline.
                let offset_ns =
                    || (now().as_nanos() as u64).cast_signed() - device_context.device().now_ns().cast_signed();
                self.kept.times.played(Some(played), if played.timed { offset_ns() } else { 0 });
                if let Some((segment, frames)) = self.recorded.take() {
                    self.kept.segments[segment].add(frames, &before, &device_context.device().counters());
                }
                self.last = played;
                self.played(played);
                Ok(())
            }
            Err(PlayError::Busy { .. } | PlayError::NotTaken { .. }) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// The failure for an error of the player. A device that hangs is abandoned, because freeing it or waiting for it
    /// might never end.
    fn refused(&self, error: PlayError) -> HandlerFailure {
        if matches!(error, PlayError::Overdue { .. }) {
            self.player.device().clone().abandon();
        }
        failure(DeviceError::Play(error))
    }

    fn played(&mut self, played: Played) {
        let downloads = self.awaited.iter_mut().map(|awaited| &mut awaited.played);
        let ending = self.ending.iter_mut().map(|ending| &mut ending.played);
        downloads.chain(ending).filter(|own| own.is_none()).for_each(|own| *own = Some(played));
    }

    /// Delivers downloads and completions to the nodes that wait for them; returns whether there were any results.
    pub(crate) fn receive(
        &mut self,
        segments: &mut [Vec<Node>],
        context: &mut LaneContext,
        now: &dyn Fn() -> Duration,
        ended: FrameEnded<'_>,
    ) -> Result<bool, HandlerFailure> {
        let mut any = false;
        while let Some(AwaitedResult { played: Some(played), segment, node, .. }) = self.ending.front().copied() {
            if !self.has_finished(played.submission)? {
                break;
            }
            self.ending.pop_front();
            any = true;
            let position = segments[..segment].iter().map(Vec::len).sum::<usize>() + node;
            let (node, done) = (&mut segments[segment][node], now());
            let interval = node.finish_awaited(done);
            ended((position, node), interval, done, context);
        }
        while self.awaited.front().is_some_and(|awaited| awaited.played.is_some()) {
            let waiting = self.come.take();
            let mut download = waiting.as_ref().map_or(0, |(_, next)| *next);
            let next = |player: &Player| match waiting {
                Some((arrived, _)) => Ok(Some(arrived)),
                None => foreign(|| player.readbacks().take()),
            };
            let (ticket, arrived) = match next(&self.player) {
                Ok(None) => break,
                Ok(Some(arrived)) => (arrived.ticket(), Ok(arrived)),
                Err(error @ ReadbackError::NotMapped { ticket, .. }) => (ticket, Err(error)),
                Err(error) => return Err(failure(DeviceError::Read(error))),
            };
            let of_it =
                |awaited: &AwaitedResult<Meta>| awaited.played.is_some_and(|played| played.ticket == Some(ticket));
            while let Some(awaited) = self.awaited.front().copied().filter(of_it) {
                let meta = awaited.request;
                let node = &segments[awaited.segment][awaited.node];
                let (owner, leave_bytes) = node.memory();
                context.serve(owner, meta.number);
                let made = match &arrived {
                    Err(error) => Err(HandlerError::Device(DeviceError::Read(error.clone()))),
                    Ok(there) => match context.pool().lend_leaving(meta, leave_bytes) {
                        Ok(mut frame) => {
                            if let Some(mut bytes) = frame.fill() {
                                bytes.copy_from_slice(there.bytes(download));
                            }
                            Ok(frame)
                        }
                        Err(error) => match error.missing() {
                            None => Err(error.into()),
                            Some((needed_bytes, available_bytes, budget_bytes)) => {
                                // The download stays in the ring until there is memory for its frame.
                                if self.short.is_none() {
                                    context.count_wait();
                                }
                                self.short = Some(Shortage {
                                    handler: node.name(),
                                    frame: meta.number,
                                    space: vramp_plan::Space::Cpu,
                                    needed_bytes,
                                    available_bytes,
                                    budget_bytes,
                                });
                                self.come = arrived.ok().map(|arrived| (arrived, download));
                                return Ok(any);
                            }
                        },
                    },
                };
                (any, self.short) = (true, None);
                self.awaited.pop_front();
                download += 1;
                if let Some(failure) = segments[awaited.segment][awaited.node].deliver(made, context) {
                    return Err(failure);
                }
            }
            foreign(|| drop(arrived));
        }
        Ok(any)
    }

    fn has_finished(&mut self, submission: u64) -> Result<bool, HandlerFailure> {
        if !self.player.has_finished(submission) {
            let polled = foreign(|| self.player.device().poll());
            polled.map_err(|lost| failure(DeviceError::Play(PlayError::Lost(lost))))?;
        }
        Ok(self.player.has_finished(submission))
    }

    /// Drops everything requested from a lost device and notifies the waiting nodes. A device that hangs is leaked,
    /// because dropping it would hang as well.
    pub(crate) fn lose(mut self, segments: &mut [Vec<Node>], hangs: bool) -> PlaybackTotals {
        let downloads = self.awaited.drain(..).map(|awaited| (awaited.segment, awaited.node));
        let ending = self.ending.drain(..).map(|ending| (ending.segment, ending.node));
        for (segment, node) in downloads.chain(ending) {
            segments[segment][node].lose_awaited();
        }
        let mut kept = self.kept;
        kept.times.forget();
        kept.ring_bytes = self.player.ring_bytes();
        if hangs {
            std::mem::forget(self.player);
        }
        kept
    }

    /// The memory that a download waits for.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.short.as_ref()
    }

    /// Whether the device works for this lane.
    pub(crate) fn is_at_work(&self) -> bool {
        self.player.under_way() > 0
    }

    /// Whether only the device can let the lane move.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn waits_for_device(&self) -> bool {
        let waits = !self.awaited.is_empty() || !self.ending.is_empty() || self.recorded.is_some();
        self.is_at_work() || self.come.is_none() && waits
    }

    /// Waits at most this long for the device, and never so long that a stop would be delayed noticeably.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn wait(&mut self, most: Duration) {
        let most = most.min(Duration::from_millis(20));
        // A loss of the device is detected by the next call that needs the device.
        let _ = foreign(|| self.player.wait_for_oldest(most));
    }

    /// Waits briefly for submissions in flight, because memory cannot be returned while the device uses it.
    pub(crate) fn stop(&mut self, context: &mut LaneContext) {
        if let Some(device_context) = context.device_context() {
            device_context.recording.clear();
            device_context.requests.clear();
            self.kept.times.played(None, 0);
        }
        self.awaited.clear();
        self.ending.clear();
        (self.come, self.short) = (None, None);
        #[cfg(not(target_arch = "wasm32"))]
        if self.player.device().check().is_ok() {
            // Work that takes longer may never end, and freeing the device would wait for that work.
            if let Ok(false) = self.player.wait(Duration::from_secs(1)) {
                self.player.device().clone().abandon();
            }
            self.collect_times();
            while let Ok(Some(arrived)) = self.player.readbacks().take() {
                drop(arrived);
            }
        }
    }
}

/// What a lane player has counted and measured so far, for the report and for the player that continues after a device
/// loss.
pub(crate) struct PlaybackTotals {
    segments: Vec<SegmentCount>,
    times: DeviceTimes,
    timing: Option<Timing>,
    ring_bytes: u64,
}

impl PlaybackTotals {
    /// Mean device work per frame over the second half of the run, as counted by `counter`. The second half is
    /// determined for each segment separately.
    pub(crate) fn per_frame(&self, counter: impl Fn(&Counters) -> u64) -> f64 {
        let each = self.segments.iter().filter_map(|segment| {
            let (frames, before) = segment.milestones.middle(segment.frames)?;
            let requested = counter(&segment.counters) - counter(&before);
            Some(segment.share * requested as f64 / (segment.frames - frames) as f64)
        });
        each.sum()
    }

    /// Quantile of the device time per frame, summed over segments.
    pub(crate) fn frame_ns(&self, share: f64) -> Option<f64> {
        let each = self.segments.iter().zip(self.times.segments());
        each.map(|(segment, time)| Some(segment.share * time.quantile_ns(share)? as f64)).sum()
    }

    /// The share of `elapsed` in which the device worked; `None` if unknown.
    pub(crate) fn busy(&self, elapsed: Duration) -> Option<f64> {
        let each = self.segments.iter().zip(self.times.segments());
        let sum: Option<f64> = each.map(|(segment, time)| Some(segment.frames as f64 * time.mean_ns()?)).sum();
        Some((sum? / elapsed.as_nanos().max(1) as f64).min(1.0))
    }

    pub(crate) fn timing(&self) -> Option<Timing> {
        self.timing
    }

    /// Bytes of the rings that the lost player had.
    pub(crate) fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }
}

impl SegmentCount {
    fn add(&mut self, frames: u64, before: &Counters, after: &Counters) {
        self.counters = self.counters.and(&after.since(before));
        // Frames made without a device do not count.
        self.frames += frames - self.seen.unwrap_or(frames.saturating_sub(1)).min(frames);
        self.seen = Some(frames);
        let (frames, counted) = (self.frames, self.counters);
        self.milestones.pass(frames, || counted);
    }
}

pub(crate) fn failure(error: DeviceError) -> HandlerFailure {
    HandlerFailure { handler: DEVICE.to_owned(), frame: 0, error: HandlerError::Device(error) }
}
