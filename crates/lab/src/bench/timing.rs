//! Times of repetitions: how often a workload is repeated, and the figures of all repetitions.

use std::time::{Duration, Instant};

use super::Effort;
use super::clock::cpu_time;

/// Minimum number of measured repetitions, for the median.
const LEAST: usize = 7;
/// Maximum duration of a measurement, even if a longer duration is requested. [`LEAST`] repetitions are made anyway.
const MOST: Duration = Duration::from_secs(600);

/// Times of repetitions in milliseconds, shortest first.
pub(super) struct Times {
    pub(super) wall: Vec<f64>,
    /// Empty if the system does not report CPU time.
    pub(super) cpu: Vec<f64>,
}

impl Times {
    /// Repeats a workload for the intended duration.
    pub(super) fn measure<E>(effort: Effort, mut once: impl FnMut() -> Result<(), E>) -> Result<Times, E> {
        let mut times = Times { wall: Vec::new(), cpu: Vec::new() };
        let started = Instant::now();
        let whole = effort.run * u32::try_from(effort.runs.max(1)).unwrap_or(1);
        while times.wall.len() < LEAST || started.elapsed() < whole.min(MOST) {
            let (cpu, wall) = (cpu_time(), Instant::now());
            once()?;
            times.wall.push(wall.elapsed().as_secs_f64() * 1e3);
            if let (Some(before), Some(after)) = (cpu, cpu_time()) {
                times.cpu.push(after.saturating_sub(before).as_secs_f64() * 1e3);
            }
        }
        times.wall.sort_by(f64::total_cmp);
        times.cpu.sort_by(f64::total_cmp);
        Ok(times)
    }

    pub(super) fn median(&self) -> f64 {
        self.wall[self.wall.len() / 2]
    }

    pub(super) fn median_cpu(&self) -> Option<f64> {
        self.cpu.get(self.cpu.len() / 2).copied()
    }
}
