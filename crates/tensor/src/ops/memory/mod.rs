//! Host memory of tensors: blocks, the pool that reuses them, and the counts of memory in use on the host and on the
//! device. Device memory comes from the device's own pool.

mod counts;
mod pool;

pub use counts::MemoryReport;
pub use pool::{HostPoolRules, HostPoolStatistics};

pub(crate) use counts::MemoryCounts;
pub(crate) use pool::{Block, BlockPool};
