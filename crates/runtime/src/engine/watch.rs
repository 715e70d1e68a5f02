//! Watches a pipeline while its lanes run on other threads: what nodes, links and pools show of themselves.
//!
//! Owns the shared handles. Sums over them are made in [`super::account`] and [`super::snapshot`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_gpu::Device;

use crate::device::history::Devices;
use crate::frame::Frame;
use crate::frame::pool::HostPool;
use crate::link::Observed;
use crate::memory::heap::Tally;
use crate::observe::monitor::{Histogram, NodeStats, Progress};
use crate::observe::sink_counter::{Passed, Reading};
use crate::observe::trace::Trace;

use super::Glance;

/// Looks at a pipeline while it runs, from anywhere.
#[derive(Clone)]
pub struct Watch {
    pub(super) watched: Arc<Watched>,
}

impl Watch {
    /// How far it is, this long after its start.
    pub fn progress(&self, elapsed: Duration) -> Progress {
        self.watched.progress(elapsed)
    }

    /// Everything that its parts have counted, this long after its start.
    pub fn glance(&self, elapsed: Duration) -> Glance {
        self.watched.glance(elapsed)
    }

    /// The device it computes on now; none where that is the cpu.
    pub fn device(&self) -> Option<Device> {
        self.watched.devices.current()
    }
}

/// What can be seen of a pipeline while its lanes are elsewhere.
pub(super) struct Watched {
    pub(super) nodes: Vec<WatchedNode>,
    pub(super) links: Vec<WatchedLink>,
    pub(super) pool: HostPool,
    pub(super) devices: Arc<Devices>,
    pub(super) tally: Arc<Tally>,
    pub(super) passed: Arc<Passed>,
    pub(super) begun: Reading,
    pub(super) counted_before: vramp_gpu::Counters,
    /// What was lent on the device before.
    pub(super) lent_before: Vec<vramp_gpu::Tag>,
    /// The most that a plan of this graph said.
    pub(super) planned: Arc<Mutex<vramp_plan::Memory>>,
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
    /// Whether it is a ramp that the planner put there: what it holds is on its links.
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
    /// The planner's own ramp that it crosses.
    pub(super) ramp: Option<usize>,
    /// The rings that a frame goes through on this link: two where a ramp has one on each side.
    pub(super) rings: Vec<Observed<Frame>>,
}
