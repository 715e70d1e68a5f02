//! Frames: a description and lent memory, passed by reference.
//!
//! Owns what travels with a frame and who may look at or change its bytes.
//! Does not own memory: a pool lends it and gets it back when the last holder lets go.
//!
//! Always: bytes never change while somebody else holds the frame; a copy that editing needs is made by the pool and
//! counted there.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use vramp_plan::{Format, Size};

use crate::pool::{HostPool, PoolError, Shelf};

/// What is known of a frame besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// When it is to be shown, in nanoseconds from the start.
    pub pts_ns: i64,
    /// Its number, counted by its source.
    pub number: u64,
    /// How its pixels are stored.
    pub format: Format,
    /// Its width and height.
    pub size: Size,
}

/// Memory of one frame, and who holds it.
#[derive(Debug)]
pub(crate) struct Store {
    /// Where it belongs; gone when its pool is, and then it is simply freed.
    pub(crate) shelf: Weak<Shelf>,
    pub(crate) index: usize,
    /// How many frames refer to it. At none it goes back to its shelf.
    pub(crate) holders: AtomicU32,
    /// How often it was lent: tells one frame in this memory from the next.
    pub(crate) generation: AtomicU64,
    pub(crate) bytes: RwLock<Box<[u8]>>,
}

/// A frame in host memory. Cloning it passes a reference on.
#[derive(Debug)]
pub struct Frame {
    meta: Meta,
    generation: u64,
    store: Arc<Store>,
}

/// Why a frame could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// Others hold it too, and there is no memory for a copy.
    #[error("frame {number} is shared and needs a copy to be edited: {error}")]
    NoCopy {
        /// The frame.
        number: u64,
        /// What the pool said.
        error: PoolError,
    },
}

impl Frame {
    /// A frame in memory that nobody else holds.
    pub(crate) fn lent(meta: Meta, store: Arc<Store>) -> Frame {
        let generation = store.generation.fetch_add(1, Ordering::Relaxed) + 1;
        store.holders.store(1, Ordering::Relaxed);
        Frame { meta, generation, store }
    }

    /// What is known of it.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Describes it anew, for a handler that passes it on under another number or time.
    pub fn set_meta(&mut self, meta: Meta) {
        self.meta = meta;
    }

    /// Identifies these bytes among all that this memory has held and will hold.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether both are the same bytes in the same place.
    pub fn is_same(&self, other: &Frame) -> bool {
        Arc::ptr_eq(&self.store, &other.store) && self.generation == other.generation
    }

    /// Its bytes, for reading.
    pub fn bytes(&self) -> RwLockReadGuard<'_, Box<[u8]>> {
        // A handler that panicked while writing leaves whole bytes behind: there is nothing half-made to protect.
        self.store.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody else holds it.
    pub fn is_sole(&self) -> bool {
        // Acquire: what the last other holder read, it read before it let go.
        self.store.holders.load(Ordering::Acquire) == 1
    }

    /// Its bytes, for writing: the same memory where nobody else holds it, a copy from the pool otherwise.
    pub fn edit(&mut self, pool: &HostPool) -> Result<RwLockWriteGuard<'_, Box<[u8]>>, EditError> {
        if !self.is_sole() {
            let number = self.meta.number;
            let copy = pool.copy(self).map_err(|error| EditError::NoCopy { number, error })?;
            *self = copy;
        }
        Ok(self.write())
    }

    /// Its bytes, for the one who has just been lent them.
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Box<[u8]>> {
        self.store.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a frame that was just lent and that nobody else has seen; none where somebody has.
    pub fn fill(&mut self) -> Option<RwLockWriteGuard<'_, Box<[u8]>>> {
        self.is_sole().then(|| self.write())
    }
}

impl Clone for Frame {
    fn clone(&self) -> Frame {
        self.store.holders.fetch_add(1, Ordering::Relaxed);
        Frame { meta: self.meta, generation: self.generation, store: Arc::clone(&self.store) }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Release what this holder read; the last one acquires it all before the memory is lent again.
        if self.store.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(shelf) = self.store.shelf.upgrade()
        {
            shelf.take_back(self.store.index);
        }
    }
}
