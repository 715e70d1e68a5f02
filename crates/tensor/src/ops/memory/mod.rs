//! Memory of tensors on the host, and how much of it there is.
//!
//! Owns blocks, the pool that keeps them for the next tensor, and the counts of what is in use on both sides.
//! Does not own the device's memory: the device's pool does.

mod counts;
mod pool;

pub use counts::MemoryReport;
pub use pool::{HostPoolRules, HostPoolStatistics};

pub(crate) use counts::MemoryCounts;
pub(crate) use pool::{Block, BlockPool};
