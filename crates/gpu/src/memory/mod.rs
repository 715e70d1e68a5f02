//! Bookkeeping for pools and rings: holders, free slots, and what the device still uses.
//!
//! Nothing here knows a device. The type of a resource is a parameter, so all rules can be tested without a device.

mod holding;
mod lent;
mod pool;
mod progress;
mod ring;

pub use holding::{PoolEntry, ResourceState, Statistics};
pub use lent::{Pooled, Resource, Tag};
pub use pool::{KEEP_UNPLANNED, LendError, Pool, PoolRules, SIZE_CLASS_BYTES};
pub use progress::SubmissionProgress;
pub(crate) use progress::SubmissionTimes;
pub use ring::StagingRing;
