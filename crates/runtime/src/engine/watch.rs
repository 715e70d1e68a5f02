//! Watches a pipeline while its lanes run on other threads: what nodes, links and pools show of themselves.
//!
//! Owns the shared handles. Sums over them are made in [`super::account`] and [`super::snapshot`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_gpu::Device;

use crate::device::history::DeviceHistory;
use crate::frame::Frame;
use crate::frame::pool::FramePool;
use crate::link::LinkObserver;
use crate::memory::heap::HeapTally;
use crate::observe::monitor::{Histogram, NodeStats, RunProgress};
use crate::observe::sink_counter::{CounterReading, SinkCounter};
use crate::observe::trace::Trace;

use super::Snapshot;

/// Looks at a pipeline while it runs, from anywhere.
#[derive(Clone)]
pub struct Watch {
    pub(super) watched: Arc<WatchedEngine>,
}

impl Watch {
    /// How far it is, this long after its start.
    pub fn progress(&self, elapsed: Duration) -> RunProgress {
        self.watched.progress(elapsed)
    }

    /// Everything that its parts have counted, this long after its start.
    pub fn snapshot(&self, elapsed: Duration) -> Snapshot {
        self.watched.snapshot(elapsed)
    }

    /// The device it computes on now; none where that is the cpu.
    pub fn device(&self) -> Option<Device> {
        self.watched.device_history.current()
    }
}

/// What can be seen of a pipeline while its lanes are elsewhere.
pub(super) struct WatchedEngine {
    pub(super) nodes: Vec<WatchedNode>,
    pub(super) links: Vec<WatchedLink>,
    pub(super) pool: FramePool,
    pub(super) device_history: Arc<DeviceHistory>,
    pub(super) tally: Arc<HeapTally>,
    pub(super) sink_counter: Arc<SinkCounter>,
    pub(super) begun: CounterReading,
    pub(super) counted_before: vramp_gpu::Counters,
    /// What was lent on the device before.
    pub(super) lent_before: Vec<vramp_gpu::Tag>,
    /// The most that a plan of this graph said.
    pub(super) planned: Arc<Mutex<vramp_plan::PlannedMemory>>,
    pub(super) trace: Option<Trace>,
    /// Of each segment of the device's lane, its first node and the time of a frame on the device.
    pub(super) segments: Vec<(Arc<NodeStats>, Arc<Histogram>)>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct WatchedNode {
    pub(super) names: Vec<String>,
    pub(super) group: Option<usize>,
    pub(super) lane: usize,
    pub(super) place: usize,
    pub(super) sink: bool,
    pub(super) source: bool,
    /// Whether it is a transfer that the planner put there: what it holds is on its links.
    pub(super) inserted: bool,
    /// Whether all its work is the device's.
    pub(super) on_device: bool,
    pub(super) stats: Arc<NodeStats>,
}

pub(super) struct WatchedLink {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) to_node: usize,
    pub(super) leads: bool,
    /// The planner's own transfer that it crosses.
    pub(super) transfer: Option<usize>,
    /// The rings that a frame goes through on this link: two where a transfer has one on each side.
    pub(super) rings: Vec<LinkObserver<Frame>>,
}
