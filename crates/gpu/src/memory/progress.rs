//! How far the device has come, in submissions.
//!
//! Owns two numbers: the last submission that was made and the last that has finished.
//! Does not ask the device: whoever hears of an end says so here.
//!
//! Always: numbers only grow, and submissions finish in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was submitted and what has finished; clones share the same numbers. Submission 0 is always finished.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    numbers: Arc<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    submitted: AtomicU64,
    finished: AtomicU64,
}

impl Progress {
    /// Counts one more submission and gives its number.
    pub fn submit(&self) -> u64 {
        self.numbers.submitted.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last submission that was made.
    pub fn submitted(&self) -> u64 {
        self.numbers.submitted.load(Ordering::Acquire)
    }

    /// Says that this submission and all before it have finished.
    pub fn finish(&self, submission: u64) {
        self.numbers.finished.fetch_max(submission, Ordering::AcqRel);
    }

    /// The last submission that has finished.
    pub fn finished(&self) -> u64 {
        self.numbers.finished.load(Ordering::Acquire)
    }

    /// Whether this submission has finished.
    pub fn has_finished(&self, submission: u64) -> bool {
        submission <= self.finished()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_only_grow() {
        let progress = Progress::default();
        assert!(progress.has_finished(0));
        assert_eq!((progress.submit(), progress.submit()), (1, 2));
        progress.finish(2);
        progress.finish(1);
        assert_eq!((progress.submitted(), progress.finished()), (2, 2));
        assert!(!progress.has_finished(3));
    }
}
