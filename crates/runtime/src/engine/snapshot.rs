//! A snapshot of a run while it goes on: what its parts have counted so far.
//!
//! Owns the picture of one moment that whoever watches is given.
//! Does not compare moments: rates and shares are between two of them, and whoever looks twice knows both.
//!
//! Always: looking steers nothing and allocates in the looker's thread only; figures of one snapshot may be a frame apart,
//! since nobody waits for it.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::observe::monitor::{Histogram, NodeCounts};
use crate::observe::report::{DeviceRecovery, Dropped, LinkUse, TimeStats};

use super::account::{by_reason, time, times};
use super::watch::{WatchedEngine, WatchedLink, WatchedNode};

/// What a run looks like at one moment. Times and counts are of the whole run until then.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Time since it began.
    pub elapsed: Duration,
    /// Frames that sources have made.
    pub frames_in: u64,
    /// Frames that sinks have taken.
    pub frames_out: u64,
    /// Frames that ended somewhere on purpose.
    pub filtered: u64,
    /// Frames on which a handler failed.
    pub failed: u64,
    /// Frames that links dropped.
    pub dropped: Dropped,
    /// Time between frames at the sinks.
    pub frame_ms: TimeStats,
    /// Time from a frame's birth to its sink.
    pub latency_ms: TimeStats,
    /// What runs, lane by lane.
    pub nodes: Vec<NodeSnapshot>,
    /// What is between them.
    pub links: Vec<LinkSnapshot>,
    /// Memory of frames on the host.
    pub host: MemorySnapshot,
    /// The device that is used now; none where the cpu does it all.
    pub device: Option<DeviceSnapshot>,
    /// Times that somebody had to wait for memory.
    pub waits: u64,
    /// Each loss of the device.
    pub recoveries: Vec<DeviceRecovery>,
}

/// A handler, the handlers of a fused kernel, or a transfer that the planner put there.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSnapshot {
    /// The handlers in it; none for a transfer.
    pub names: Vec<String>,
    /// The fused kernel, as in the plan.
    pub group: Option<usize>,
    /// The lane it runs in.
    pub lane: usize,
    /// Whether frames end there.
    pub sink: bool,
    /// What it has counted.
    pub counts: NodeCounts,
    /// Half of its calls are shorter, where it works: on the device, the device's time. None where that is not known.
    pub p50_us: Option<f64>,
    /// What a call takes on average, likewise.
    pub mean_us: Option<f64>,
}

/// A link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkSnapshot {
    /// What it has carried.
    pub carried: LinkUse,
    /// What it dropped, by reason. What did not come across a transfer is in the sum of `carried` only.
    pub dropped: Dropped,
    /// The transfer on it, by its place among the nodes.
    pub transfer: Option<usize>,
}

/// Memory of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySnapshot {
    /// Bytes that there are, lent or free.
    pub bytes: u64,
    /// The most that there were.
    pub peak_bytes: u64,
    /// Bytes that somebody holds.
    pub lent_bytes: u64,
    /// Frames and small data that somebody holds.
    pub lent: u64,
    /// What the plan says it needs.
    pub planned_bytes: u64,
    /// The most it may have.
    pub budget_bytes: u64,
}

/// A device at work.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSnapshot {
    /// Its name.
    pub name: String,
    /// The API it is talked to through.
    pub backend: String,
    /// How long it has worked for this run, from a sample of its submissions; none before the first of them.
    pub worked: Option<Duration>,
    /// Memory of frames on it.
    pub memory: MemorySnapshot,
}

impl WatchedEngine {
    pub(super) fn snapshot(&self, elapsed: Duration) -> Snapshot {
        let counts = |which: fn(&WatchedNode) -> bool, what: fn(&NodeCounts) -> u64| -> u64 {
            self.nodes.iter().filter(|node| which(node)).map(|node| what(&node.stats.counts())).sum()
        };
        let (interval, latency) = (Histogram::default(), Histogram::default());
        for node in self.nodes.iter().filter(|node| node.sink) {
            interval.merge(&node.stats.interval);
            latency.merge(&node.stats.latency);
        }
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let host = self.pool.stats();
        Snapshot {
            elapsed,
            frames_in: counts(|node| node.source, |counts| counts.taken),
            frames_out: counts(|node| node.sink, |counts| counts.emitted),
            filtered: counts(|_| true, |counts| counts.filtered),
            failed: counts(|_| true, |counts| counts.failed),
            dropped: self.dropped(),
            frame_ms: times(&interval),
            latency_ms: times(&latency),
            nodes: self.nodes.iter().map(NodeSnapshot::at).collect(),
            links: self.links.iter().map(|link| self.link_snapshot(link)).collect(),
            host: MemorySnapshot {
                bytes: host.lent_bytes + host.pooled_bytes,
                peak_bytes: host.peak_bytes,
                lent_bytes: host.lent_bytes,
                lent: host.lent,
                planned_bytes: planned.cpu_bytes,
                budget_bytes: host.budget_bytes,
            },
            device: self.device_snapshot(planned.gpu_bytes),
            waits: self.sink_counter.waits.load(Ordering::Relaxed),
            recoveries: self.device_history.recoveries(),
        }
    }

    fn link_snapshot(&self, link: &WatchedLink) -> LinkSnapshot {
        let mut sums = [0; 5];
        for ring in &link.rings {
            for (sum, dropped) in sums.iter_mut().zip(ring.counts().dropped) {
                *sum += dropped;
            }
        }
        LinkSnapshot { carried: self.link_use(link), dropped: by_reason(sums), transfer: link.transfer }
    }

    fn device_snapshot(&self, planned_bytes: u64) -> Option<DeviceSnapshot> {
        let device = self.device_history.current()?;
        let memory = self.device_history.memory();
        let each = self.segments.iter().map(|(first, time)| Some(first.counts().taken as f64 * time.mean_ns()?));
        let worked_ns: Option<f64> = each.sum();
        Some(DeviceSnapshot {
            name: device.adapter().name.clone(),
            backend: device.adapter().backend.to_string(),
            worked: worked_ns.map(|ns| Duration::from_nanos(ns as u64)),
            memory: MemorySnapshot {
                bytes: memory.held_bytes(),
                peak_bytes: memory.peak_bytes,
                lent_bytes: memory.lent_bytes,
                lent: memory.lent as u64,
                planned_bytes,
                budget_bytes: memory.budget_bytes,
            },
        })
    }
}

impl NodeSnapshot {
    fn at(node: &WatchedNode) -> NodeSnapshot {
        let time = time(node);
        NodeSnapshot {
            names: node.names.clone(),
            group: node.group,
            lane: node.lane,
            sink: node.sink,
            counts: node.stats.counts(),
            p50_us: time.quantile_ns(0.5).map(|ns| ns as f64 / 1e3),
            mean_us: time.mean_ns().map(|ns| ns / 1e3),
        }
    }
}
