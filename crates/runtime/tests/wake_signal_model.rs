//! A wake signal is never lost, whatever order two threads run in: the real `wake_signal.rs`, compiled against loom's threads, which
//! tries them all. A ring that is lost leaves a thread asleep for ever, and loom says so.

/// What `signal.rs` finds under the names of the crate's own `sync`.
mod sync {
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32};
    pub(crate) use loom::sync::{Arc, Mutex};
    pub(crate) use loom::thread::{Thread, current, yield_now};

    /// One is as good as twenty here, and far fewer orders to try.
    pub(crate) const YIELDS: u32 = 1;

    /// Time does not pass in a model: only a ring ends the sleep.
    pub(crate) fn sleep_while(_: Duration, asleep: impl Fn() -> bool) {
        while asleep() {
            loom::thread::park();
        }
    }
}

#[expect(dead_code, clippy::unnecessary_min_or_max, reason = "the model uses what it is about, with one yield")]
#[path = "../src/link/wake_signal.rs"]
mod wake_signal;

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use wake_signal::WakeSignal;

/// Waits until this much is done, in a thread of its own: loom's `join` cannot be disturbed by a late ring.
fn waiter(signal: &WakeSignal, done: &Arc<AtomicU32>, wanted: u32) -> loom::thread::JoinHandle<()> {
    let (signal, done) = (signal.clone(), Arc::clone(done));
    loom::thread::spawn(move || {
        while done.load(Ordering::Relaxed) < wanted {
            signal.wait(Duration::MAX);
        }
    })
}

#[test]
fn whoever_waits_hears_of_everything_that_was_done_before_a_ring() {
    loom::model(|| {
        let (signal, done) = (WakeSignal::new(), Arc::new(AtomicU32::new(0)));
        let waiter = waiter(&signal, &done, 2);
        for _ in 0..2 {
            done.fetch_add(1, Ordering::Relaxed);
            signal.notify();
        }
        waiter.join().expect("it does not panic");
    });
}

#[test]
fn two_who_ring_wake_one_who_waits() {
    loom::model(|| {
        let (signal, done) = (WakeSignal::new(), Arc::new(AtomicU32::new(0)));
        let waiter = waiter(&signal, &done, 2);
        let ringer = loom::thread::spawn({
            let (signal, done) = (signal.clone(), Arc::clone(&done));
            move || {
                done.fetch_add(1, Ordering::Relaxed);
                signal.notify();
            }
        });
        done.fetch_add(1, Ordering::Relaxed);
        signal.notify();
        ringer.join().expect("it does not panic");
        waiter.join().expect("it does not panic");
    });
}
