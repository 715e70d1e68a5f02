//! Bells: how one lane wakes another.
//!
//! Owns a wake-up that is never lost: a ring before a wait ends that wait at once.
//! Does not say why it rang; whoever wakes looks for itself.
//!
//! Always: every wait can be ended from outside, so stopping is prompt.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// Nobody has rung, nobody sleeps.
const QUIET: u8 = 0;
/// It was rung and not heard yet.
const RUNG: u8 = 1;
/// Somebody sleeps until it rings.
const ASLEEP: u8 = 2;

/// Times that a waiter lets others run before it sleeps, at most. Whoever rings is often about to: falling asleep and
/// being woken takes two switches of the kernel. Streaming over a link of depth 64, 0.46 us a frame without and 0.10
/// with. Where that has not helped lately it is tried less, since each costs time of its own.
const YIELDS: u32 = 20;

/// Something to wait for and to ring.
#[derive(Debug, Clone, Default)]
pub struct Bell {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: AtomicU8,
    /// How many of the most yields are left out at present.
    fewer: AtomicU32,
    sleeper: Mutex<Option<Thread>>,
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Bell {
        Bell::default()
    }

    /// Whether both are one bell.
    pub fn is_same(&self, other: &Bell) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Rings: whoever waits wakes, and otherwise the next wait does not wait.
    pub fn ring(&self) {
        // A bell that was rung and not heard yet needs no second ring: most of a busy stream ends here. The load
        // alone would not do, since what was done before the ring must be seen by whoever hears it.
        if self.inner.state.swap(RUNG, Ordering::AcqRel) == ASLEEP
            && let Some(sleeper) = &*self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner)
        {
            sleeper.unpark();
        }
    }

    /// Whether it has rung since it was last heard; hearing it makes it silent.
    pub fn heard(&self) -> bool {
        self.inner.state.swap(QUIET, Ordering::AcqRel) == RUNG
    }

    /// Waits until it rings, at most this long; says whether it rang. One thread waits.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self, most: Duration) -> bool {
        let fewer = self.inner.fewer.load(Ordering::Relaxed);
        for _ in fewer..YIELDS {
            if self.heard() {
                self.inner.fewer.store(fewer / 2, Ordering::Relaxed);
                return true;
            }
            thread::yield_now();
        }
        self.inner.fewer.store((fewer + 4).min(YIELDS - 1), Ordering::Relaxed);
        let until = std::time::Instant::now() + most;
        *self.inner.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
        let asleep = self.inner.state.compare_exchange(QUIET, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if asleep.is_ok() {
            let mut left = most;
            while self.inner.state.load(Ordering::Acquire) == ASLEEP && !left.is_zero() {
                thread::park_timeout(left);
                left = until.saturating_duration_since(std::time::Instant::now());
            }
        }
        self.heard()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_ends_it() {
        let bell = Bell::new();
        bell.ring();
        assert!(bell.wait(Duration::ZERO));
        assert!(!bell.wait(Duration::ZERO));
    }

    #[test]
    fn no_ring_is_lost_between_two_threads() {
        let (there, back) = (Bell::new(), Bell::new());
        let echo = std::thread::spawn({
            let (there, back) = (there.clone(), back.clone());
            move || {
                for _ in 0..20_000 {
                    // A minute is far more than this takes: a lost ring would fail here instead of hanging.
                    assert!(there.wait(Duration::from_secs(60)));
                    back.ring();
                }
            }
        });
        for _ in 0..20_000 {
            there.ring();
            assert!(back.wait(Duration::from_secs(60)));
        }
        echo.join().unwrap();
    }
}
