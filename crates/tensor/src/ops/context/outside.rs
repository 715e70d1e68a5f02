//! Device memory that code outside the context also uses: buffers handed out and buffers taken in. The list keeps
//! nothing alive.
//!
//! Invariant: within a context a buffer is the memory of at most one storage. Taking in the same buffer again returns
//! the same memory, so that every tensor over it sees each write, and it is counted once.

use std::sync::{Arc, Mutex, Weak};

use vramp_gpu::Buffer;

use super::{Context, lock};
use crate::ops::storage::Storage;

#[derive(Default)]
pub(super) struct ExternalMemory {
    /// A short list: frames of a pipeline, and buffers of users' GPU code.
    known: Mutex<Vec<Weak<Storage>>>,
}

impl Context {
    /// Notes that code outside has the memory of a storage.
    pub(crate) fn note_outside(&self, storage: &Arc<Storage>) {
        let mut known = lock(&self.inner().outside.known);
        known.retain(|one| one.strong_count() > 0);
        if !known.iter().any(|one| std::ptr::eq(one.as_ptr(), Arc::as_ptr(storage))) {
            known.push(Arc::downgrade(storage));
        }
    }

    /// Builds something over a buffer: over the storage that already owns its memory, or over a new one, which is known
    /// from then on. Holds the lock meanwhile, so that no other thread takes in the same buffer.
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

/// Becomes a user of a storage if the buffer is its memory, so that the storage does not end before the new tensor
/// exists. Returns whether it is.
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
