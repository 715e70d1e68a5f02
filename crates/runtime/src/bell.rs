//! Bells: how one lane wakes another.
//!
//! Owns a wake-up that is never lost: a ring before a wait ends that wait at once.
//! Does not say why it rang; whoever wakes looks for itself.
//!
//! Always: every wait can be ended from outside, so stopping is prompt.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Something to wait for and to ring.
#[derive(Debug, Clone, Default)]
pub struct Bell {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rung: AtomicBool,
    asleep: Mutex<bool>,
    wake: Condvar,
}

impl Bell {
    /// A bell that has not rung.
    pub fn new() -> Bell {
        Bell::default()
    }

    /// Rings: whoever waits wakes, and otherwise the next wait does not wait.
    pub fn ring(&self) {
        // A bell that was rung and not heard yet needs no second ring: most of a busy stream ends here.
        if self.inner.rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let asleep = self.inner.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        if *asleep {
            self.inner.wake.notify_one();
        }
    }

    /// Whether it has rung since it was last heard; hearing it makes it silent.
    pub fn heard(&self) -> bool {
        self.inner.rung.swap(false, Ordering::AcqRel)
    }

    /// Waits until it rings, at most this long; says whether it rang.
    pub fn wait(&self, most: Duration) -> bool {
        if self.heard() {
            return true;
        }
        let mut asleep = self.inner.asleep.lock().unwrap_or_else(PoisonError::into_inner);
        *asleep = true;
        let (mut asleep, _) = self
            .inner
            .wake
            .wait_timeout_while(asleep, most, |_| !self.inner.rung.load(Ordering::Acquire))
            .unwrap_or_else(PoisonError::into_inner);
        *asleep = false;
        drop(asleep);
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
