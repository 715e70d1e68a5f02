//! Device memory that code outside the context also uses: buffers handed out and buffers taken in. The list of these
//! buffers keeps no buffer alive.
//!
//! Invariant: within a context a buffer is the memory of at most one storage. Taking in the same buffer again returns
//! the same storage, so that every tensor over the buffer sees each write, and the memory is counted once.

use std::sync::{Arc, Mutex, Weak};

use vramp_gpu::Buffer;

use super::{Context, lock};
use crate::ops::storage::Storage;

#[derive(Default)]
pub(super) struct ExternalMemory {
    /// The list is short: frames of a pipeline, and buffers of users' GPU code.
    known: Mutex<Vec<Weak<Storage>>>,
}

impl Context {
    /// Notes that code outside the context uses the memory of a storage.
    pub(crate) fn note_outside(&self, storage: &Arc<Storage>) {
        let mut known = lock(&self.inner().outside.known);
        known.retain(|one| one.strong_count() > 0);
        if !known.iter().any(|one| std::ptr::eq(one.as_ptr(), Arc::as_ptr(storage))) {
            known.push(Arc::downgrade(storage));
        }
    }

    /// Builds a value over a buffer: over the storage that already has the buffer as its memory, or over a new storage,
    /// which is then added to the list. Holds the lock meanwhile, so that no other thread takes in the same buffer.
    pub(crate) fn take_in<T>(
        &self,
        buffer: &Buffer,
        over_known: impl FnOnce(&Arc<Storage>) -> T,
        over_new: impl FnOnce() -> (Arc<Storage>, T),
    ) -> T {
        let mut known = lock(&self.inner().outside.known);
        known.retain(|one| one.strong_count() > 0);
        if let Some(storage) = known.iter().filter_map(Weak::upgrade).find(|storage| enter_if_in(storage, buffer)) {
            let made = over_known(&storage);
            storage.leave();
            return made;
        }
        let (storage, made) = over_new();
        known.push(Arc::downgrade(&storage));
        made
    }
}

/// If the buffer is the memory of a storage, adds a user to the storage, so that the storage does not end before the
/// new tensor exists. Returns whether a user was added.
fn enter_if_in(storage: &Storage, buffer: &Buffer) -> bool {
    if !storage.enter_if_used() {
        return false;
    }
    let is_in = storage.is_in(buffer);
    if !is_in {
        storage.leave();
    }
    is_in
}
