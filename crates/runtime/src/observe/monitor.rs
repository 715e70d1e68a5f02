//! The monitor: how long things take, and what is worth saying while it happens.
//!
//! Owns the histograms and counters that nodes write and anybody may read, and the events of a run.
//! Does not steer: nothing that runs depends on what is seen here.
//!
//! Always: one writer each, so writing is a load and a store; reading never disturbs the writer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vramp_plan::{OnError, Size};

/// Buckets per doubling: an answer is within a sixteenth of the truth.
const PER_OCTAVE: usize = 16;
const BUCKETS: usize = 40 * PER_OCTAVE;

/// Times in buckets that grow with them.
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
    /// Adds a time. One thread adds; any may read.
    pub fn add(&self, ns: u64) {
        bump(&self.buckets[bucket(ns)], 1);
        bump(&self.count, 1);
        bump(&self.sum_ns, ns);
        if ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(ns, Ordering::Relaxed);
        }
    }

    /// Times there are.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The longest.
    pub fn max_ns(&self) -> u64 {
        self.max_ns.load(Ordering::Relaxed)
    }

    /// All of them together.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns.load(Ordering::Relaxed)
    }

    /// What one of them takes; none without any.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns() as f64 / count as f64)
    }

    /// The time that this share of all is not longer than; none without any.
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

    /// Adds everything that another one holds.
    pub fn merge(&self, other: &Histogram) {
        for (own, more) in self.buckets.iter().zip(&other.buckets) {
            bump(own, more.load(Ordering::Relaxed));
        }
        bump(&self.count, other.count());
        bump(&self.sum_ns, other.sum_ns());
        self.max_ns.fetch_max(other.max_ns(), Ordering::Relaxed);
    }
}

/// One writer needs no atomic addition, which would cost as much as the rest of the bookkeeping.
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
    let (octave, within) = (bucket / PER_OCTAVE, (bucket % PER_OCTAVE) as u64);
    let (low, width) = ((PER_OCTAVE as u64 + within) << octave, 1_u64 << octave);
    low + width / 2
}

/// Which calls are measured. Asking for the time takes about as long as passing a frame on: whoever is quick is asked
/// now and then, whoever is slow always.
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

/// What a node writes while it runs and anybody may read.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// How long its calls take; of quick ones a sample.
    pub call: Histogram,
    /// How long the device works for each of its frames, where that is known; of most runs a sample.
    pub device: Histogram,
    /// For sinks: time between frames.
    pub interval: Histogram,
    /// For sinks: time from a frame's birth to here.
    pub latency: Histogram,
    taken: AtomicU64,
    emitted: AtomicU64,
    filtered: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    held: AtomicU64,
    repeats: AtomicU64,
    /// Of a node of several handlers: which of them frames ended in.
    members: Box<[MemberStats]>,
}

#[derive(Debug, Default)]
struct MemberStats {
    filtered: AtomicU64,
    failed: AtomicU64,
}

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
    /// Frames that went with a device.
    pub lost: u64,
    /// Frames that are held back.
    pub held: u64,
    /// Times that an input other than the lead supplied a frame once more.
    pub repeats: u64,
}

impl NodeCounts {
    /// Whether every frame is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.taken == self.emitted + self.filtered + self.failed + self.lost + self.held
    }
}

impl NodeStats {
    /// Of a node of this many handlers.
    pub(crate) fn of(members: usize) -> NodeStats {
        let members = if members > 1 { (0..members).map(|_| MemberStats::default()).collect() } else { Box::default() };
        NodeStats { members, ..NodeStats::default() }
    }

    pub(crate) fn failed_in(&self, member: usize) {
        self.members.get(member).into_iter().for_each(|member| bump(&member.failed, 1));
    }

    pub(crate) fn filtered_in(&self, member: usize) {
        self.members.get(member).into_iter().for_each(|member| bump(&member.filtered, 1));
    }

    /// What one of its handlers has counted: the frames that those before it let through.
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

    /// What it has counted.
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

/// Something worth saying while it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// A handler was made anew from its file, and its kernels were compiled meanwhile.
    Reloaded {
        /// Which handler.
        handler: String,
    },
    /// A handler's file has changed, and what is in it now cannot be used: it stays as it was.
    NotReloaded {
        /// Which handler.
        handler: String,
        /// What is wrong.
        problem: String,
    },
    /// A handler failed on a frame; said once per handler, later failures are counted.
    Failed {
        /// Which handler.
        handler: String,
        /// The frame's number.
        frame: u64,
        /// What it said.
        error: String,
        /// What happens now.
        policy: OnError,
    },
    /// A frame took longer than there is time for one; said at most once a second of each handler.
    Slow {
        /// The node to blame: the one that takes longest in the slowest lane on the way to where the frame was late.
        handler: String,
        /// How long that one takes for a frame, lately.
        own: Duration,
        /// The frame's number.
        frame: u64,
        /// How long it took.
        took: Duration,
        /// How long it may take.
        budget: Duration,
        /// How many since it was last said.
        count: u64,
    },
    /// Frames of another size came: the graph was planned again.
    Replanned {
        /// The source.
        handler: String,
        /// The frame's number.
        frame: u64,
        /// The new size.
        size: Size,
    },
    /// The device is gone; the run goes on.
    DeviceLost {
        /// Why, in words.
        reason: String,
        /// What goes on with it.
        on: GoesOn,
        /// Frames that went with it.
        lost: u64,
    },
    /// The device is back, and used again.
    DeviceBack {
        /// Its name.
        device: String,
    },
    /// A second has passed.
    Second(RunProgress),
    /// A handler has not come back this long after the run was to stop.
    Unresponsive {
        /// Which handler.
        handler: String,
        /// How long.
        waited: Duration,
    },
}

/// Where a run goes on when a device was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GoesOn {
    /// On the device, opened anew.
    Device,
    /// On the cpu, with every kernel's twin.
    Cpu,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunProgress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Frames that sources have made.
    pub frames_in: u64,
    /// Frames that sinks have taken.
    pub frames_out: u64,
    /// Frames that links have dropped.
    pub dropped: u64,
    /// Frames a second at the sinks, over the last second.
    pub fps: f64,
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
    fn every_time_has_a_bucket_and_buckets_ascend() {
        let times = [0, 1, 15, 16, 17, 31, 32, 33, 1 << 20, u64::MAX / 2, u64::MAX];
        assert!(times.is_sorted_by_key(|ns| bucket(*ns)));
        assert!(Histogram::default().quantile_ns(0.5).is_none());
    }
}
