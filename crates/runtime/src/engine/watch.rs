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
use crate::observe::monitor::{Histogram, NodeStats, RunProgress};
use crate::observe::sink_counter::{CounterReading, SinkCounter};
use crate::observe::trace::Trace;

use super::Snapshot;

/// Observes a running pipeline from any thread.
#[derive(Clone)]
pub struct Watch {
    current: Arc<Mutex<Watched>>,
}

#[derive(Clone)]
struct Watched {
    engine: Arc<WatchedEngine>,
    /// The progress of the engines that this engine succeeded.
    before: RunProgress,
}

impl Watch {
    pub(super) fn new(watched: &Arc<WatchedEngine>) -> Watch {
        let watched = Watched { engine: Arc::clone(watched), before: RunProgress::default() };
        Watch { current: Arc::new(Mutex::new(watched)) }
    }

    /// The progress of the run. `elapsed` is the time since the start.
    pub fn progress(&self, elapsed: Duration) -> RunProgress {
        let Watched { engine, before } = self.current();
        let own = engine.progress(elapsed);
        RunProgress {
            frames_in: before.frames_in + own.frames_in,
            frames_out: before.frames_out + own.frames_out,
            dropped: before.dropped + own.dropped,
            ..own
        }
    }

    /// From now on, observes the engine of another watch, which continues the run.
    #[doc(hidden)]
    pub fn follow(&self, other: &Watch, elapsed: Duration) {
        let (before, engine) = (self.progress(elapsed), other.current().engine);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Watched { engine, before };
    }

    fn current(&self) -> Watched {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All counters of the run. `elapsed` is the time since the start.
    pub fn snapshot(&self, elapsed: Duration) -> Snapshot {
        self.current().engine.snapshot(elapsed)
    }

    /// The device in use now; `None` if the CPU computes everything.
    pub fn device(&self) -> Option<Device> {
        self.current().engine.device_history.current()
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
    pub(super) counted_before: vramp_gpu::Counters,
    /// Device memory that was lent before this engine was built.
    pub(super) lent_before: Vec<vramp_gpu::Tag>,
    /// The largest memory that a plan of this graph has needed.
    pub(super) planned: Arc<Mutex<vramp_plan::PlannedMemory>>,
    pub(super) trace: Option<Trace>,
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
