//! A resource that was lent, and how it comes back.
//!
//! Owns the counting of handles: the last one to be dropped gives the resource back to its pool.
//! Does not decide where it goes from there.
//!
//! Always: handles of one lending share one count; a resource whose pool is gone is dropped with its last handle.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::pool::{PoolState, lock};

/// Names a resource and one lending of it: neither number is ever used again, unlike an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// The resource, for as long as it exists.
    pub id: u64,
    /// Which lending of it this is, from 1 on.
    pub generation: u64,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.id, self.generation)
    }
}

/// What recordings need to know of the memory they are about.
pub trait Resource: Clone {
    /// Which memory, and which lending of it.
    fn tag(&self) -> Tag;
    /// Bytes that were asked for.
    fn bytes(&self) -> u64;
}

/// A resource that a pool has lent. Clones share it; it returns when the last is dropped and the device is done.
pub struct Pooled<T> {
    slot: Arc<PoolSlot<T>>,
    generation: u64,
    bytes: u64,
}

/// A resource in its pool. The pool and every handle hold the slot; `holders` counts the handles only.
pub(super) struct PoolSlot<T> {
    pub(super) value: T,
    pub(super) id: u64,
    pub(super) seat: usize,
    pub(super) holders: AtomicUsize,
    pub(super) used_until: AtomicU64,
    pub(super) note: AtomicU64,
    pub(super) pool: Weak<Mutex<PoolState<T>>>,
}

impl<T> Pooled<T> {
    /// The first handle of a lending; the pool has taken the slot out of what it may lend.
    pub(super) fn first(slot: Arc<PoolSlot<T>>, generation: u64, bytes: u64) -> Self {
        slot.note.store(0, Ordering::Relaxed);
        slot.holders.store(1, Ordering::Release);
        Self { slot, generation, bytes }
    }

    /// Which resource, and which lending of it.
    pub fn tag(&self) -> Tag {
        Tag { id: self.slot.id, generation: self.generation }
    }

    /// Bytes that were asked for; the resource may have more.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// One more handle of the same lending, as if so many bytes had been asked for.
    pub(crate) fn of_bytes(&self, bytes: u64) -> Self {
        let mut other = self.clone();
        other.bytes = bytes;
        other
    }

    /// Handles of this lending that exist now.
    pub fn holders(&self) -> usize {
        self.slot.holders.load(Ordering::Acquire)
    }

    /// Whether this is the only handle, so that editing in place disturbs nobody.
    ///
    /// Nobody else can make it false: a new handle would have to be cloned from this one.
    pub fn is_sole(&self) -> bool {
        self.holders() == 1
    }

    /// Notes something about this lending for the ledger: a number that means something to its holders only.
    pub fn note(&self, note: u64) {
        self.slot.note.store(note, Ordering::Relaxed);
    }

    /// Says that this submission uses the resource, which then is not lent again before it has finished.
    pub fn retire(&self, submission: u64) {
        self.slot.used_until.fetch_max(submission, Ordering::AcqRel);
    }
}

impl<T> Clone for Pooled<T> {
    fn clone(&self) -> Self {
        self.slot.holders.fetch_add(1, Ordering::Relaxed);
        Self { slot: Arc::clone(&self.slot), generation: self.generation, bytes: self.bytes }
    }
}

impl<T> Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.slot.value
    }
}

impl<T> Resource for Pooled<T> {
    fn tag(&self) -> Tag {
        Pooled::tag(self)
    }

    fn bytes(&self) -> u64 {
        Pooled::bytes(self)
    }
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Pooled<T> {
    fn as_ref(&self) -> &[u8] {
        self.slot.value.as_ref()
    }
}

impl<T> fmt::Debug for Pooled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({}, {} bytes)", self.tag(), self.bytes)
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        // As in `Arc`: what any holder did with the resource happens before it is lent again.
        if self.slot.holders.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if let Some(pool) = self.slot.pool.upgrade() {
            let given_up = lock(&pool).take_back(self.slot.seat);
            // Dropped after the lock: what dropping a resource does is not the pool's to know.
            drop(given_up);
        }
    }
}
