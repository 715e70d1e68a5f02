//! A payload with one owner and any number of leases.
//!
//! [`LeaseOwner`] counts the leases and decides when the payload is dropped. Names and models are the concern of the
//! ledger.
//!
//! Invariants: the payload is dropped once, after the owner was closed and the last lease has ended. A lease keeps the
//! payload alive. A closed owner grants no new lease. `tests/store_loom.rs` checks this file in all interleavings.

use std::ops::Deref;
use std::sync::PoisonError;

use super::sync::{Arc, Mutex, MutexGuard};

/// The owner of a payload. Dropping an owner closes the owner, as [`LeaseOwner::close`] does.
#[derive(Debug)]
pub struct LeaseOwner<T> {
    slot: Arc<Mutex<LeaseSlot<T>>>,
}

/// Shared use of a payload, until the lease is dropped.
#[derive(Debug)]
pub struct Lease<T> {
    slot: Arc<Mutex<LeaseSlot<T>>>,
    /// `None` only while the lease is being dropped.
    payload: Option<Arc<T>>,
}

/// The result of [`LeaseOwner::close`].
#[derive(Debug, PartialEq, Eq)]
pub enum Closed<T> {
    /// There were no leases; the payload is returned.
    Now(T),
    /// This many leases still exist. The payload is dropped when the last of them ends.
    Later(usize),
    /// The owner was closed before.
    Already,
}

#[derive(Debug)]
struct LeaseSlot<T> {
    /// `None` after the payload was returned or dropped.
    payload: Option<Arc<T>>,
    leases: usize,
    closed: bool,
}

impl<T> LeaseOwner<T> {
    pub fn new(payload: T) -> LeaseOwner<T> {
        let slot = LeaseSlot { payload: Some(Arc::new(payload)), leases: 0, closed: false };
        LeaseOwner { slot: Arc::new(Mutex::new(slot)) }
    }

    /// Lends the payload. `None` after [`LeaseOwner::close`].
    pub fn lease(&self) -> Option<Lease<T>> {
        let mut slot = locked(&self.slot);
        if slot.closed {
            return None;
        }
        slot.leases += 1;
        Some(Lease { slot: Arc::clone(&self.slot), payload: slot.payload.clone() })
    }

    /// The number of leases that are out.
    pub fn leases(&self) -> usize {
        locked(&self.slot).leases
    }

    /// Stops lending. Returns the payload if there are no leases; otherwise the payload is dropped with the last lease.
    pub fn close(&self) -> Closed<T> {
        let mut slot = locked(&self.slot);
        if slot.closed {
            return Closed::Already;
        }
        slot.closed = true;
        match slot.leases {
            0 => Closed::Now(sole(slot.payload.take())),
            leases => Closed::Later(leases),
        }
    }
}

impl<T> Drop for LeaseOwner<T> {
    fn drop(&mut self) {
        // If `close` returns the payload, the payload is dropped here, after the lock is released.
        let _ended = self.close();
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.payload.as_ref().expect("a lease has its payload until it is dropped")
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        // This comes before the count is decremented: a thread that sees the count at 0 must hold the only reference.
        drop(self.payload.take());
        let ended = {
            let mut slot = locked(&self.slot);
            slot.leases -= 1;
            (slot.closed && slot.leases == 0).then(|| sole(slot.payload.take()))
        };
        // This comes after the lock is released: dropping the payload may take other locks.
        drop(ended);
    }
}

/// Ignores poisoning: no foreign code runs under this lock, so a panic cannot leave the counts half updated.
fn locked<T>(slot: &Mutex<LeaseSlot<T>>) -> MutexGuard<'_, LeaseSlot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sole<T>(payload: Option<Arc<T>>) -> T {
    let payload = payload.expect("the payload is taken once: by the first close or the last lease");
    Arc::try_unwrap(payload).ok().expect("every lease drops its reference before the count is decremented")
}
