//! Device times, from timestamp queries or from the moments at which the host notices the end of a submission.
//!
//! With most drivers, a submit returns before the device has begun, so measuring the submit call only shows how long
//! the host takes. There are two better ways, and the report's `timing` names the way that was used.
//!
//! - **Timestamps.** If the device can write timestamps inside passes and encoders (Vulkan, Direct3D), there is a
//!   timestamp after every command of a recording. If the device can write timestamps only around passes, there is one
//!   timestamp before and one after each pass. The last commands of the same submit copy the timestamps into one of a
//!   few small buffers, which the host reads after the submission has finished. Nothing waits for timestamps; a
//!   submission that finds no free buffer is not timed.
//! - **Fenced.** Without timestamps, the time of a submission begins at its submit or at the end of the previous
//!   submission, whichever is later, and ends when the host notices that the submission has finished. This time
//!   includes the delay until the lane polls the device.
//!
//! An ordinary run times only a sample of its submissions ([`Timed::Sampled`]), because on Mesa's software driver each
//! timestamp waits for all earlier work. Sampling does not split passes. If timestamps can only be written around
//! passes, kernels that share a pass have no time of their own, and the `p50_us` of such a kernel is null rather than a
//! guess. A trace times every submission ([`Timed::Each`]), and gives every dispatch its own pass if timestamps can
//! only be written around passes.
//!
//! **Two clocks.** Each submission gives a lower and an upper bound of the offset between the host's and the device's
//! clock: the device began no earlier than the submit, and ended no later than the host noticed the end. [`Clocks`]
//! intersects the bounds of all submissions, widened by 100 parts per million for drift, and takes the middle as the
//! offset. Half the distance between the bounds is reported as the uncertainty of every time. Durations do not depend
//! on the offset.
//!
//! **Attribution.** After each node has recorded, the device's lane notes how many commands the recording has by then.
//! A part of a submission belongs to the node that recorded the part's command. All parts of a node in one frame
//! together are one time in the node's histogram. The device's time for uploads and downloads belongs to the transfers;
//! the host's copies in and out of staging memory are not included. In the report, `gpu_ms` is the sum over the
//! segments of a frame, and `gpu_busy` is the share of the run in which the device worked.
//!
//! Invariants: all buffers for timestamps are created with the player. A timed submission needs no extra submit or
//! memory, and no extra pass except under [`Timed::Each`]. All reported times are between the submit and the moment
//! when the host noticed the end.

use std::sync::Arc;

use crate::calls::{Calls, Mapping, Refusal};
use crate::device::Device;
use crate::memory::StagingRing;

/// Maximum number of timestamps of one submission. A recording that could need more is not timed.
const MAX_STAMPS: u32 = 256;
const STAMP_BYTES: u64 = 8;

/// Maximum drift between two clocks, in parts per million: each quartz clock drifts from the true time by at most 50.
const DRIFT_PPM: i64 = 100;

/// Sampling intervals in submissions: short at first, so that short runs have a sample, and long later. Measured on
/// llvmpipe, which ends all work at each timestamp, with frames of one dispatch and one readback of 64x64 pixels:
/// timing every submission took 1.5 to 1.7 times the CPU time of an untimed run, and sampling 1.03 to 1.06 times on a
/// busy machine (benches/device.rs).
const ONE_IN: [u64; 2] = [16, 64];
const OFTEN: u64 = 64;
/// Position of the timed submission in each interval. The first submission would be misleading, because drivers still
/// compile during the first submission (285 of 300 ms for one blur on llvmpipe).
const SAMPLE: u64 = 2;

/// The source of device times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// Timestamps of the device's own clock.
    Timestamps,
    /// The host's clock: from the submit, or from the end of the previous submission if that end is later, until the
    /// host noticed the end of the submission.
    Fenced,
}

/// Where timestamps are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampPlaces {
    /// After every command if the device supports this, otherwise around passes.
    #[default]
    Acts,
    /// Around passes only.
    Passes,
    /// Nowhere: only the host's clock is used.
    Nowhere,
}

impl StampPlaces {
    /// The finest placement that these features allow.
    pub(crate) fn of(has: wgpu::Features) -> StampPlaces {
        match (has.contains(wgpu::Features::TIMESTAMP_QUERY), has.contains(INSIDE)) {
            (true, true) => StampPlaces::Acts,
            (true, false) => StampPlaces::Passes,
            (false, _) => StampPlaces::Nowhere,
        }
    }

    /// The features of `has` that timestamps at these places need.
    pub(crate) fn features(self, has: wgpu::Features) -> wgpu::Features {
        let passes = wgpu::Features::TIMESTAMP_QUERY;
        match self {
            StampPlaces::Acts => has & (passes | INSIDE),
            StampPlaces::Passes => has & passes,
            StampPlaces::Nowhere => wgpu::Features::empty(),
        }
    }
}

/// The features for timestamps after every command.
const INSIDE: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// Which submissions of a player are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timed {
    #[default]
    Never,
    /// With timestamps, one of 16 submissions at first and one of 64 later. Without timestamps, every submission,
    /// because reading the host's clock costs almost nothing.
    Sampled,
    /// Every submission, with a time for every command.
    Each,
}

/// The times of one submission, in nanoseconds since the device was opened, on the host's clock.
#[derive(Debug)]
pub struct DeviceTime<'a> {
    /// Submission number, as in [`Played`](crate::Played).
    pub submission: u64,
    pub submitted_ns: u64,
    /// When the device began.
    pub begin_ns: u64,
    /// When the device ended.
    pub end_ns: u64,
    /// When the host noticed the end.
    pub noticed_ns: u64,
    /// Uncertainty of the device's clock relative to the host's clock; 0 if only the host's clock was used.
    pub uncertain_ns: u64,
    /// Times of the parts, in play order; empty if only the time of the whole submission is known.
    pub parts: &'a [PartTime],
}

/// The time of a part of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTime {
    /// Index of the part's first command in the recording.
    pub act: usize,
    /// Number of dispatches: more than one if only the whole pass is timed, zero for a transfer.
    pub dispatches: usize,
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Times the submissions of one player.
pub(crate) struct Timer {
    timed: Timed,
    stamping: Option<Stamping>,
    ring: StagingRing,
    slots: Vec<TimestampSlot>,
    claimed: Option<usize>,
    played: u64,
    ended_ns: u64,
    /// Reused by every report, so that reports do not allocate.
    part_times: Vec<PartTime>,
}

/// How to interpret the device's timestamps.
#[derive(Clone, Copy)]
struct Stamping {
    inside_passes: bool,
    period_ns: f64,
    clocks: Clocks,
}

/// The timestamps of one submission.
struct TimestampSlot {
    submission: u64,
    stamps: Option<SlotStamps>,
    mapping: Arc<Mapping>,
    used: u32,
    parts: Vec<Stamped>,
}

/// The device resources of a slot.
struct SlotStamps {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
}

/// A part of a submission, by the indices of its timestamps.
#[derive(Clone, Copy)]
struct Stamped {
    act: usize,
    dispatches: usize,
    begin: u32,
    end: u32,
}

/// Bounds of the host's clock minus the device's clock. Each submission gives one lower and one upper bound.
#[derive(Debug, Clone, Copy, Default)]
struct Clocks {
    bounds: Option<(i64, i64)>,
    at_ns: i64,
}

impl Clocks {
    /// Narrows the bounds with the times of a submission: `submitted` and `noticed` on the host's clock, `first` and
    /// `last` on the device's clock. Returns the offset to add to a timestamp, and the uncertainty of the offset.
    fn learn(&mut self, (submitted, noticed): (i64, i64), (first, last): (i64, i64)) -> (i64, u64) {
        let own = (submitted - first, noticed - last);
        let drift = (noticed - self.at_ns).max(0) / 1_000_000 * DRIFT_PPM;
        let both = self.bounds.map_or(own, |(low, high)| (own.0.max(low - drift), own.1.min(high + drift)));
        // Bounds that contradict each other mean that a clock was reset, so the earlier bounds are worthless.
        let (low, high) = if both.0 <= both.1 { both } else { own };
        (self.bounds, self.at_ns) = (Some((low, high)), noticed);
        let wide = (high - low).max(0);
        (low + wide / 2, (wide / 2).unsigned_abs())
    }
}

impl Timer {
    /// Creates everything that timing needs. Falls back to the host's clock if the device refuses timestamps.
    pub(crate) fn new(device: &Device, timed: Timed, slots: usize) -> Option<Timer> {
        if timed == Timed::Never {
            return None;
        }
        let calls = device.calls();
        let mut stamping = Stamping::of(calls);
        let ring = StagingRing::new(slots);
        let mut made = Vec::new();
        for _ in 0..ring.slots() {
            let stamps = stamping.and_then(|_| SlotStamps::make(calls).ok());
            if stamps.is_none() {
                stamping = None;
            }
            let parts = Vec::with_capacity(MAX_STAMPS as usize);
            made.push(TimestampSlot { submission: 0, stamps, mapping: Arc::default(), used: 0, parts });
        }
        let part_times = Vec::with_capacity(MAX_STAMPS as usize);
        Some(Timer { timed, stamping, ring, slots: made, claimed: None, played: 0, ended_ns: 0, part_times })
    }

    pub(crate) fn timing(&self) -> Timing {
        if self.stamping.is_some() { Timing::Timestamps } else { Timing::Fenced }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let of = |stamps: &SlotStamps| stamps.resolved.size() + stamps.read.size();
        self.slots.iter().filter_map(|slot| slot.stamps.as_ref()).map(of).sum()
    }

    /// Claims a slot for the next submission, if a sample is due and a slot is free.
    pub(crate) fn claim(&mut self, commands: usize) {
        self.played += 1;
        let one_in = ONE_IN[usize::from(self.played > OFTEN)];
        let due = self.stamping.is_none() || self.timed == Timed::Each || self.played % one_in == SAMPLE;
        // A pass has two timestamps, and any other command has one. One more timestamp is before the first command.
        if due && 2 * commands as u64 + 1 < u64::from(MAX_STAMPS) {
            self.claimed = self.ring.claim();
        }
        if let Some(slot) = self.claimed {
            let slot = &mut self.slots[slot];
            slot.used = 0;
            slot.parts.clear();
        }
    }

    /// The writer of timestamps for the submission that `claim` found a slot for; none without a slot.
    pub(crate) fn stamps(&mut self) -> Option<Stamps<'_>> {
        let Stamping { inside_passes, .. } = self.stamping?;
        let TimestampSlot { stamps, used, parts, .. } = &mut self.slots[self.claimed?];
        let split = self.timed == Timed::Each && !inside_passes;
        Some(Stamps { on: stamps.as_ref()?, used, parts, inside_passes, split })
    }

    /// Frees the slot of a refused submission.
    pub(crate) fn abandon(&mut self) {
        if let Some(slot) = self.claimed.take() {
            self.ring.abandon(slot);
        }
    }

    /// Requests the timestamps of the claimed slot after its submission. Returns whether a slot was claimed.
    pub(crate) fn send(&mut self, calls: &Calls, submission: u64) -> bool {
        let Some(at) = self.claimed.take() else { return false };
        let slot = &mut self.slots[at];
        slot.submission = submission;
        if let (Some(stamps), 1..) = (&slot.stamps, slot.used) {
            calls.map(&stamps.read, wgpu::MapMode::Read, u64::from(slot.used) * STAMP_BYTES, &slot.mapping);
        }
        self.ring.send(at);
        true
    }

    /// Reports the times that have arrived, oldest first.
    pub(crate) fn tell(&mut self, calls: &Calls, report: &mut dyn FnMut(&DeviceTime<'_>)) {
        while let Some((_, at)) = self.ring.oldest() {
            let slot = &self.slots[at];
            if !calls.progress.has_finished(slot.submission) || !slot.mapping.is_settled() {
                break;
            }
            self.ring.take();
            let (submitted_ns, noticed_ns) = calls.times.of(slot.submission);
            let begin_ns = submitted_ns.max(self.ended_ns).min(noticed_ns);
            self.ended_ns = noticed_ns;
            let fenced = DeviceTime {
                submission: slot.submission,
                submitted_ns,
                begin_ns,
                end_ns: noticed_ns,
                noticed_ns,
                uncertain_ns: 0,
                parts: &[],
            };
            self.part_times.clear();
            match &mut self.stamping {
                None => report(&fenced),
                Some(stamping) => {
                    if let Some((begin_ns, end_ns, uncertain_ns)) = slot.read(stamping, &fenced, &mut self.part_times) {
                        report(&DeviceTime { begin_ns, end_ns, uncertain_ns, parts: &self.part_times, ..fenced });
                    }
                }
            }
            self.slots[at].free();
            self.ring.release(at);
        }
    }
}

impl Stamping {
    fn of(calls: &Calls) -> Option<Stamping> {
        let places = StampPlaces::of(calls.device().features());
        let period_ns = f64::from(calls.queue().get_timestamp_period());
        (places != StampPlaces::Nowhere && period_ns > 0.0).then(|| Stamping {
            inside_passes: places == StampPlaces::Acts,
            period_ns,
            clocks: Clocks::default(),
        })
    }
}

impl SlotStamps {
    fn make(calls: &Calls) -> Result<SlotStamps, Refusal> {
        let bytes = u64::from(MAX_STAMPS) * STAMP_BYTES;
        let resolve = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let read = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(SlotStamps {
            queries: calls.query_set(MAX_STAMPS)?,
            resolved: calls.create_buffer("vramp stamps", bytes, resolve, false)?,
            read: calls.create_buffer("vramp stamps down", bytes, read, false)?,
        })
    }
}

impl TimestampSlot {
    /// Writes the times of all parts to `part_times`, and returns begin, end and uncertainty. Returns none if the
    /// timestamps did not arrive or are not plausible.
    fn read(
        &self,
        stamping: &mut Stamping,
        around: &DeviceTime<'_>,
        part_times: &mut Vec<PartTime>,
    ) -> Option<(u64, u64, u64)> {
        let stamps = self.stamps.as_ref().filter(|_| self.used > 0 && !self.mapping.has_failed())?;
        let view = stamps.read.get_mapped_range(..u64::from(self.used) * STAMP_BYTES).ok()?;
        let (words, _) = view.as_chunks::<8>();
        let period_ns = stamping.period_ns;
        let stamp = |at: u32| (u64::from_le_bytes(words[at as usize]) as f64 * period_ns) as i64;
        let first = self.parts.iter().map(|part| stamp(part.begin)).min()?;
        let last = self.parts.iter().map(|part| stamp(part.end)).max()?;
        let forward = self.parts.iter().all(|part| stamp(part.begin) <= stamp(part.end));
        if !forward || stamp(0) == 0 {
            return None;
        }
        let outside = (around.submitted_ns.cast_signed(), around.noticed_ns.cast_signed());
        let (add, uncertain_ns) = stamping.clocks.learn(outside, (first, last));
        // Keeps times between the submit and the noticed end, despite rounding or a device that claims more time than
        // has passed.
        let host = |stamp: i64| (stamp + add).clamp(outside.0, outside.1.max(outside.0)) as u64;
        part_times.extend(self.parts.iter().map(|part| PartTime {
            act: part.act,
            dispatches: part.dispatches,
            begin_ns: host(stamp(part.begin)),
            end_ns: host(stamp(part.end)),
        }));
        Some((host(first), host(last), uncertain_ns))
    }

    /// Makes the slot ready for another submission.
    fn free(&mut self) {
        let Some(stamps) = self.stamps.as_ref().filter(|_| self.used > 0) else { return };
        if self.mapping.has_failed() {
            self.mapping = Arc::default();
        } else {
            stamps.read.unmap();
        }
    }
}

/// Writes the timestamps of one submission while the submission is encoded.
pub(crate) struct Stamps<'a> {
    on: &'a SlotStamps,
    used: &'a mut u32,
    parts: &'a mut Vec<Stamped>,
    inside_passes: bool,
    /// Whether every dispatch has its own pass.
    pub(crate) split: bool,
}

impl Stamps<'_> {
    /// Writes the timestamp before all commands.
    pub(crate) fn begin(&mut self, encoder: &mut wgpu::CommandEncoder) {
        if self.inside_passes {
            let stamp = self.next();
            encoder.write_timestamp(&self.on.queries, stamp);
        }
    }

    /// The timestamps around a pass that begins with this command.
    pub(crate) fn pass(&mut self, act: usize) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        if self.inside_passes {
            return None;
        }
        let (begin, end) = (self.next(), self.next());
        self.parts.push(Stamped { act, dispatches: 0, begin, end });
        Some(wgpu::ComputePassTimestampWrites {
            query_set: &self.on.queries,
            beginning_of_pass_write_index: Some(begin),
            end_of_pass_write_index: Some(end),
        })
    }

    /// Writes the timestamp at the end of a dispatch.
    pub(crate) fn dispatched(&mut self, act: usize, pass: &mut wgpu::ComputePass<'_>) {
        if self.inside_passes {
            let end = self.next();
            pass.write_timestamp(&self.on.queries, end);
            self.parts.push(Stamped { act, dispatches: 1, begin: end - 1, end });
        } else if let Some(part) = self.parts.last_mut() {
            part.dispatches += 1;
        }
    }

    /// Writes the timestamp at the end of a command that is not a dispatch.
    pub(crate) fn copied(&mut self, act: usize, encoder: &mut wgpu::CommandEncoder) {
        if self.inside_passes {
            let end = self.next();
            encoder.write_timestamp(&self.on.queries, end);
            self.parts.push(Stamped { act, dispatches: 0, begin: end - 1, end });
        }
    }

    /// Resolves all timestamps and copies them to the readback buffer, after everything else.
    pub(crate) fn finish(&self, encoder: &mut wgpu::CommandEncoder) {
        if *self.used > 0 {
            encoder.resolve_query_set(&self.on.queries, 0..*self.used, &self.on.resolved, 0);
            let bytes = u64::from(*self.used) * STAMP_BYTES;
            encoder.copy_buffer_to_buffer(&self.on.resolved, 0, &self.on.read, 0, bytes);
        }
    }

    fn next(&mut self) -> u32 {
        *self.used += 1;
        *self.used - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_get_closer_with_every_submission_and_times_stay_inside() {
        // The device's clock is 1,000 ns behind the host's.
        let mut clocks = Clocks::default();
        assert_eq!(clocks.learn((2_000, 2_900), (1_100, 1_600)), (1_100, 200));
        assert_eq!(clocks.learn((3_000, 3_500), (2_010, 2_400)), (1_045, 55));
        let (add, off) = clocks.learn((4_000, 5_000), (3_200, 3_300));
        assert_eq!((add, off), (1_045, 55), "a loose bound changes nothing");
    }

    #[test]
    fn a_clock_that_drifts_is_followed_and_one_that_was_set_anew_is_learnt_again() {
        let mut clocks = Clocks::default();
        clocks.learn((1_000, 1_100), (0, 100));
        // One second later, the clocks are 50 us further apart.
        let second = 1_000_000_000;
        assert_eq!(clocks.learn((second + 51_000, second + 51_100), (second, second + 100)), (51_000, 0));
        assert_eq!(clocks.learn((2 * second, 2 * second + 900), (5, 705)), (2 * second + 95, 100));
    }
}
