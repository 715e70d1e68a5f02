//! Memory of the device that somebody outside knows too: buffers that were handed out, and those that were taken in.
//!
//! Owns the list of the values in such memory, so that a buffer that comes in again is known.
//! Does not keep them alive.
//!
//! Always: in one context, a buffer is the memory of one storage at most: what is written through one tensor is seen
//! through every other, and counted once.

use std::sync::{Arc, Mutex, Weak};

use vramp_gpu::Buffer;

use super::{Context, lock};
use crate::ops::storage::Storage;

#[derive(Default)]
pub(super) struct ExternalMemory {
    /// Few: frames of a pipeline, and what GPU code of somebody's own works on.
    known: Mutex<Vec<Weak<Storage>>>,
}

impl Context {
    /// Notes that somebody outside has the memory of a storage.
    pub(crate) fn note_outside(&self, storage: &Arc<Storage>) {
        let mut known = lock(&self.inner().outside.known);
        known.retain(|one| one.strong_count() > 0);
        if !known.iter().any(|one| std::ptr::eq(one.as_ptr(), Arc::as_ptr(storage))) {
            known.push(Arc::downgrade(storage));
        }
    }

    /// Makes something over a buffer: over the storage whose memory it is already, or over a new one, which is known from
    /// then on. Nobody else takes that buffer in meanwhile.
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

/// Becomes a user of a storage whose memory a buffer is, so that it does not end before there is another; says whether it
/// is.
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
