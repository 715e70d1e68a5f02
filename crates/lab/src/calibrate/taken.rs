//! The share of a run's time for which other programs kept the run's threads waiting.
//!
//! Read from Linux's `schedstat`. On other systems, no thread counts as waiting.

use std::collections::BTreeMap;

/// For each thread of this process, how many nanoseconds the thread has run, and how many nanoseconds the thread has
/// waited for a processor.
#[derive(Debug, Clone, Default)]
pub(super) struct Accounts(BTreeMap<u64, (f64, f64)>);

impl Accounts {
    pub fn read() -> Accounts {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        Accounts(
            tasks
                .filter_map(|task| {
                    let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
                    let mut fields = text.split_whitespace().map(str::parse::<f64>);
                    let account = (fields.next()?.ok()?, fields.next()?.ok()?);
                    Some((task.file_name().to_str()?.parse().ok()?, account))
                })
                .collect(),
        )
    }

    /// The share of the time since `before` that this process would have needed without other programs.
    ///
    /// A thread counts as busy if it ran for more than 2 % of the time, and either ran or waited for a processor for
    /// more than 80 % of the time. The result is the busy threads' running time, divided by their running and waiting
    /// time. Busy threads may have waited only for each other, so the result is at least the running time of all
    /// threads, divided by the time of all processors. Only threads that exist in both accounts count.
    pub fn share_since(&self, before: &Accounts, elapsed_ns: f64, processors: usize) -> f64 {
        let both = self.0.iter().filter_map(|(thread, now)| Some((now, before.0.get(thread)?)));
        let spent: Vec<(f64, f64)> =
            both.map(|(now, then)| ((now.0 - then.0).max(0.0), (now.1 - then.1).max(0.0))).collect();
        let all = spent.iter().map(|(ran, _)| ran).sum::<f64>() / (elapsed_ns * processors as f64).max(1.0);
        let busy = spent.iter().filter(|(ran, waited)| *ran > elapsed_ns / 50.0 && ran + waited > elapsed_ns * 0.8);
        let (ran, waited) = busy.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        if ran > 0.0 { (ran / (ran + waited)).max(all).min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_counts_for_busy_threads_that_stay_and_not_for_each_other() {
        let before = Accounts(BTreeMap::from([(1, (0.0, 0.0)), (2, (50.0, 0.0)), (9, (0.0, 0.0))]));
        let after = Accounts(BTreeMap::from([(1, (100.0, 300.0)), (2, (50.0, 0.0)), (3, (1e9, 1e9))]));
        assert!((after.share_since(&before, 400.0, 2) - 0.25).abs() < 1e-9);
        assert!((after.share_since(&before, 1e6, 2) - 1.0).abs() < 1e-9, "it was idle most of the time");
        assert!((Accounts::default().share_since(&before, 400.0, 2) - 1.0).abs() < 1e-9);
        // Two threads on one processor waited only for each other, so no other program took time.
        let both = Accounts(BTreeMap::from([(1, (200.0, 200.0)), (2, (250.0, 200.0))]));
        assert!((both.share_since(&before, 400.0, 1) - 1.0).abs() < 1e-9);
    }
}
