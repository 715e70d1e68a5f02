//! How much memory a pipeline should need: what its pools aim at, and what its nodes leave to each other.
//!
//! Owns how the plan's memory reaches the pools, at the start and when sizes change.
//! Does not count: the planner does.
//!
//! Always: an aim holds for whichever device is used, also one that is opened later.

use std::sync::Arc;

use vramp_plan::catalog::{Family, TransferDirection};
use vramp_plan::{Content, Plan, Space, Unit};

use crate::device::history::DeviceHistory;
use crate::frame::pool::FramePool;

use super::nodes::Planned;

/// How much both pools should need. Beyond, sizes that nobody asks for any more make room for others.
#[derive(Clone)]
pub(super) struct PoolTarget {
    pub(super) pool: FramePool,
    pub(super) device_history: Arc<DeviceHistory>,
}

impl PoolTarget {
    /// A quarter more than planned: who alternates between two sizes should not have to make them anew each time.
    pub(super) fn at(&self, memory: &vramp_plan::PlannedMemory) {
        let enough = |bytes: u64| bytes.saturating_add(bytes / 4);
        self.pool.aim(enough(memory.cpu_bytes));
        self.device_history.aim(enough(memory.gpu_bytes));
    }
}

/// Host memory that a unit leaves to those behind it: a frame of each, so that what it lets in can get out.
pub(super) fn left_behind(plan: &Plan, planned: &[Planned<'_>], at: usize) -> u64 {
    let place = |unit: &Unit| unit.handlers.last().copied();
    let Some(own) = place(&plan.units[at]) else { return 0 };
    let made = |unit: &Unit| -> u64 {
        let Some(last) = place(unit).filter(|last| *last > own) else { return 0 };
        let node = &planned[last];
        let entry = node.handler.entry;
        let passes_on = entry.family == Family::Control || entry.transfer.is_some();
        let host = plan.handlers[last].space == Space::Cpu && !passes_on;
        node.outputs.iter().flatten().filter(|_| host).map(Content::bytes).sum()
    };
    let down = plan
        .transfers
        .iter()
        .filter(|transfer| transfer.direction == TransferDirection::Down && transfer.from.handler >= own);
    plan.units.iter().map(made).sum::<u64>() + down.map(|transfer| transfer.bytes).sum::<u64>()
}
