//! The lane player: how what the device's lane records reaches the device, and what comes down.
//!
//! Owns the lane's player and the list of what nodes wait for, in order: downloads, and the end of frames that stay.
//! Does not decide who fires: the lane does, and only while there is room.
//!
//! Always: one submit per segment that moved; what was asked for first arrives first, at the node that asked; a frame
//! that ends on the device has arrived when the device has finished it.

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

/// Who is blamed for what is nobody's but the device's.
pub(crate) const DEVICE: &str = "device";

/// Plays what one lane records.
pub struct LanePlayer {
    player: Player,
    /// The downloads that nodes wait for. What was recorded and not played yet has no submission.
    awaited: VecDeque<AwaitedResult<Meta>>,
    /// The frames whose end on the device sinks wait for: apart from downloads, which may have to wait for memory.
    ending: VecDeque<AwaitedResult<()>>,
    /// What was played last; before that, what has always been finished.
    last: Played,
    /// The segment whose recording waits to be played, and the frames that its first node has been given.
    recorded: Option<(usize, u64)>,
    kept: PlaybackTotals,
    /// What has come down and waits for memory on the host, from this download on.
    come: Option<(Arrived, usize)>,
    short: Option<Shortage>,
}

/// What one segment has asked of the device. Counted where it is played, so that a figure per frame is exact however
/// many frames are under way elsewhere.
#[derive(Debug, Clone)]
struct SegmentCount {
    /// Its frames for each frame of the fastest source.
    share: f64,
    frames: u64,
    /// What its first node had been given when it was last played; none after a time without a device.
    seen: Option<u64>,
    counters: Counters,
    milestones: Milestones<Counters>,
}

/// What is awaited, and by whom.
#[derive(Debug, Clone, Copy)]
struct AwaitedResult<T> {
    played: Option<Played>,
    segment: usize,
    node: usize,
    request: T,
}

/// Who is told that a frame has ended on the device: its node and the place of that in the lane, and the time since the
/// one before.
pub(crate) type FrameEnded<'a> = &'a mut dyn FnMut((usize, &Node), Option<Duration>, Duration, &LaneContext);

impl LanePlayer {
    /// Plays on this player what segments record that have these shares of the fastest source's frames.
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

    /// Plays on another player and goes on counting.
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

    /// Notes how long submissions took that have ended.
    pub(crate) fn hear_times(&mut self) {
        let LanePlayer { player, kept, .. } = self;
        foreign(|| player.tell_times(&mut |time| kept.times.told(time)));
    }

    /// What was counted and measured.
    pub(crate) fn kept(&self) -> &PlaybackTotals {
        &self.kept
    }

    /// The player.
    pub fn player(&self) -> &Player {
        &self.player
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.awaited.is_empty() && self.ending.is_empty() && self.player.under_way() == 0
    }

    /// Plays what was recorded and could not be played before; says whether it went through.
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

    /// Notes whose recording is played next, and how many frames its first node has been given in all.
    pub(crate) fn note_recorded(&mut self, segment: usize, frames: u64) {
        self.recorded = Some((segment, frames));
    }

    /// Notes which node asked for the downloads that were recorded since it was last asked.
    pub(crate) fn note_asked(&mut self, segment: usize, node: usize, frame: u64, context: &mut LaneContext) {
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

    /// Plays what was recorded. Where the device has no room it stays recorded, and is played first next time.
    pub(crate) fn play(&mut self, context: &mut LaneContext, now: &dyn Fn() -> Duration) -> Result<(), HandlerFailure> {
        let Some(device_context) = context.device_context() else { return Ok(()) };
        if device_context.recording.is_empty() {
            // What moved asked nothing of the device. A frame that ended there was made by what was played last, if
            // not before.
            self.recorded = None;
            self.played(self.last);
            return Ok(());
        }
        let before = device_context.device().counters();
        match foreign(|| self.player.try_play(&mut device_context.recording)) {
            Ok(played) => {
                // What a timeline adds to the device's times to have them on the run's clock.
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

    /// A device that hangs is left behind: freeing it, or waiting for it, might never end.
    fn refused(&self, error: PlayError) -> HandlerFailure {
        if matches!(error, PlayError::Overdue { .. }) {
            self.player.device().clone().abandon();
        }
        failure(DeviceError::Play(error))
    }

    fn played(&mut self, played: Played) {
        let asked = self.awaited.iter_mut().map(|asked| &mut asked.played);
        let ending = self.ending.iter_mut().map(|ending| &mut ending.played);
        asked.chain(ending).filter(|own| own.is_none()).for_each(|own| *own = Some(played));
    }

    /// Brings what has come down to the nodes that wait for it, and tells those whose frames have ended; says whether
    /// there was anything.
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
            let place = segments[..segment].iter().map(Vec::len).sum::<usize>() + node;
            let (node, done) = (&mut segments[segment][node], now());
            let interval = node.finish_awaited(done);
            ended((place, node), interval, done, context);
        }
        while self.awaited.front().is_some_and(|asked| asked.played.is_some()) {
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
            let of_it = |asked: &AwaitedResult<Meta>| asked.played.is_some_and(|played| played.ticket == Some(ticket));
            while let Some(asked) = self.awaited.front().copied().filter(of_it) {
                let meta = asked.request;
                let node = &segments[asked.segment][asked.node];
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
                                // It stays where it is until there is memory for it.
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
                if let Some(failure) = segments[asked.segment][asked.node].deliver(made, context) {
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

    /// Gives up what was asked of a device that is gone: every node hears what it will not get. A device that hangs is
    /// left behind, since dropping it would hang as well.
    pub(crate) fn lose(mut self, segments: &mut [Vec<Node>], hangs: bool) -> PlaybackTotals {
        let asked = self.awaited.drain(..).map(|asked| (asked.segment, asked.node));
        let ending = self.ending.drain(..).map(|ending| (ending.segment, ending.node));
        for (segment, node) in asked.chain(ending) {
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

    /// What it cannot deliver for lack of memory.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.short.as_ref()
    }

    /// Whether the device works on something of its.
    pub(crate) fn is_at_work(&self) -> bool {
        self.player.under_way() > 0
    }

    /// Whether only the device can make something move again.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn waits_for_device(&self) -> bool {
        let waits = !self.awaited.is_empty() || !self.ending.is_empty() || self.recorded.is_some();
        self.is_at_work() || self.come.is_none() && waits
    }

    /// Waits for the device, at most this long and never so long that stopping would be noticed.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn wait(&mut self, most: Duration) {
        let most = most.min(Duration::from_millis(20));
        // A device that is lost is found out by the next call that needs it.
        let _ = foreign(|| self.player.wait_for_oldest(most));
    }

    /// Lets what is under way finish, for a moment: memory that the device uses cannot be given back.
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
            // Whoever still works after that may do so for ever, and freeing its device would wait for it.
            if let Ok(false) = self.player.wait(Duration::from_secs(1)) {
                self.player.device().clone().abandon();
            }
            self.hear_times();
            while let Ok(Some(arrived)) = self.player.readbacks().take() {
                drop(arrived);
            }
        }
    }
}

/// What was counted and measured so far: for the report, and for the player that goes on.
pub(crate) struct PlaybackTotals {
    segments: Vec<SegmentCount>,
    times: DeviceTimes,
    timing: Option<Timing>,
    ring_bytes: u64,
}

impl PlaybackTotals {
    /// What one frame asks of the device over the second half of the run, by a counter; every segment has had its own
    /// second half.
    pub(crate) fn per_frame(&self, counter: impl Fn(&Counters) -> u64) -> f64 {
        let each = self.segments.iter().filter_map(|segment| {
            let (frames, before) = segment.milestones.middle(segment.frames)?;
            let asked = counter(&segment.counters) - counter(&before);
            Some(segment.share * asked as f64 / (segment.frames - frames) as f64)
        });
        each.sum()
    }

    /// How long the device works for a frame: no longer than this for this share of frames. Segments are added up.
    pub(crate) fn frame_ns(&self, share: f64) -> Option<f64> {
        let each = self.segments.iter().zip(self.times.segments());
        each.map(|(segment, time)| Some(segment.share * time.quantile_ns(share)? as f64)).sum()
    }

    /// The share of this time in which the device worked, as far as it is known.
    pub(crate) fn busy(&self, elapsed: Duration) -> Option<f64> {
        let each = self.segments.iter().zip(self.times.segments());
        let sum: Option<f64> = each.map(|(segment, time)| Some(segment.frames as f64 * time.mean_ns()?)).sum();
        Some((sum? / elapsed.as_nanos().max(1) as f64).min(1.0))
    }

    /// How the device's time was taken.
    pub(crate) fn timing(&self) -> Option<Timing> {
        self.timing
    }

    /// What the rings of the player took that is gone.
    pub(crate) fn ring_bytes(&self) -> u64 {
        self.ring_bytes
    }
}

impl SegmentCount {
    fn add(&mut self, frames: u64, before: &Counters, after: &Counters) {
        self.counters = self.counters.and(&after.since(before));
        // What was made without a device is none of its frames.
        self.frames += frames - self.seen.unwrap_or(frames.saturating_sub(1)).min(frames);
        self.seen = Some(frames);
        let (frames, counted) = (self.frames, self.counters);
        self.milestones.pass(frames, || counted);
    }
}

pub(crate) fn failure(error: DeviceError) -> HandlerFailure {
    HandlerFailure { handler: DEVICE.to_owned(), frame: 0, error: HandlerError::Device(error) }
}
