//! Progress of the device: the number of the last submission, and of the last submission that has finished.
//!
//! Both numbers only grow, and submissions finish in order. The code that notices the end of a submission calls
//! [`SubmissionProgress::finish`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Submitted and finished work. Clones share the numbers. Submission 0 has always finished.
#[derive(Debug, Clone, Default)]
pub struct SubmissionProgress {
    numbers: Arc<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    submitted: AtomicU64,
    finished: AtomicU64,
}

impl SubmissionProgress {
    /// Counts a submission and returns its number.
    pub fn submit(&self) -> u64 {
        self.numbers.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last submission.
    pub fn submitted(&self) -> u64 {
        self.numbers.submitted.load(Ordering::Acquire)
    }

    /// Marks this submission and all earlier submissions as finished.
    pub fn finish(&self, submission: u64) {
        self.numbers.finished.fetch_max(submission, Ordering::AcqRel);
    }

    /// The last finished submission.
    pub fn finished(&self) -> u64 {
        self.numbers.finished.load(Ordering::Acquire)
    }

    pub fn has_finished(&self, submission: u64) -> bool {
        submission <= self.finished()
    }
}

/// For each submission, when it was made and when its end was noticed, in nanoseconds since the device was opened. Only
/// the last [`SubmissionTimes::KEPT`] submissions are kept.
#[derive(Debug)]
pub(crate) struct SubmissionTimes {
    #[cfg(not(target_arch = "wasm32"))]
    opened: std::time::Instant,
    of: [(AtomicU64, AtomicU64); SubmissionTimes::KEPT],
}

impl Default for SubmissionTimes {
    fn default() -> Self {
        Self {
            #[cfg(not(target_arch = "wasm32"))]
            opened: std::time::Instant::now(),
            of: std::array::from_fn(|_| (AtomicU64::new(0), AtomicU64::new(0))),
        }
    }
}

impl SubmissionTimes {
    /// More submissions than all players of a device have in flight; the limit of frames in flight is 64.
    const KEPT: usize = 256;

    pub(crate) fn now_ns(&self) -> u64 {
        // `Instant` does not work on the web, so all times are 0 there.
        #[cfg(target_arch = "wasm32")]
        return 0;
        #[cfg(not(target_arch = "wasm32"))]
        u64::try_from(self.opened.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn submit(&self, submission: u64) {
        self.at(submission).0.store(self.now_ns(), Ordering::Relaxed);
    }

    /// Must be called before [`SubmissionProgress::finish`], which publishes the time to readers.
    pub(crate) fn finish(&self, submission: u64) {
        self.at(submission).1.store(self.now_ns(), Ordering::Relaxed);
    }

    /// When a submission was made, and when its end was noticed.
    pub(crate) fn of(&self, submission: u64) -> (u64, u64) {
        let (submitted, finished) = self.at(submission);
        (submitted.load(Ordering::Relaxed), finished.load(Ordering::Relaxed))
    }

    fn at(&self, submission: u64) -> &(AtomicU64, AtomicU64) {
        &self.of[submission as usize % SubmissionTimes::KEPT]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow() {
        let progress = SubmissionProgress::default();
        assert!(progress.has_finished(0));
        assert_eq!((progress.submit(), progress.submit()), (1, 2));
        progress.finish(2);
        progress.finish(1);
        assert_eq!((progress.submitted(), progress.finished()), (2, 2));
        assert!(!progress.has_finished(3));
    }
}
