//! Memory targets: how much the pools should hold, and how much each node leaves to downstream nodes.
//!
//! The planner computes the figures; this module passes them to the pools at the start and when sizes change. A target
//! also holds for a device that is opened later.

use std::sync::Arc;

use vramp_plan::catalog::{Family, TransferDirection};
use vramp_plan::{Content, Plan, Space, Unit};

use crate::device::history::DeviceHistory;
use crate::frame::pool::FramePool;

use super::nodes::Planned;

/// Sets the targets of the host pool and the device pool. In a pool that exceeds its target, free buffers of unused
/// sizes are released to make room for other sizes.
#[derive(Clone)]
pub(super) struct PoolTarget {
    pub(super) pool: FramePool,
    pub(super) device_history: Arc<DeviceHistory>,
}

impl PoolTarget {
    /// Sets targets a quarter above the planned memory, so that a stream that alternates between two sizes need not
    /// reallocate.
    pub(super) fn at(&self, memory: &vramp_plan::PlannedMemory) {
        let enough = |bytes: u64| bytes.saturating_add(bytes / 4);
        self.pool.aim(enough(memory.cpu_bytes.saturating_sub(memory.cpu_held_bytes)));
        self.device_history.aim(enough(memory.gpu_bytes));
    }
}

/// Host bytes that a unit leaves to downstream units: one output frame for each of these units, so that every admitted
/// frame can leave.
pub(super) fn left_behind(plan: &Plan, planned: &[Planned<'_>], at: usize) -> u64 {
    let last_handler = |unit: &Unit| unit.handlers.last().copied();
    let Some(own) = last_handler(&plan.units[at]) else { return 0 };
    let made = |unit: &Unit| -> u64 {
        let Some(last) = last_handler(unit).filter(|last| *last > own) else { return 0 };
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
