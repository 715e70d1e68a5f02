//! The standard library's synchronisation types, named so that a model checker can replace them.
//!
//! `tests/hand_over_model.rs` compiles the same `hand_over.rs` against loom's types.

pub(super) use std::sync::atomic::AtomicU32;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};

pub(super) use vramp_runtime::Patience;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// The end of a wait; `None` for a wait without limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Until(Option<Instant>);

impl Until {
    pub(super) fn after(time: Option<Duration>) -> Until {
        Until(time.and_then(|time| Instant::now().checked_add(time)))
    }

    pub(super) fn is_past(self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves the state whole before it can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until the condition variable is notified or the time has come.
pub(super) fn sleep<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, until: Until) -> MutexGuard<'a, T> {
    match until.0 {
        None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(at) => {
            let left = at.saturating_duration_since(Instant::now());
            condvar.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
        }
    }
}
