//! A notification is never lost, in any interleaving of two threads: the real `wake_signal.rs`, compiled against loom's
//! threads, which tries them all. A lost notification leaves a thread asleep forever, and loom reports that.

/// What `wake_signal.rs` finds under the names of the crate's own `sync`.
mod sync {
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::AtomicU8;
    pub(crate) use loom::sync::{Arc, Mutex};
    pub(crate) use loom::thread::{Thread, current};

    /// Looks once: looking more often covers the same states, with far more interleavings to try.
    #[derive(Debug)]
    pub(crate) struct Patience;

    #[expect(clippy::unused_self, reason = "as in the type that this one replaces")]
    impl Patience {
        pub(crate) fn new() -> Patience {
            Patience
        }

        pub(crate) fn look(&self, changed: impl Fn() -> bool) -> bool {
            changed()
        }

        pub(crate) fn sleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
            sleep()
        }
    }

    /// Time does not pass in a model: only a notification ends the sleep.
    pub(crate) fn sleep_while(_: Duration, asleep: impl Fn() -> bool) {
        while asleep() {
            loom::thread::park();
        }
    }
}

#[expect(dead_code, reason = "the model uses part of the type")]
#[path = "../src/link/wake_signal.rs"]
mod wake_signal;

use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use wake_signal::WakeSignal;

/// Waits until this much is done, on its own thread: a late notification cannot disturb loom's `join`.
fn waiter(signal: &WakeSignal, done: &Arc<AtomicU32>, wanted: u32) -> loom::thread::JoinHandle<()> {
    let (signal, done) = (signal.clone(), Arc::clone(done));
    loom::thread::spawn(move || {
        while done.load(Ordering::Relaxed) < wanted {
            signal.wait(Duration::MAX);
        }
    })
}

#[test]
fn a_waiter_sees_everything_that_was_done_before_a_notification() {
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
fn two_notifiers_wake_one_waiter() {
    loom::model(|| {
        let (signal, done) = (WakeSignal::new(), Arc::new(AtomicU32::new(0)));
        let waiter = waiter(&signal, &done, 2);
        let notifier = loom::thread::spawn({
            let (signal, done) = (signal.clone(), Arc::clone(&done));
            move || {
                done.fetch_add(1, Ordering::Relaxed);
                signal.notify();
            }
        });
        done.fetch_add(1, Ordering::Relaxed);
        signal.notify();
        notifier.join().expect("it does not panic");
        waiter.join().expect("it does not panic");
    });
}
