//! What can be read of a run: reports, snapshots, counters, events and timelines. Nothing here steers the run.

pub(crate) mod distribution;
mod event_words;
mod joined;
pub(crate) mod lateness;
pub(crate) mod milestones;
pub(crate) mod monitor;
pub(crate) mod pool_progress;
pub(crate) mod report;
pub(crate) mod run_samples;
pub(crate) mod sink_counter;
pub(crate) mod trace;

pub use crate::engine::{DeviceSnapshot, LinkSnapshot, MemorySnapshot, NodeSnapshot, Snapshot};
pub use crate::link::ring::DropReason;
pub use crate::memory::shortage::{MemoryHolder, OutOfMemory};
pub use distribution::{RunDistributions, TimeBucket, TimeDistribution, UnitDistribution};
pub use monitor::{GoesOn, NodeCounts};
pub use pool_progress::{PoolProgress, rate_in_words};
pub use report::{
    DeviceRecovery, Dropped, EndCounts, EndUse, GpuTimes, GroupTime, HandlerTime, KeptPartial, LatencyNeed, Leak,
    LinkUse, MemoryUse, NotOnDevice, PerFrame, Placement, RunCounters, TimeStats, UnitTime,
};
pub use run_samples::RunSample;
pub use trace::{SpanKind, TraceSpan, TrackView};
