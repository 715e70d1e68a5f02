//! Wake signals: how one lane wakes another.
//!
//! A signal carries no reason; the woken lane checks its inputs and outputs itself.
//!
//! Invariants: a notification is never lost; a notification that comes before a wait ends that wait at once. Every wait
//! can be ended from outside, so that stopping is prompt.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::sync::{Arc, AtomicU8, Mutex, Patience, Thread};

/// Not notified, and no thread sleeps.
const QUIET: u8 = 0;
/// Notified, and no thread has noticed yet.
const NOTIFIED: u8 = 1;
/// A thread sleeps until the next notification.
const ASLEEP: u8 = 2;

/// A notification that one thread waits for and any thread can give.
#[derive(Debug, Clone)]
pub struct WakeSignal {
    inner: Arc<SignalState>,
}

#[derive(Debug)]
struct SignalState {
    state: AtomicU8,
    patience: Patience,
    sleeper: Mutex<Option<Thread>>,
}

impl WakeSignal {
    pub fn new() -> WakeSignal {
        let inner = SignalState { state: AtomicU8::new(QUIET), patience: Patience::new(), sleeper: Mutex::new(None) };
        WakeSignal { inner: Arc::new(inner) }
    }

    /// Whether `self` and `other` are clones of one signal.
    pub fn is_same(&self, other: &WakeSignal) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Wakes the waiting thread, or ends its next wait at once.
    pub fn notify(&self) {
        // A signal that is already notified needs no second wake-up: most calls of a busy stream end here. A plain load
        // would not do, because the woken thread must see everything written before the notification.
        if self.inner.state.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = &*self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
        {
            sleeper.unpark();
        }
    }

    /// Whether the signal was notified since the last call; clears the notification.
    pub fn heard(&self) -> bool {
        self.inner.state.swap(QUIET, Ordering::AcqRel) == NOTIFIED
    }

    /// Waits at most this long for a notification and returns whether one came. Only one thread may wait.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self, most: Duration) -> bool {
        use super::sync::{current, sleep_while};

        if self.inner.patience.look(|| self.inner.state.load(Ordering::Relaxed) == NOTIFIED) {
            return self.heard();
        }
        *self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(current());
        let asleep = self.inner.state.compare_exchange(QUIET, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if asleep.is_ok() {
            let asleep = || self.inner.state.load(Ordering::Acquire) == ASLEEP;
            self.inner.patience.sleep(|| sleep_while(most, asleep));
        }
        self.heard()
    }
}

impl Default for WakeSignal {
    fn default() -> WakeSignal {
        WakeSignal::new()
    }
}
