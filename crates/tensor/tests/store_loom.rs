//! A payload is dropped once, and never under a lease, in every order of threads. This compiles the real `held.rs`
//! against loom, which tries all interleavings.

/// Replaces the store's `sync` module for `held.rs`.
mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

#[path = "../src/store/held.rs"]
mod held;

use held::{Closed, LeaseOwner};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

/// Counts its drops. Loom fails if it is read while it is dropped, because the cell is tracked.
struct Payload {
    ends: Arc<AtomicU32>,
    alive: loom::cell::UnsafeCell<u32>,
}

impl Payload {
    fn new(ends: &Arc<AtomicU32>) -> Payload {
        Payload { ends: Arc::clone(ends), alive: loom::cell::UnsafeCell::new(1) }
    }

    /// A read that loom checks against the write in `drop`.
    fn touch(&self) {
        self.alive.with(|_| {});
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.alive.with_mut(|_| {});
        self.ends.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_payload_ends_once_when_the_owner_leaves_while_others_come_and_go() {
    loom::model(|| {
        let ends = Arc::new(AtomicU32::new(0));
        let held = Arc::new(LeaseOwner::new(Payload::new(&ends)));
        let users: Vec<_> = (0..2)
            .map(|_| {
                let held = Arc::clone(&held);
                thread::spawn(move || {
                    if let Some(lease) = held.lease() {
                        lease.touch();
                    }
                })
            })
            .collect();
        drop(held);
        for user in users {
            user.join().expect("it does not panic");
        }
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn memory_is_not_dropped_under_a_lease_and_a_late_lease_is_refused() {
    loom::model(|| {
        let ends = Arc::new(AtomicU32::new(0));
        let held = Arc::new(LeaseOwner::new(Payload::new(&ends)));
        let user = {
            let held = Arc::clone(&held);
            thread::spawn(move || {
                let lease = held.lease();
                lease.as_deref().map(Payload::touch).is_some()
            })
        };
        let closed_while_idle = matches!(held.close(), Closed::Now(_));
        let used = user.join().expect("it does not panic");
        assert!(closed_while_idle || used, "one of the two had it");
        assert!(held.lease().is_none(), "it was closed");
        assert_eq!(ends.load(Ordering::Relaxed), 1, "by the owner, or by the last lease");
    });
}

#[test]
fn the_last_of_several_leases_ends_a_closed_payload() {
    loom::model(|| {
        let ends = Arc::new(AtomicU32::new(0));
        let held = LeaseOwner::new(Payload::new(&ends));
        let first = held.lease().expect("it is open");
        let second = held.lease().expect("it is open");
        assert_eq!((held.leases(), held.close() == Closed::Later(2)), (2, true));
        let user = thread::spawn(move || drop(first));
        second.touch();
        drop(second);
        user.join().expect("it does not panic");
        assert_eq!(ends.load(Ordering::Relaxed), 1);
        assert!(matches!(held.close(), Closed::Already));
    });
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        Arc::ptr_eq(&self.ends, &other.ends)
    }
}
