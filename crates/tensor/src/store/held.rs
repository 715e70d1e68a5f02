//! Something that one owner holds and others use for a while.
//!
//! Owns the payload, the count of who uses it now, and the moment at which it ends.
//! Does not know names or models: the ledger does.
//!
//! Always: the payload ends once, and only when its owner has closed it and the last lease is back; a lease that was
//! given keeps it alive; after it was closed nobody is given another one.

use std::ops::Deref;
use std::sync::PoisonError;

use super::sync::{Arc, Mutex, MutexGuard};

/// The owner's side. Dropping it closes it.
#[derive(Debug)]
pub struct LeaseOwner<T> {
    slot: Arc<Mutex<LeaseSlot<T>>>,
}

/// The use of a payload, until it is dropped.
#[derive(Debug)]
pub struct Lease<T> {
    slot: Arc<Mutex<LeaseSlot<T>>>,
    /// Gone only while the lease is being given back.
    payload: Option<Arc<T>>,
}

/// What closing came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Closed<T> {
    /// Nobody used it: here it is.
    Now(T),
    /// It ends with the last of this many leases.
    Later(usize),
    /// It had been closed before.
    Already,
}

#[derive(Debug)]
struct LeaseSlot<T> {
    /// Gone once it ended.
    payload: Option<Arc<T>>,
    leases: usize,
    closed: bool,
}

impl<T> LeaseOwner<T> {
    /// Holds a payload.
    pub fn new(payload: T) -> LeaseOwner<T> {
        let slot = LeaseSlot { payload: Some(Arc::new(payload)), leases: 0, closed: false };
        LeaseOwner { slot: Arc::new(Mutex::new(slot)) }
    }

    /// Lends the payload; none after it was closed.
    pub fn lease(&self) -> Option<Lease<T>> {
        let mut slot = locked(&self.slot);
        if slot.closed {
            return None;
        }
        slot.leases += 1;
        Some(Lease { slot: Arc::clone(&self.slot), payload: slot.payload.clone() })
    }

    /// How many leases are out.
    pub fn leases(&self) -> usize {
        locked(&self.slot).leases
    }

    /// Lends no more. The payload is handed over if nobody uses it, and otherwise ends with the last lease.
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
        // What is handed over is dropped here, with the lock given back.
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
        // Before the count goes down: whoever sees it at 0 holds the only one.
        drop(self.payload.take());
        let ended = {
            let mut slot = locked(&self.slot);
            slot.leases -= 1;
            (slot.closed && slot.leases == 0).then(|| sole(slot.payload.take()))
        };
        // With the lock given back: its own drop may well take locks.
        drop(ended);
    }
}

/// A thread that panicked in there left whole numbers behind: nothing in there calls anybody.
fn locked<T>(slot: &Mutex<LeaseSlot<T>>) -> MutexGuard<'_, LeaseSlot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sole<T>(payload: Option<Arc<T>>) -> T {
    let payload = payload.expect("it ends once: it was not closed, or this is the last lease");
    Arc::try_unwrap(payload).ok().expect("every lease let go of it before it was counted down")
}
