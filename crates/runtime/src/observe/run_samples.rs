//! Frames and memory over the time of a run, in a bounded number of samples.
//!
//! If the memory for samples is full, every second sample is removed and the interval is doubled. A run of any length
//! therefore has between half of [`MOST`] and [`MOST`] samples at equal intervals, and its last one. Taking a sample
//! does not allocate.

use std::time::Duration;

use super::monitor::RunProgress;

/// The state of a run at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct RunSample {
    /// Since the start of the run.
    pub at_ns: u64,
    pub frames_in: u64,
    pub frames_out: u64,
    pub dropped: u64,
    /// Bytes of the host's frame pool that are lent.
    pub cpu_used_bytes: u64,
    /// Bytes of the host's frame pool, lent or free.
    pub cpu_bytes: u64,
    /// Bytes of the device's frame pool that are lent, or still used by the device.
    pub gpu_used_bytes: u64,
    pub gpu_bytes: u64,
}

const MOST: usize = 512;
const SHORTEST: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct RunSamples {
    all: Vec<RunSample>,
    interval_ns: u64,
}

impl Default for RunSamples {
    fn default() -> RunSamples {
        RunSamples { all: Vec::with_capacity(MOST), interval_ns: SHORTEST.as_nanos() as u64 }
    }
}

impl RunSamples {
    /// Whether a sample is due at this time.
    pub(crate) fn is_due(&self, at_ns: u64) -> bool {
        self.all.last().is_none_or(|last| at_ns >= last.at_ns + self.interval_ns)
    }

    pub(crate) fn add(&mut self, sample: RunSample) {
        if self.all.len() == MOST {
            let mut at = 0;
            self.all.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.interval_ns *= 2;
        }
        self.all.push(sample);
    }

    pub(crate) fn all(&self) -> &[RunSample] {
        &self.all
    }
}

impl RunSample {
    pub(crate) fn of(progress: &RunProgress) -> RunSample {
        RunSample {
            at_ns: progress.elapsed.as_nanos() as u64,
            frames_in: progress.frames_in,
            frames_out: progress.frames_out,
            dropped: progress.dropped,
            cpu_used_bytes: progress.cpu_pool.in_use_bytes(),
            cpu_bytes: progress.cpu_pool.bytes(),
            gpu_used_bytes: progress.gpu_pool.in_use_bytes(),
            gpu_bytes: progress.gpu_pool.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_a_bounded_number_of_samples_from_its_start_to_its_end() {
        let mut samples = RunSamples::default();
        let capacity = samples.all.capacity();
        for ms in 0..1_000_000_u64 {
            let at_ns = ms * 1_000_000;
            if samples.is_due(at_ns) {
                samples.add(RunSample { at_ns, ..RunSample::default() });
            }
        }
        let all = samples.all();
        assert!((MOST / 2..=MOST).contains(&all.len()), "{}", all.len());
        assert_eq!((all[0].at_ns, samples.all.capacity()), (0, capacity));
        let step = all[1].at_ns;
        assert!(all.windows(2).all(|pair| pair[1].at_ns - pair[0].at_ns == step));
        assert!(all[all.len() - 1].at_ns + step >= 999_999_000_000);
    }
}
