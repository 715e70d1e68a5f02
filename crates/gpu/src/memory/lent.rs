//! A lent resource, and how the resource returns to its pool.
//!
//! Dropping the last handle returns the resource; [`Pool`](super::Pool) decides what happens next. All handles of one
//! lending share one count of handles. A resource whose pool no longer exists is dropped with its last handle.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::pool::{PoolState, lock};

/// Identifies a resource and one lending of that resource. Unlike an address, a tag is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag {
    /// Number of the resource, the same for all its lendings.
    pub id: u64,
    /// Number of the lending, counted from 1 for each resource.
    pub generation: u64,
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.id, self.generation)
    }
}

/// The properties of memory that recordings need.
pub trait Resource: Clone {
    fn tag(&self) -> Tag;
    /// The requested size.
    fn bytes(&self) -> u64;
}

/// A handle of a lent resource. Clones are handles of the same resource, which returns to the pool after the last
/// handle is dropped and the device has finished with the resource.
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
    /// The seat in the pool.
    pub(super) fn seat(&self) -> usize {
        self.slot.seat
    }

    /// The first handle of a lending. The pool has already removed the slot from its free slots.
    pub(super) fn first(slot: Arc<PoolSlot<T>>, generation: u64, bytes: u64) -> Self {
        slot.note.store(0, Ordering::Relaxed);
        slot.holders.store(1, Ordering::Release);
        Self { slot, generation, bytes }
    }

    pub fn tag(&self) -> Tag {
        Tag { id: self.slot.id, generation: self.generation }
    }

    /// The requested size; the resource may be larger.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Another handle of the same lending, with another visible size.
    pub(crate) fn of_bytes(&self, bytes: u64) -> Self {
        let mut other = self.clone();
        other.bytes = bytes;
        other
    }

    /// Number of handles of this lending.
    pub fn holders(&self) -> usize {
        self.slot.holders.load(Ordering::Acquire)
    }

    /// Whether this is the only handle, so that the holder may edit the resource in place.
    ///
    /// No other thread can change a true answer, because a new handle would have to be cloned from this handle.
    pub fn is_sole(&self) -> bool {
        self.holders() == 1
    }

    /// Stores a number for the ledger. Only the holders know the meaning of the number.
    pub fn note(&self, note: u64) {
        self.slot.note.store(note, Ordering::Relaxed);
    }

    /// The number that `note` stored last.
    pub fn noted(&self) -> u64 {
        self.slot.note.load(Ordering::Relaxed)
    }

    /// Marks the resource as used by this submission. The resource is not lent again before the submission has
    /// finished.
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
        // The ordering is that of `Arc`: everything that a holder did with the resource happens before the resource is
        // lent again.
        if self.slot.holders.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        if let Some(pool) = self.slot.pool.upgrade() {
            let dropped = lock(&pool).take_back(self.slot.seat);
            // The resource is dropped after the lock is released, because dropping a resource may run any code.
            drop(dropped);
        }
    }
}
