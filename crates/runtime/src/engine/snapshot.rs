//! A snapshot of a running pipeline: everything its parts have counted so far. `vramp top` displays snapshots.
//!
//! To compute rates and shares, the reader compares two snapshots. A snapshot reads counters that exist anyway and
//! allocates only on the reader's thread, so lanes do no work for a snapshot. Figures are read one after another, so
//! the figures of one snapshot may disagree by a frame.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::observe::monitor::NodeCounts;
use crate::observe::pool_progress::PoolProgress;
use crate::observe::report::{DeviceRecovery, Dropped, LinkUse, TimeStats};

use super::account::{by_reason, time, times};
use super::watch::{WatchedEngine, WatchedLink, WatchedNode};

/// The state of a run at one moment. Times and counts cover the whole run so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Since the start.
    pub elapsed: Duration,
    pub frames_in: u64,
    pub frames_out: u64,
    /// Frames that handlers discarded on purpose.
    pub filtered: u64,
    pub failed: u64,
    pub dropped: Dropped,
    /// Time between frames at the sinks.
    pub frame_ms: TimeStats,
    /// Time from a frame's birth to its sink.
    pub latency_ms: TimeStats,
    /// In order of lanes.
    pub nodes: Vec<NodeSnapshot>,
    pub links: Vec<LinkSnapshot>,
    pub host: MemorySnapshot,
    /// The device in use; `None` if the CPU computes everything.
    pub device: Option<DeviceSnapshot>,
    /// How often a node had to wait for memory.
    pub waits: u64,
    pub recoveries: Vec<DeviceRecovery>,
}

/// A handler, the handlers of a fused kernel, or an inserted transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSnapshot {
    /// The handlers of the node; empty for an inserted transfer.
    pub names: Vec<String>,
    /// The fusion group, as numbered in the plan.
    pub group: Option<usize>,
    pub lane: usize,
    pub sink: bool,
    pub counts: NodeCounts,
    /// Median time per call; for work on the device, the device's time. `None` if unknown.
    pub p50_us: Option<f64>,
    /// Mean time per call, measured like `p50_us`.
    pub mean_us: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LinkSnapshot {
    pub carried: LinkUse,
    /// Dropped frames by reason. Frames that a transfer of this link failed to pass on are counted only in the
    /// `dropped` of `carried`.
    pub dropped: Dropped,
    /// Index in `nodes` of the transfer that this link crosses.
    pub transfer: Option<usize>,
}

/// Memory of a frame pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySnapshot {
    /// Lent and free bytes.
    pub bytes: u64,
    /// Peak of `bytes`.
    pub peak_bytes: u64,
    pub lent_bytes: u64,
    /// Frames and small data that are lent.
    pub lent: u64,
    /// Free bytes.
    pub pooled_bytes: u64,
    /// Requests since the start of the run that were served by free memory.
    pub hits: u64,
    /// Buffers that were allocated since the start of the run.
    pub misses: u64,
    pub planned_bytes: u64,
    pub budget_bytes: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSnapshot {
    pub name: String,
    pub backend: String,
    /// Time the device has worked for this run, estimated from a sample of the submissions; `None` before the first
    /// sample.
    pub worked: Option<Duration>,
    pub memory: MemorySnapshot,
}

impl WatchedEngine {
    pub(super) fn snapshot(&self, elapsed: Duration) -> Snapshot {
        let counts = |which: fn(&WatchedNode) -> bool, what: fn(&NodeCounts) -> u64| -> u64 {
            self.nodes.iter().filter(|node| which(node)).map(|node| what(&node.stats.counts())).sum()
        };
        let (interval, latency) = self.sink_times();
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let host = self.pool.stats();
        let [cpu_pool, gpu_pool] = self.pools();
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
                peak_bytes: host.peak_bytes,
                planned_bytes: planned.cpu_bytes,
                budget_bytes: host.budget_bytes,
                ..MemorySnapshot::of(&cpu_pool)
            },
            device: self.device_snapshot(planned.gpu_bytes, &gpu_pool),
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

    fn device_snapshot(&self, planned_bytes: u64, pool: &PoolProgress) -> Option<DeviceSnapshot> {
        let device = self.device_history.current()?;
        let memory = self.device_history.memory();
        let each = self.segments.iter().map(|(first, time)| Some(first.counts().taken as f64 * time.mean_ns()?));
        let worked_ns: Option<f64> = each.sum();
        Some(DeviceSnapshot {
            name: device.adapter().name.clone(),
            backend: device.adapter().backend.to_string(),
            worked: worked_ns.map(|ns| Duration::from_nanos(ns as u64)),
            memory: MemorySnapshot {
                peak_bytes: memory.peak_bytes,
                planned_bytes,
                budget_bytes: memory.budget_bytes,
                ..MemorySnapshot::of(pool)
            },
        })
    }
}

impl MemorySnapshot {
    fn of(pool: &PoolProgress) -> MemorySnapshot {
        MemorySnapshot {
            bytes: pool.bytes(),
            lent_bytes: pool.lent_bytes,
            lent: pool.lent,
            pooled_bytes: pool.pooled_bytes,
            hits: pool.hits,
            misses: pool.misses,
            ..MemorySnapshot::default()
        }
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
