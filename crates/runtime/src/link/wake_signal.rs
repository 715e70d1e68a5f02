//! Wake signals: how one lane wakes another.
//!
//! A signal carries no reason; the woken lane checks its inputs and outputs itself.
//!
//! Invariants: a notification is never lost; a notification that comes before a wait ends that wait at once. Every wait
//! can be ended from outside, so that stopping is prompt.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::sync::{Arc, AtomicU8, AtomicU32, Mutex, Thread};

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
    /// How many of [`YIELDS`](super::sync::YIELDS) are skipped at present. Yields that have recently not helped are
    /// tried less often, because each yield takes time.
    fewer: AtomicU32,
    sleeper: Mutex<Option<Thread>>,
}

impl WakeSignal {
    pub fn new() -> WakeSignal {
        let inner = SignalState { state: AtomicU8::new(QUIET), fewer: AtomicU32::new(0), sleeper: Mutex::new(None) };
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
        use super::sync::{SPINS, YIELDS, current, sleep_while, spin_loop, yield_now};

        let fewer = self.inner.fewer.load(Ordering::Relaxed);
        for _ in 0..if fewer == 0 { SPINS } else { 0 } {
            if self.inner.state.load(Ordering::Relaxed) == NOTIFIED {
                break;
            }
            spin_loop();
        }
        for _ in fewer..YIELDS {
            if self.heard() {
                self.inner.fewer.store(0, Ordering::Relaxed);
                return true;
            }
            yield_now();
        }
        self.inner.fewer.store((fewer + 2).min(YIELDS - 1), Ordering::Relaxed);
        *self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(current());
        let asleep = self.inner.state.compare_exchange(QUIET, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if asleep.is_ok() {
            sleep_while(most, || self.inner.state.load(Ordering::Acquire) == ASLEEP);
        }
        self.heard()
    }
}

impl Default for WakeSignal {
    fn default() -> WakeSignal {
        WakeSignal::new()
    }
}
