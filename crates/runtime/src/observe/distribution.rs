//! The times of a run as distributions, which a reader takes from the histograms that nodes fill anyway.

use serde::Serialize;
use vramp_plan::Space;

/// Times with the number of their occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TimeDistribution {
    pub count: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// The median as in the report, from finer buckets than those below; `None` if there are no times.
    pub p50_ns: Option<u64>,
    /// The time that 99 % of the entries do not exceed.
    pub p99_ns: Option<u64>,
    /// In ascending order; empty buckets are left out.
    pub buckets: Vec<TimeBucket>,
}

/// The number of times from `from_ns` up to, but not including, `to_ns`. Shorter times than those of the first bucket
/// of a histogram, and longer times than those of its last bucket, are counted in these buckets. In JSON a bucket is a
/// list of the three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "(u64, u64, u64)")]
pub struct TimeBucket {
    pub from_ns: u64,
    pub to_ns: u64,
    pub count: u64,
}

impl From<TimeBucket> for (u64, u64, u64) {
    fn from(bucket: TimeBucket) -> (u64, u64, u64) {
        (bucket.from_ns, bucket.to_ns, bucket.count)
    }
}

/// The times of the unit of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnitDistribution {
    /// In running order; empty for an inserted transfer.
    pub handlers: Vec<String>,
    /// Index of the plan's transfer that the unit performs, inserted or written by the user.
    pub transfer: Option<usize>,
    /// The space in which the plan placed the unit.
    pub space: Space,
    /// Time per call: device time for work on the device, otherwise the time of the call. Quick calls are sampled,
    /// and so is device time, unless the run is traced. Empty if the device gives only the total of several units.
    pub time: TimeDistribution,
}

/// The distributions of a run, as medians and maxima in its [`Report`](crate::Report).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunDistributions {
    /// In order of lanes.
    pub units: Vec<UnitDistribution>,
    /// Time between frames at the sinks.
    pub frame: TimeDistribution,
    /// Time from a frame's birth to its sink.
    pub latency: TimeDistribution,
}
