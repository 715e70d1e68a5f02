//! Measured times of the operations with one name. Counts, means and extremes are over all times; percentiles are over
//! the last thousand times.
//!
//! Failed operations count too. A percentile is always a measured time.

use std::collections::VecDeque;
use std::fmt;

/// The number of measured times that are kept for percentiles. The number is limited so that a monitor that runs for
/// days does not grow.
const KEPT: usize = 1000;

/// What a measured time covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measured {
    /// From the call until the operation returned. Device work may still be in flight.
    UntilReturned,
    /// From the call, with an idle device, until the device has completed all the work.
    UntilDone,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OperationStatistics {
    pub name: String,
    pub measured: Measured,
    pub count: u64,
    pub failures: u64,
    pub min_ms: f64,
    pub mean_ms: f64,
    /// The median of the last thousand times.
    pub p50_ms: f64,
    /// The 95th percentile of the last thousand times.
    pub p95_ms: f64,
    pub max_ms: f64,
    /// Why these figures may mislead; `None` if they are reliable.
    pub unreliable: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Timings {
    count: u64,
    failures: u64,
    sum_ms: f64,
    min_ms: f64,
    max_ms: f64,
    last_ms: VecDeque<f64>,
    unreliable: Option<String>,
}

impl Timings {
    pub(super) fn add(&mut self, elapsed_ms: f64, has_failed: bool, unreliable: Option<String>) {
        (self.min_ms, self.max_ms) = match self.count {
            0 => (elapsed_ms, elapsed_ms),
            _ => (self.min_ms.min(elapsed_ms), self.max_ms.max(elapsed_ms)),
        };
        self.count += 1;
        self.failures += u64::from(has_failed);
        self.sum_ms += elapsed_ms;
        if self.last_ms.len() == KEPT {
            self.last_ms.pop_front();
        }
        self.last_ms.push_back(elapsed_ms);
        self.unreliable = unreliable.or(self.unreliable.take());
    }

    pub(super) fn statistics(&self, name: &str, measured: Measured) -> OperationStatistics {
        let mut sorted: Vec<f64> = self.last_ms.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        // Nearest rank: the shortest time that is at least as long as `percent` % of the kept times.
        let percentile = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        OperationStatistics {
            name: name.to_owned(),
            measured,
            count: self.count,
            failures: self.failures,
            min_ms: self.min_ms,
            mean_ms: self.sum_ms / self.count as f64,
            p50_ms: percentile(50),
            p95_ms: percentile(95),
            max_ms: self.max_ms,
            unreliable: self.unreliable.clone(),
        }
    }
}

impl fmt::Display for OperationStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, count, failures, min_ms, mean_ms, p50_ms, p95_ms, max_ms, .. } = self;
        write!(f, "{name}: {count} times, {failures} failed; ms until ")?;
        f.write_str(match self.measured {
            Measured::UntilReturned => "it returned",
            Measured::UntilDone => "the device was done",
        })?;
        write!(f, ": min {min_ms:.3}, mean {mean_ms:.3}, p50 {p50_ms:.3}, p95 {p95_ms:.3}, max {max_ms:.3}")?;
        self.unreliable.as_ref().map_or(Ok(()), |why| write!(f, "; unreliable: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(timings: &Timings) -> String {
        let words = timings.statistics("op", Measured::UntilReturned).to_string();
        words.rsplit(": ").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn percentiles_are_times_that_were_measured_and_sums_are_over_all() {
        let mut timings = Timings::default();
        timings.add(5.0, false, None);
        assert_eq!(words(&timings), "min 5.000, mean 5.000, p50 5.000, p95 5.000, max 5.000");
        let mut timings = Timings::default();
        (1..=100).rev().for_each(|ms| timings.add(f64::from(ms), ms % 10 == 0, None));
        let many = timings.statistics("op", Measured::UntilReturned);
        assert_eq!((many.count, many.failures), (100, 10));
        assert_eq!(words(&timings), "min 1.000, mean 50.500, p50 50.000, p95 95.000, max 100.000");
    }

    #[test]
    fn percentiles_are_of_the_last_thousand_and_extremes_of_all() {
        let mut timings = Timings::default();
        timings.add(1e6, false, Some("the device was lost".to_owned()));
        (0..KEPT).for_each(|_| timings.add(2.0, false, None));
        let now = timings.statistics("op", Measured::UntilDone);
        assert_eq!(now.count, 1001);
        assert!(now.to_string().contains("p95 2.000, max 1000000.000; "), "{now}");
        assert_eq!(now.unreliable.as_deref(), Some("the device was lost"), "a doubt stays");
    }
}
