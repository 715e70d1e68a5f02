//! Observes a pipeline while its lanes run on other threads: shared handles to the counters of nodes, links and pools.
//!
//! Sums over these counters are computed in [`super::account`] and [`super::snapshot`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_gpu::Device;
use vramp_plan::Space;
use vramp_plan::catalog::TransferDirection;

use crate::device::history::DeviceHistory;
use crate::frame::Frame;
use crate::frame::pool::FramePool;
use crate::link::LinkObserver;
use crate::memory::heap::HeapTally;
use crate::observe::distribution::RunDistributions;
use crate::observe::monitor::{Histogram, NodeStats, RunProgress};
use crate::observe::sink_counter::{CounterReading, SinkCounter};
use crate::observe::trace::Trace;

use super::Snapshot;

/// Observes a running pipeline from any thread.
#[derive(Clone)]
pub struct Watch {
    current: Arc<Mutex<Arc<WatchedEngine>>>,
}

impl Watch {
    pub(super) fn new(watched: &Arc<WatchedEngine>) -> Watch {
        Watch { current: Arc::new(Mutex::new(Arc::clone(watched))) }
    }

    /// The progress of the run. `elapsed` is the time since the start.
    pub fn progress(&self, elapsed: Duration) -> RunProgress {
        self.current().progress(elapsed)
    }

    /// From now on, observes the engine of another watch, which continues the run.
    #[doc(hidden)]
    pub fn follow(&self, other: &Watch) {
        let engine = other.current();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = engine;
    }

    fn current(&self) -> Arc<WatchedEngine> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All counters of the run. `elapsed` is the time since the start.
    pub fn snapshot(&self, elapsed: Duration) -> Snapshot {
        self.current().snapshot(elapsed)
    }

    /// How long calls and frames took so far. After the run, the same figures that its report summarises.
    pub fn distributions(&self) -> RunDistributions {
        self.current().distributions()
    }

    /// The device in use now; `None` if the CPU computes everything.
    pub fn device(&self) -> Option<Device> {
        self.current().device_history.current()
    }
}

/// The shared counters of an engine whose lanes run elsewhere.
pub(super) struct WatchedEngine {
    pub(super) nodes: Vec<WatchedNode>,
    pub(super) links: Vec<WatchedLink>,
    pub(super) pool: FramePool,
    pub(super) device_history: Arc<DeviceHistory>,
    pub(super) tally: Arc<HeapTally>,
    pub(super) sink_counter: Arc<SinkCounter>,
    pub(super) begun: CounterReading,
    /// The progress of earlier engines of the run.
    pub(super) before: RunProgress,
    pub(super) counted_before: vramp_gpu::Counters,
    /// Device memory that was lent before this engine was built.
    pub(super) lent_before: Vec<vramp_gpu::Tag>,
    /// The largest memory that a plan of this graph has needed.
    pub(super) planned: Arc<Mutex<vramp_plan::PlannedMemory>>,
    /// What the plan predicts about a latency need.
    pub(super) latency: Option<vramp_plan::PlannedLatency>,
    pub(super) trace: Option<Trace>,
    /// The number of the first link on the timeline.
    pub(super) first_traced: usize,
    /// For each segment of the device lane: its first node and the device time per frame.
    pub(super) segments: Vec<(Arc<NodeStats>, Arc<Histogram>)>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct WatchedNode {
    pub(super) names: Vec<String>,
    /// For each name: true if the handler is neither a source nor a sink.
    pub(super) between: Vec<bool>,
    /// The space in which the plan placed the node.
    pub(super) space: Space,
    pub(super) group: Option<usize>,
    pub(super) lane: usize,
    pub(super) position: usize,
    pub(super) sink: bool,
    pub(super) source: bool,
    /// True for a transfer that the planner inserted. Frames that the transfer holds are counted on its links.
    pub(super) inserted: bool,
    /// The index in the plan of the transfer that the node performs.
    pub(super) transfer: Option<usize>,
    /// The direction of a transfer, inserted or written by the user.
    pub(super) direction: Option<TransferDirection>,
    /// True if all work of the node runs on the device.
    pub(super) on_device: bool,
    pub(super) stats: Arc<NodeStats>,
}

pub(super) struct WatchedLink {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) to_node: usize,
    pub(super) leads: bool,
    /// The inserted transfer that the link crosses.
    pub(super) transfer: Option<usize>,
    /// The rings that a frame passes on this link: two if the link crosses a transfer with a ring on each side.
    pub(super) rings: Vec<LinkObserver<Frame>>,
}
