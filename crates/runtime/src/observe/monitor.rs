//! Counters and histograms that nodes write and any thread may read, and the events of a run.
//!
//! Times are kept in histograms of each node, with 16 buckets for each doubling of the time. Each histogram has one
//! writer, so that writing is a load and a store without atomic additions, and reading never disturbs the writer.
//! Reading the clock takes about as long as passing a frame on, so a handler whose last timed call took less than 2 µs
//! is timed in one call of sixteen. Sinks are timed in every call.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use vramp_plan::{OnError, Size};

use super::distribution::{TimeBucket, TimeDistribution};
use super::pool_progress::PoolProgress;

/// Buckets per doubling: quantiles are accurate to a sixteenth.
const PER_OCTAVE: usize = 16;
const BUCKETS: usize = 40 * PER_OCTAVE;

/// A histogram of times with logarithmic buckets.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
    count: AtomicU64,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            sum_ns: AtomicU64::new(0),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Adds a time. Only one thread may add times; any thread may read.
    pub fn add(&self, ns: u64) {
        bump(&self.buckets[bucket(ns)], 1);
        bump(&self.count, 1);
        bump(&self.sum_ns, ns);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    pub fn max_ns(&self) -> u64 {
        self.max_ns.load(Ordering::Relaxed)
    }

    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    /// `None` if empty.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns() as f64 / count as f64)
    }

    /// The time that this share of all entries does not exceed; `None` if empty.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let wanted = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (at, bucket) in self.buckets.iter().enumerate() {
            seen += bucket.load(Ordering::Relaxed);
            if seen >= wanted {
                return Some(middle_ns(at).min(self.max_ns()));
            }
        }
        None
    }

    /// The entries so far, with four buckets for each doubling of the time. Allocates on the reader's thread only.
    pub fn distribution(&self) -> TimeDistribution {
        let mut buckets: Vec<TimeBucket> = Vec::new();
        for (at, four) in self.buckets.chunks(PER_OCTAVE / 4).enumerate() {
            let count = four.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum();
            if count > 0 {
                let first = at * (PER_OCTAVE / 4);
                buckets.push(TimeBucket { from_ns: low_ns(first), to_ns: low_ns(first + PER_OCTAVE / 4), count });
            }
        }
        TimeDistribution {
            count: self.count(),
            sum_ns: self.sum_ns(),
            max_ns: self.max_ns(),
            p50_ns: self.quantile_ns(0.5),
            p99_ns: self.quantile_ns(0.99),
            buckets,
        }
    }

    /// Adds all entries of another histogram.
    pub fn merge(&self, other: &Histogram) {
        for (own, more) in self.buckets.iter().zip(&other.buckets) {
            bump(own, more.load(Ordering::Relaxed));
        }
        bump(&self.count, other.count());
        bump(&self.sum_ns, other.sum_ns());
        self.max_ns.fetch_max(other.max_ns(), Ordering::Relaxed);
    }
}

/// A single writer needs no atomic addition, which would cost as much as the rest of the bookkeeping.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

fn bucket(ns: u64) -> usize {
    let ns = ns.max(PER_OCTAVE as u64);
    let octave = ns.ilog2() as usize;
    let within = (ns >> (octave - 4)) as usize - PER_OCTAVE;
    ((octave - 4) * PER_OCTAVE + within).min(BUCKETS - 1)
}

fn middle_ns(bucket: usize) -> u64 {
    low_ns(bucket) + (1_u64 << (bucket / PER_OCTAVE)) / 2
}

/// The shortest time in a bucket. The first bucket also has all shorter times.
fn low_ns(bucket: usize) -> u64 {
    let (octave, within) = (bucket / PER_OCTAVE, (bucket % PER_OCTAVE) as u64);
    (PER_OCTAVE as u64 + within) << octave
}

/// Decides which calls are timed. Reading the clock takes about as long as passing a frame on, so quick handlers are
/// timed in some calls only, and slow handlers in every call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measuring {
    is_quick: bool,
}

impl Measuring {
    const QUICK_NS: u64 = 2_000;
    const ONE_IN: u64 = 16;

    pub(crate) fn is_due(self, call: u64) -> bool {
        !self.is_quick || call.is_multiple_of(Measuring::ONE_IN)
    }

    pub(crate) fn note(&mut self, took_ns: u64) {
        self.is_quick = took_ns < Measuring::QUICK_NS;
    }
}

/// A node's shared counters and histograms.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// Time per call; sampled for quick handlers.
    pub call: Histogram,
    /// Device time per frame, if known; sampled in most runs.
    pub device: Histogram,
    /// For sinks: time between frames.
    pub interval: Histogram,
    /// For sinks: time from a frame's birth to its arrival.
    pub latency: Histogram,
    taken: AtomicU64,
    emitted: AtomicU64,
    filtered: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    held: AtomicU64,
    repeats: AtomicU64,
    /// Frames that a node of the device lane took while its lane had no device.
    without_device: AtomicU64,
    /// Problems that did not cost a frame, such as errors of a decoder.
    problems: AtomicU64,
    /// Whether the node is in a lane of the host.
    in_host_lane: AtomicBool,
    /// For a fused node, by member: the frames that were filtered or failed in that member.
    members: Box<[MemberStats]>,
}

#[derive(Debug, Default)]
struct MemberStats {
    filtered: AtomicU64,
    failed: AtomicU64,
}

/// A node's counters, in frames of its lead input; for sources, in produced frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeCounts {
    /// Frames that arrived, or were due at a source.
    pub taken: u64,
    pub emitted: u64,
    /// Frames that the handler discarded on purpose.
    pub filtered: u64,
    pub failed: u64,
    /// Frames that a device loss took.
    pub lost: u64,
    pub held: u64,
    /// How often a non-lead input supplied a frame again.
    pub repeats: u64,
}

impl NodeCounts {
    /// Whether every frame is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.taken == self.emitted + self.filtered + self.failed + self.lost + self.held
    }
}

impl NodeStats {
    pub(crate) fn of(members: usize) -> NodeStats {
        let members = if members > 1 { (0..members).map(|_| MemberStats::default()).collect() } else { Box::default() };
        NodeStats { members, ..NodeStats::default() }
    }

    /// Counts frames that a node of the device lane took while its lane had no device.
    pub(crate) fn took_without_device(&self, frames: u64) {
        bump(&self.without_device, frames);
    }

    /// Notes that the node is in a lane of the host, where all of its frames are on the host.
    pub(crate) fn set_in_host_lane(&self) {
        self.in_host_lane.store(true, Ordering::Relaxed);
    }

    /// Frames that the node took while its lane had no device: all frames of a host lane, and the frames after a device
    /// loss in the device lane.
    pub fn on_host(&self) -> u64 {
        let in_host_lane = self.in_host_lane.load(Ordering::Relaxed);
        if in_host_lane { &self.taken } else { &self.without_device }.load(Ordering::Relaxed)
    }

    /// Counts problems that did not cost a frame.
    pub(crate) fn count_problems(&self, count: u64) {
        self.problems.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn problems(&self) -> u64 {
        self.problems.load(Ordering::Relaxed)
    }

    pub(crate) fn failed_in(&self, member: usize) {
        self.members.get(member).into_iter().for_each(|member| bump(&member.failed, 1));
    }

    pub(crate) fn filtered_in(&self, member: usize) {
        self.members.get(member).into_iter().for_each(|member| bump(&member.filtered, 1));
    }

    /// The counters of one member, which takes the frames that the members before it let through.
    pub(crate) fn counts_of(&self, member: usize) -> NodeCounts {
        let all = self.counts();
        let Some(own) = self.members.get(member) else { return all };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let before: u64 = self.members[..member].iter().map(|other| read(&other.filtered) + read(&other.failed)).sum();
        let (filtered, failed) = (read(&own.filtered), read(&own.failed));
        let taken = all.taken.saturating_sub(before);
        let emitted = taken.saturating_sub(filtered + failed + all.lost + all.held);
        NodeCounts { taken, emitted, filtered, failed, ..all }
    }

    pub fn counts(&self) -> NodeCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NodeCounts {
            taken: read(&self.taken),
            emitted: read(&self.emitted),
            filtered: read(&self.filtered),
            failed: read(&self.failed),
            lost: read(&self.lost),
            held: read(&self.held),
            repeats: read(&self.repeats),
        }
    }

    pub(crate) fn show(&self, counts: &NodeCounts) {
        let write = |counter: &AtomicU64, value| counter.store(value, Ordering::Relaxed);
        write(&self.taken, counts.taken);
        write(&self.emitted, counts.emitted);
        write(&self.filtered, counts.filtered);
        write(&self.failed, counts.failed);
        write(&self.lost, counts.lost);
        write(&self.held, counts.held);
        write(&self.repeats, counts.repeats);
    }
}

/// An event of a run, reported while the run continues.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// Settings of a handler have changed.
    Changed {
        handler: String,
        /// Each changed setting with its new value, in text form.
        settings: Vec<(String, String)>,
        /// The first frame that the handler processed with the new values.
        frame: u64,
    },
    /// Another graph continues the run.
    GraphReplaced {
        /// Handlers of the new graph.
        handlers: usize,
        /// How many of them kept their state.
        kept: usize,
        /// The number of frames that the sources had sent.
        frames: u64,
    },
    /// A handler could not take changed settings at this frame: the handler continues as before.
    NotChanged { handler: String, frame: u64, problem: String },
    /// A handler was replaced after its file changed, and its new kernels were compiled.
    Reloaded { handler: String },
    /// A handler's file has changed, but the new content cannot be used: the previous handler keeps running.
    NotReloaded { handler: String, problem: String },
    /// A handler failed on a frame. Reported once per handler; later failures are only counted.
    Failed { handler: String, frame: u64, error: String, policy: OnError },
    /// A frame took longer than the time available. Reported at most once a second per handler.
    Slow {
        /// The cause: the node that takes longest in the slowest lane on the way to the late frame's sink.
        handler: String,
        /// Recent time per frame of this node.
        own: Duration,
        frame: u64,
        took: Duration,
        budget: Duration,
        /// Late frames since the last report.
        count: u64,
    },
    /// A source's frames changed their size and the graph was planned again.
    Replanned { handler: String, frame: u64, size: Size },
    /// The device is lost; the run continues.
    DeviceLost {
        reason: String,
        on: GoesOn,
        /// Number of frames that were lost because they were on the device.
        lost: u64,
    },
    /// A device is in use again.
    DeviceBack { device: String },
    /// Reported every second.
    Second(RunProgress),
    /// A handler tells something about its work.
    Told { handler: String, words: String, is_warning: bool },
    /// A handler had still not returned when `waited` had passed since the stop.
    Unresponsive { handler: String, waited: Duration },
}

/// Where a run continues after a device loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GoesOn {
    /// On a device that was opened again.
    Device,
    /// On the CPU, with the host implementation of every kernel.
    Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunProgress {
    /// Since the start.
    pub elapsed: Duration,
    pub frames_in: u64,
    pub frames_out: u64,
    /// Frames dropped so far, for any reason.
    pub dropped: u64,
    /// Frames per second at the sinks: over the last second in [`RunEvent::Second`], over the whole run so far in
    /// [`Watch::progress`](crate::Watch::progress).
    pub fps: f64,
    /// The frame pool on the host.
    pub cpu_pool: PoolProgress,
    /// The frame pool on the device; unused if the CPU computes everything.
    pub gpu_pool: PoolProgress,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_sixteenth() {
        let histogram = Histogram::default();
        (1..=10_000).for_each(|us| histogram.add(us * 1000));
        for (share, truth) in [(0.5, 5_000_000.0), (0.99, 9_900_000.0), (0.001, 10_000.0)] {
            let found = histogram.quantile_ns(share).expect("there are times") as f64;
            assert!((found / truth - 1.0).abs() < 1.0 / 16.0, "{share}: {found} instead of {truth}");
        }
        assert_eq!((histogram.count(), histogram.max_ns()), (10_000, 10_000_000));
    }

    #[test]
    fn a_distribution_has_every_entry_in_the_bucket_of_its_time() {
        let histogram = Histogram::default();
        let times = [1, 16, 100, 100, 5_000, 1_000_000, 3_000_000_000];
        for ns in times {
            histogram.add(ns);
        }
        let TimeDistribution { count, sum_ns, max_ns, buckets, .. } = histogram.distribution();
        assert_eq!((count, sum_ns, max_ns), (7, times.iter().sum(), 3_000_000_000));
        assert!(buckets.is_sorted_by(|one, two| one.to_ns <= two.from_ns));
        for bucket in &buckets {
            let is_inside = |ns: &&u64| (bucket.from_ns..bucket.to_ns).contains(&(**ns).max(16));
            assert_eq!(times.iter().filter(is_inside).count() as u64, bucket.count, "{bucket:?}");
            assert!(bucket.count > 0 && bucket.to_ns * 4 <= bucket.from_ns * 5, "{bucket:?}");
        }
    }

    #[test]
    fn every_time_has_a_bucket_and_buckets_ascend() {
        let times = [0, 1, 15, 16, 17, 31, 32, 33, 1 << 20, u64::MAX / 2, u64::MAX];
        assert!(times.is_sorted_by_key(|ns| bucket(*ns)));
        assert!(Histogram::default().quantile_ns(0.5).is_none());
    }
}
