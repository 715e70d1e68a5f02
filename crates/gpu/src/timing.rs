//! How long the device takes: stamps of its own clock, or the time until a submission was seen to be done.
//!
//! Owns the query sets, the ring of buffers in which stamps come down, and the relation of the device's clock to the
//! host's.
//! Does not wait: what has come down is read when somebody asks, and a submission for which no slot is free is not timed.
//!
//! Always: everything is made with the player; a timed submission needs no submit, pass or memory of its own. Times lie
//! between the submit and the moment when its end was noticed.
//!
//! Stamps are taken behind every act where the device writes them inside passes, and around each pass otherwise. Where
//! every submission is timed, passes without such stamps hold one dispatch each; that is for a trace and costs passes.

use std::sync::Arc;

use crate::calls::{Calls, Mapping, Refusal};
use crate::device::Device;
use crate::memory::StagingRing;

/// Stamps of one submission; with more acts than that it is not timed.
const MOST_STAMPS: u32 = 256;
const STAMP_BYTES: u64 = 8;

/// How far two clocks may run apart, in parts of a million: quartz is within 50.
const DRIFT_PPM: i64 = 100;

/// One submission of this many is timed where a sample is enough: often at first, so that short runs have one, then
/// seldom. With every submission timed, a frame of one dispatch and one readback of 64x64 pixels took 1.5 to 1.7 times the
/// CPU time on llvmpipe, which ends all work at each stamp; so sampled, 1.03 to 1.06 times on a busy machine
/// (benches/device.rs).
const ONE_IN: [u64; 2] = [16, 64];
const OFTEN: u64 = 64;
/// Which of them: not the first, in which drivers still compile (285 of 300 ms for one blur on llvmpipe).
const SAMPLE: u64 = 2;

/// How device times are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// By stamps of the device's own clock.
    Timestamps,
    /// By the host's clock: from the submit, or the end of the submission before, until its end was noticed.
    Fenced,
}

/// Where a device's clock is stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampPlaces {
    /// Behind every act where the device can do that, around passes where it can only do that.
    #[default]
    Acts,
    /// Around passes.
    Passes,
    /// Nowhere: the host's clock has to do.
    Nowhere,
}

impl StampPlaces {
    /// Where a device with these features can be stamped.
    pub(crate) fn of(has: wgpu::Features) -> StampPlaces {
        match (has.contains(wgpu::Features::TIMESTAMP_QUERY), has.contains(INSIDE)) {
            (true, true) => StampPlaces::Acts,
            (true, false) => StampPlaces::Passes,
            (false, _) => StampPlaces::Nowhere,
        }
    }

    /// What a device that has these features is to be opened with.
    pub(crate) fn features(self, has: wgpu::Features) -> wgpu::Features {
        let passes = wgpu::Features::TIMESTAMP_QUERY;
        match self {
            StampPlaces::Acts => has & (passes | INSIDE),
            StampPlaces::Passes => has & passes,
            StampPlaces::Nowhere => wgpu::Features::empty(),
        }
    }
}

/// What stamps behind every act need.
const INSIDE: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// Which submissions of a player are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Timed {
    /// None.
    #[default]
    Never,
    /// One of sixteen at first and one of sixty-four later where the device has stamps, each one where it has
    /// not: looking at the clock costs nothing.
    Sampled,
    /// Each one, with a time for every act.
    Each,
}

/// How long a submission took. Times are nanoseconds since the device was opened, on the host's clock.
#[derive(Debug)]
pub struct DeviceTime<'a> {
    /// Its number, as playing it gave it.
    pub submission: u64,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// When the device began with it.
    pub begin_ns: u64,
    /// When the device was done.
    pub end_ns: u64,
    /// When that was noticed.
    pub noticed_ns: u64,
    /// How far the device's clock may be off the host's; 0 where only the host's was used.
    pub uncertain_ns: u64,
    /// Its parts, in the order in which they were played; none where only the whole is known.
    pub parts: &'a [PartTime],
}

/// How long a part of a submission took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTime {
    /// Its first act, by its place in the recording.
    pub act: usize,
    /// How many dispatches it has: more than one where only the whole pass is known, none for a transfer.
    pub dispatches: usize,
    /// When the device began with it.
    pub begin_ns: u64,
    /// When the device was done with it.
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
    /// What is told, and keeps its room.
    told: Vec<PartTime>,
}

/// What the device's stamps mean.
#[derive(Clone, Copy)]
struct Stamping {
    inside_passes: bool,
    period_ns: f64,
    clocks: Clocks,
}

/// One submission's stamps.
struct TimestampSlot {
    submission: u64,
    stamps: Option<SlotStamps>,
    mapping: Arc<Mapping>,
    used: u32,
    parts: Vec<Stamped>,
}

/// What a slot has on the device.
struct SlotStamps {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
}

/// A part by its stamps.
#[derive(Clone, Copy)]
struct Stamped {
    act: usize,
    dispatches: usize,
    begin: u32,
    end: u32,
}

/// The host's clock minus the device's: within these bounds, of which each submission tells one of each.
#[derive(Debug, Clone, Copy, Default)]
struct Clocks {
    bounds: Option<(i64, i64)>,
    at_ns: i64,
}

impl Clocks {
    /// Learns from a submission that began no earlier than its submit and ended no later than was noticed; hands back
    /// what to add to a stamp and how far that may be off.
    fn learn(&mut self, (submitted, noticed): (i64, i64), (first, last): (i64, i64)) -> (i64, u64) {
        let own = (submitted - first, noticed - last);
        let drift = (noticed - self.at_ns).max(0) / 1_000_000 * DRIFT_PPM;
        let both = self.bounds.map_or(own, |(low, high)| (own.0.max(low - drift), own.1.min(high + drift)));
        // A clock that was set anew: what was known before is worth nothing.
        let (low, high) = if both.0 <= both.1 { both } else { own };
        (self.bounds, self.at_ns) = (Some((low, high)), noticed);
        let wide = (high - low).max(0);
        (low + wide / 2, (wide / 2).unsigned_abs())
    }
}

impl Timer {
    /// Makes everything that timing needs; where the device refuses stamps, the host's clock has to do.
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
            let parts = Vec::with_capacity(MOST_STAMPS as usize);
            made.push(TimestampSlot { submission: 0, stamps, mapping: Arc::default(), used: 0, parts });
        }
        let told = Vec::with_capacity(MOST_STAMPS as usize);
        Some(Timer { timed, stamping, ring, slots: made, claimed: None, played: 0, ended_ns: 0, told })
    }

    pub(crate) fn timing(&self) -> Timing {
        if self.stamping.is_some() { Timing::Timestamps } else { Timing::Fenced }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let of = |stamps: &SlotStamps| stamps.resolved.size() + stamps.read.size();
        self.slots.iter().filter_map(|slot| slot.stamps.as_ref()).map(of).sum()
    }

    /// Takes a slot for the next submission, where it is to be timed and can be.
    pub(crate) fn claim(&mut self, acts: usize) {
        self.played += 1;
        let one_in = ONE_IN[usize::from(self.played > OFTEN)];
        let due = self.stamping.is_none() || self.timed == Timed::Each || self.played % one_in == SAMPLE;
        // A pass has two stamps of its own, any other act one, and there is one in front of them all.
        if due && 2 * acts as u64 + 1 < u64::from(MOST_STAMPS) {
            self.claimed = self.ring.claim();
        }
        if let Some(slot) = self.claimed {
            let slot = &mut self.slots[slot];
            slot.used = 0;
            slot.parts.clear();
        }
    }

    /// What takes the stamps of the submission that a slot was claimed for.
    pub(crate) fn stamps(&mut self) -> Option<Stamps<'_>> {
        let Stamping { inside_passes, .. } = self.stamping?;
        let TimestampSlot { stamps, used, parts, .. } = &mut self.slots[self.claimed?];
        let split = self.timed == Timed::Each && !inside_passes;
        Some(Stamps { on: stamps.as_ref()?, used, parts, inside_passes, split })
    }

    /// Gives the slot back whose submission was refused.
    pub(crate) fn abandon(&mut self) {
        if let Some(slot) = self.claimed.take() {
            self.ring.abandon(slot);
        }
    }

    /// Sends the slot on its way behind its submission; says whether there is one.
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

    /// Tells what has come down, oldest first.
    pub(crate) fn tell(&mut self, calls: &Calls, heard: &mut dyn FnMut(&DeviceTime<'_>)) {
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
            self.told.clear();
            match &mut self.stamping {
                None => heard(&fenced),
                Some(stamping) => {
                    if let Some((begin_ns, end_ns, uncertain_ns)) = slot.read(stamping, &fenced, &mut self.told) {
                        heard(&DeviceTime { begin_ns, end_ns, uncertain_ns, parts: &self.told, ..fenced });
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
        let bytes = u64::from(MOST_STAMPS) * STAMP_BYTES;
        let resolve = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let read = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        Ok(SlotStamps {
            queries: calls.query_set(MOST_STAMPS)?,
            resolved: calls.create_buffer("vramp stamps", bytes, resolve, false)?,
            read: calls.create_buffer("vramp stamps down", bytes, read, false)?,
        })
    }
}

impl TimestampSlot {
    /// Puts the times of all parts into `told`; hands back begin, end and how far they may be off. None where the stamps
    /// did not come down or make no sense.
    fn read(
        &self,
        stamping: &mut Stamping,
        around: &DeviceTime<'_>,
        told: &mut Vec<PartTime>,
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
        // Rounding and a device that claims more time than has passed must not leave what is known for certain.
        let host = |stamp: i64| (stamp + add).clamp(outside.0, outside.1.max(outside.0)) as u64;
        told.extend(self.parts.iter().map(|part| PartTime {
            act: part.act,
            dispatches: part.dispatches,
            begin_ns: host(stamp(part.begin)),
            end_ns: host(stamp(part.end)),
        }));
        Some((host(first), host(last), uncertain_ns))
    }

    /// Makes it ready for another submission.
    fn free(&mut self) {
        let Some(stamps) = self.stamps.as_ref().filter(|_| self.used > 0) else { return };
        if self.mapping.has_failed() {
            self.mapping = Arc::default();
        } else {
            stamps.read.unmap();
        }
    }
}

/// Takes the stamps of one submission while it is encoded.
pub(crate) struct Stamps<'a> {
    on: &'a SlotStamps,
    used: &'a mut u32,
    parts: &'a mut Vec<Stamped>,
    inside_passes: bool,
    /// Whether every dispatch has a pass of its own.
    pub(crate) split: bool,
}

impl Stamps<'_> {
    /// Stamps the moment before everything.
    pub(crate) fn begin(&mut self, encoder: &mut wgpu::CommandEncoder) {
        if self.inside_passes {
            let stamp = self.next();
            encoder.write_timestamp(&self.on.queries, stamp);
        }
    }

    /// The stamps of a pass that begins with this act.
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

    /// Stamps the end of a dispatch.
    pub(crate) fn dispatched(&mut self, act: usize, pass: &mut wgpu::ComputePass<'_>) {
        if self.inside_passes {
            let end = self.next();
            pass.write_timestamp(&self.on.queries, end);
            self.parts.push(Stamped { act, dispatches: 1, begin: end - 1, end });
        } else if let Some(part) = self.parts.last_mut() {
            part.dispatches += 1;
        }
    }

    /// Stamps the end of an act that is no dispatch.
    pub(crate) fn copied(&mut self, act: usize, encoder: &mut wgpu::CommandEncoder) {
        if self.inside_passes {
            let end = self.next();
            encoder.write_timestamp(&self.on.queries, end);
            self.parts.push(Stamped { act, dispatches: 0, begin: end - 1, end });
        }
    }

    /// Sends all stamps down, behind everything.
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
        // The device's clock is 1,000 behind the host's.
        let mut clocks = Clocks::default();
        assert_eq!(clocks.learn((2_000, 2_900), (1_100, 1_600)), (1_100, 200));
        assert_eq!(clocks.learn((3_000, 3_500), (2_010, 2_400)), (1_045, 55));
        let (add, off) = clocks.learn((4_000, 5_000), (3_200, 3_300));
        assert_eq!((add, off), (1_045, 55), "a loose one teaches nothing");
    }

    #[test]
    fn a_clock_that_drifts_is_followed_and_one_that_was_set_anew_is_learnt_again() {
        let mut clocks = Clocks::default();
        clocks.learn((1_000, 1_100), (0, 100));
        // A second later, 50 us apart.
        let second = 1_000_000_000;
        assert_eq!(clocks.learn((second + 51_000, second + 51_100), (second, second + 100)), (51_000, 0));
        assert_eq!(clocks.learn((2 * second, 2 * second + 900), (5, 705)), (2 * second + 95, 100));
    }
}
