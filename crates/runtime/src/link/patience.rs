//! How long a thread looks for a change before it sleeps.
//!
//! Sleeping and being woken takes two context switches, on a virtual machine 30 us each; a thread that looks finds a
//! change within a fraction of a microsecond, but takes CPU time from other threads. So a thread looks for a few
//! microseconds, then yields a few times, and then sleeps. It looks and yields less if that has recently not helped.
//!
//! Two threads that answer each other may get into a state in which both always sleep, only because each waits for the
//! other to wake up: 64 us per round trip instead of 0.3 us. A thread that was often asleep for a short time therefore
//! looks for longer once. If the other thread then answers at once, both stay awake from there on. Otherwise the
//! next attempt comes after twice as many sleeps.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long a thread looks before it yields. A frame that goes through a pipeline of three handlers on another thread
/// comes back within 2 us, and a yield takes 0.2 us.
const LOOK: Duration = Duration::from_micros(3);

/// How long a thread looks if that has recently not helped.
const SHORT_LOOK: Duration = Duration::from_nanos(1500);

/// How often a thread looks before it reads the clock.
const SPINS: u32 = 16;

/// Maximum number of yields before a thread sleeps. Streaming over a link of depth 64 takes 0.46 us a frame without
/// yields and 0.10 us with them.
const YIELDS: u32 = 20;

/// A sleep that is shorter than this may have been caused by the sleep of the thread that ended it.
const SHORT_SLEEP: Duration = Duration::from_micros(150);

/// How long an attempt to stay awake lasts.
const ATTEMPT: Duration = Duration::from_micros(100);

/// Number of short sleeps before an attempt to stay awake, at first and at most.
const SLEEPS: u32 = 16;
const MOST_SLEEPS: u32 = 1024;

/// What the threads that wait for the same thing have learned about their waits.
#[derive(Debug)]
pub struct Patience {
    /// How many of [`YIELDS`] are skipped at present.
    fewer: AtomicU32,
    /// Short sleeps since the last attempt to stay awake.
    sleeps: AtomicU32,
    /// Number of short sleeps before the next attempt.
    attempt_after: AtomicU32,
}

impl Patience {
    pub const fn new() -> Patience {
        Patience { fewer: AtomicU32::new(0), sleeps: AtomicU32::new(0), attempt_after: AtomicU32::new(SLEEPS) }
    }

    /// Looks until the condition holds or the patience ends. Returns whether the condition held; if not, the caller
    /// goes to [`Patience::sleep`].
    pub fn look(&self, changed: impl Fn() -> bool) -> bool {
        if self.look_closely(&changed) {
            self.found();
            return true;
        }
        let attempt_after = self.attempt_after.load(Ordering::Relaxed);
        if self.sleeps.load(Ordering::Relaxed) >= attempt_after {
            self.sleeps.store(0, Ordering::Relaxed);
            self.attempt_after.store((attempt_after * 2).min(MOST_SLEEPS), Ordering::Relaxed);
            let found = yields_until(&changed);
            if found {
                // The other thread is awake again, and its next answer may come soon.
                self.fewer.store(0, Ordering::Relaxed);
            }
            return found;
        }
        for _ in self.fewer.load(Ordering::Relaxed)..YIELDS {
            yield_now();
            if changed() {
                self.found();
                return true;
            }
        }
        false
    }

    /// Calls `sleep`, which ends when the thread is woken, and learns from how long it took.
    pub fn sleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
        let fewer = self.fewer.load(Ordering::Relaxed);
        self.fewer.store((fewer + 2).min(YIELDS - 1), Ordering::Relaxed);
        let begun = Instant::now();
        let result = sleep();
        if begun.elapsed() < SHORT_SLEEP {
            self.sleeps.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Looks without leaving the processor to other threads.
    fn look_closely(&self, changed: &impl Fn() -> bool) -> bool {
        let most = if self.fewer.load(Ordering::Relaxed) == 0 { LOOK } else { SHORT_LOOK };
        let mut begun = None;
        loop {
            for _ in 0..SPINS {
                if changed() {
                    return true;
                }
                spin_loop();
            }
            if begun.get_or_insert_with(Instant::now).elapsed() >= most {
                return false;
            }
        }
    }

    fn found(&self) {
        // Stores only what changes: the line is shared with other threads.
        if self.fewer.load(Ordering::Relaxed) != 0 {
            self.fewer.store(0, Ordering::Relaxed);
        }
        if self.attempt_after.load(Ordering::Relaxed) != SLEEPS {
            self.attempt_after.store(SLEEPS, Ordering::Relaxed);
        }
    }
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::new()
    }
}

fn yields_until(changed: &impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < ATTEMPT {
        yield_now();
        if changed() {
            return true;
        }
    }
    false
}
