//! Statistics of a frame pool, as part of the progress of a run: how much memory the pool has, and how often it could
//! lend memory without an allocation.
//!
//! Reading the statistics allocates nothing and holds a pool's lock only to read its counters, so that a run can report
//! them every second.

use std::fmt;

use vramp_gpu::Statistics;
use vramp_plan::bytes_in_words;

use crate::frame::pool::PoolStats;

/// The memory of a frame pool now, and its requests since the start of the run. A buffer of the pool is free, lent or
/// waiting. A graph that replaces another brings its own host pool, but the requests of both are counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PoolProgress {
    /// Free buffers.
    pub pooled: u64,
    pub pooled_bytes: u64,
    /// Lent buffers. On the device, this includes buffers of the program itself, whose bytes are not counted.
    pub lent: u64,
    pub lent_bytes: u64,
    /// Returned buffers that the device still uses; 0 on the host.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// Requests that were served by a free buffer.
    pub hits: u64,
    /// Buffers that were allocated, ahead of the first frame or for a request.
    pub misses: u64,
    /// Hits per second: over the last second in [`RunEvent::Second`](crate::RunEvent::Second), over the whole run so far
    /// in [`Watch::progress`](crate::Watch::progress).
    pub hits_per_second: f64,
    /// Misses per second, over the same time.
    pub misses_per_second: f64,
}

impl PoolProgress {
    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.pooled_bytes + self.in_use_bytes()
    }

    /// Buffers that are lent or waiting.
    pub fn in_use(&self) -> u64 {
        self.lent + self.waiting
    }

    /// Bytes that are lent or waiting.
    pub fn in_use_bytes(&self) -> u64 {
        self.lent_bytes + self.waiting_bytes
    }

    /// Whether the pool has no buffer and has had no request.
    pub fn is_unused(&self) -> bool {
        self.bytes() + self.in_use() + self.hits + self.misses == 0
    }

    pub(crate) fn of_host(stats: &PoolStats) -> PoolProgress {
        PoolProgress {
            pooled: stats.pooled,
            pooled_bytes: stats.pooled_bytes,
            lent: stats.lent,
            lent_bytes: stats.lent_bytes,
            hits: stats.hits,
            misses: stats.misses,
            ..PoolProgress::default()
        }
    }

    pub(crate) fn of_device(statistics: &Statistics) -> PoolProgress {
        PoolProgress {
            pooled: statistics.pooled as u64,
            pooled_bytes: statistics.pooled_bytes,
            lent: statistics.lent as u64,
            lent_bytes: statistics.lent_bytes,
            waiting: statistics.waiting as u64,
            waiting_bytes: statistics.waiting_bytes,
            hits: statistics.hits,
            misses: statistics.misses,
            ..PoolProgress::default()
        }
    }

    /// Adds the requests of the engines that ran before.
    #[must_use]
    pub(crate) fn after(self, before: &PoolProgress) -> PoolProgress {
        PoolProgress { hits: before.hits + self.hits, misses: before.misses + self.misses, ..self }
    }

    /// Sets the rates to those of the `seconds` since `last`.
    #[must_use]
    pub(crate) fn since(self, last: &PoolProgress, seconds: f64) -> PoolProgress {
        let rate = |now: u64, last: u64| now.saturating_sub(last) as f64 / seconds.max(1e-9);
        PoolProgress {
            hits_per_second: rate(self.hits, last.hits),
            misses_per_second: rate(self.misses, last.misses),
            ..self
        }
    }
}

impl fmt::Display for PoolProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [in_use, free] = [self.in_use_bytes(), self.pooled_bytes].map(bytes_in_words);
        let [hits, misses] = [self.hits_per_second, self.misses_per_second].map(rate_in_words);
        write!(
            f,
            "{} in use ({in_use}), {} free ({free}), {hits} hits/s, {misses} misses/s",
            self.in_use(),
            self.pooled
        )
    }
}

/// A rate in few digits. Only a rate of exactly zero is shown as 0.
pub fn rate_in_words(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        ..0.095 => "<0.1".to_owned(),
        ..9.95 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolProgress = PoolProgress {
        pooled: 2,
        pooled_bytes: 2_000_000,
        lent: 3,
        lent_bytes: 3_000_000,
        waiting: 1,
        waiting_bytes: 1_000_000,
        hits: 90,
        misses: 6,
        hits_per_second: 0.0,
        misses_per_second: 0.0,
    };

    #[test]
    fn the_text_has_the_size_of_the_pool_and_its_rates() {
        let pool = POOL.since(&PoolProgress { hits: 60, misses: 5, ..POOL }, 2.0);
        assert_eq!(pool.to_string(), "4 in use (4.0 MB), 2 free (2.0 MB), 15 hits/s, 0.5 misses/s");
        assert_eq!((pool.bytes(), pool.in_use(), pool.is_unused()), (6_000_000, 4, false));
        assert!(PoolProgress::default().is_unused());
    }

    #[test]
    fn requests_of_earlier_engines_count_and_their_memory_does_not() {
        let both = POOL.after(&PoolProgress { hits: 1000, misses: 10, ..POOL });
        assert_eq!(both, PoolProgress { hits: 1090, misses: 16, ..POOL });
    }

    #[test]
    fn no_rate_above_zero_is_shown_as_zero() {
        assert_eq!(
            [0.0, 0.001, 0.33, 9.96, 10.0, 11_763.2].map(rate_in_words),
            ["0", "<0.1", "0.3", "10", "10", "11763"]
        );
    }
}
