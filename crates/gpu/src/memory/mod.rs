//! Memory as bookkeeping: who holds what, which slot is free, what the device still needs.
//!
//! Owns the rules of pools and rings, for resources of any kind.
//! Does not know a device: what is lent is a type parameter, and all of it is tested without one.

mod holding;
mod lent;
mod pool;
mod progress;
mod ring;

pub use holding::{PoolEntry, ResourceState, Statistics};
pub use lent::{Pooled, Resource, Tag};
pub use pool::{LendError, Pool, PoolRules, SIZE_CLASS_BYTES};
pub use progress::SubmissionProgress;
pub(crate) use progress::SubmissionTimes;
pub use ring::StagingRing;
