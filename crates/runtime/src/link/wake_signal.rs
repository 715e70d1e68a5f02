//! Wake signals: how one lane wakes another.
//!
//! Owns a wake-up that is never lost: a ring before a wait ends that wait at once.
//! Does not say why it rang; whoever wakes looks for itself.
//!
//! Always: every wait can be ended from outside, so stopping is prompt.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::sync::{Arc, AtomicU8, AtomicU32, Mutex, Thread};

/// Nobody has rung, nobody sleeps.
const QUIET: u8 = 0;
/// It was rung and not heard yet.
const NOTIFIED: u8 = 1;
/// Somebody sleeps until it rings.
const ASLEEP: u8 = 2;

/// Something to wait for and to ring.
#[derive(Debug, Clone)]
pub struct WakeSignal {
    inner: Arc<SignalState>,
}

#[derive(Debug)]
struct SignalState {
    state: AtomicU8,
    /// How many of the most yields are left out at present: where they have not helped lately they are tried less, since
    /// each costs time of its own.
    fewer: AtomicU32,
    sleeper: Mutex<Option<Thread>>,
}

impl WakeSignal {
    /// A signal that has not been given.
    pub fn new() -> WakeSignal {
        let inner = SignalState { state: AtomicU8::new(QUIET), fewer: AtomicU32::new(0), sleeper: Mutex::new(None) };
        WakeSignal { inner: Arc::new(inner) }
    }

    /// Whether both are one signal.
    pub fn is_same(&self, other: &WakeSignal) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Rings: whoever waits wakes, and otherwise the next wait does not wait.
    pub fn notify(&self) {
        // A signal that was given and not heard yet needs no second one: most of a busy stream ends here. The load
        // alone would not do, since what was done before the ring must be seen by whoever hears it.
        if self.inner.state.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = &*self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
        {
            sleeper.unpark();
        }
    }

    /// Whether it has rung since it was last heard; hearing it makes it silent.
    pub fn heard(&self) -> bool {
        self.inner.state.swap(QUIET, Ordering::AcqRel) == NOTIFIED
    }

    /// Waits until it rings, at most this long; says whether it rang. One thread waits.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self, most: Duration) -> bool {
        use super::sync::{YIELDS, current, sleep_while, yield_now};

        let fewer = self.inner.fewer.load(Ordering::Relaxed);
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
