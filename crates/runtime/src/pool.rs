//! Pools: lend memory for frames and take it back.
//!
//! Owns the memory of all frames of one pipeline in host memory, by size, and the count of it.
//! Does not decide how much there should be: that comes with the plan, as a budget.
//!
//! Always: what is lent is never lent twice; bytes never exceed the budget; what was returned last is lent first, since
//! it is still in the cache; memory of a size that is no longer asked for makes room for others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::frame::{Frame, Meta, Store};

/// Lends memory for frames.
#[derive(Debug, Clone)]
pub struct HostPool {
    inner: Arc<Mutex<Inner>>,
    budget_bytes: u64,
}

/// Why no memory was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{needed} bytes are needed and {available} of {budget} are free; {lent} frames are held")]
pub struct PoolError {
    /// Bytes asked for.
    pub needed: u64,
    /// Bytes that could be had.
    pub available: u64,
    /// Bytes in all.
    pub budget: u64,
    /// Frames that somebody holds.
    pub lent: u64,
}

/// What a pool has done and has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Bytes of frames that somebody holds.
    pub lent_bytes: u64,
    /// Frames that somebody holds.
    pub lent: u64,
    /// Bytes of frames that wait to be lent.
    pub pooled_bytes: u64,
    /// The most bytes there ever were.
    pub peak_bytes: u64,
    /// Frames lent from what was there.
    pub hits: u64,
    /// Frames for which memory was made.
    pub misses: u64,
    /// Memory given up for other sizes.
    pub trimmed: u64,
    /// Copies made for editing.
    pub copies: u64,
}

#[derive(Debug, Default)]
struct Inner {
    shelves: BTreeMap<usize, Arc<Shelf>>,
    stats: PoolStats,
    clock: u64,
}

/// Memory of one size.
#[derive(Debug)]
pub(crate) struct Shelf {
    bytes: usize,
    rows: Mutex<Rows>,
    last_used: AtomicU64,
}

#[derive(Debug, Default)]
struct Rows {
    stores: Vec<Option<Arc<Store>>>,
    /// Indices of stores that nobody holds, the last returned at the end.
    free: Vec<usize>,
}

impl Shelf {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_back(&self, index: usize) {
        self.rows().free.push(index);
    }
}

impl HostPool {
    /// A pool that never holds more than this.
    pub fn new(budget_bytes: u64) -> HostPool {
        HostPool { inner: Arc::default(), budget_bytes }
    }

    /// Lends memory for a frame. Its bytes are whatever was there before.
    pub fn lend(&self, meta: Meta) -> Result<Frame, PoolError> {
        let bytes = usize::try_from(meta.format.frame_bytes(meta.size)).unwrap_or(usize::MAX);
        let mut inner = self.lock();
        inner.clock += 1;
        let shelf = inner.shelf(bytes);
        shelf.last_used.store(inner.clock, Ordering::Relaxed);
        let found = {
            let mut rows = shelf.rows();
            rows.free.pop().and_then(|index| rows.stores[index].clone())
        };
        if let Some(store) = found {
            inner.stats.hits += 1;
            return Ok(Frame::lent(meta, store));
        }
        self.make_room(&mut inner, bytes)?;
        inner.stats.misses += 1;
        let mut rows = shelf.rows();
        let index = rows.stores.iter().position(Option::is_none).unwrap_or(rows.stores.len());
        let store = Arc::new(Store {
            shelf: Arc::downgrade(&shelf),
            index,
            holders: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            bytes: RwLock::new(vec![0; bytes].into_boxed_slice()),
        });
        if index == rows.stores.len() {
            rows.stores.push(None);
            // Returning a frame must not allocate: there is a place for every store.
            let places = rows.stores.len() - rows.free.len();
            rows.free.reserve(places);
        }
        rows.stores[index] = Some(Arc::clone(&store));
        drop(rows);
        let held = inner.bytes();
        inner.stats.peak_bytes = inner.stats.peak_bytes.max(held);
        Ok(Frame::lent(meta, store))
    }

    /// Makes memory for this many frames of a kind, as far as the budget goes, so that none has to be made while frames
    /// run. Memory that is never lent is never touched, and the system does not have to find it.
    pub fn reserve(&self, meta: Meta, count: usize) {
        let frames: Vec<Frame> = (0..count).map_while(|_| self.lend(meta).ok()).collect();
        drop(frames);
    }

    /// A copy of a frame, for somebody who wants to edit what others hold too.
    pub(crate) fn copy(&self, frame: &Frame) -> Result<Frame, PoolError> {
        let copy = self.lend(*frame.meta())?;
        copy.write().copy_from_slice(&frame.bytes());
        self.lock().stats.copies += 1;
        Ok(copy)
    }

    /// What it has done and has.
    pub fn stats(&self) -> PoolStats {
        let inner = self.lock();
        let pooled = inner.pooled_bytes();
        PoolStats { pooled_bytes: pooled, lent_bytes: inner.bytes() - pooled, lent: inner.lent_frames(), ..inner.stats }
    }

    /// Gives up all memory that nobody holds.
    pub fn clear(&self) {
        let mut inner = self.lock();
        for shelf in inner.shelves.values() {
            let mut rows = shelf.rows();
            while let Some(index) = rows.free.pop() {
                rows.stores[index] = None;
            }
        }
        inner.shelves.retain(|_, shelf| shelf.rows().stores.iter().any(Option::is_some));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up memory of other sizes, the longest unused first, until this many bytes fit the budget.
    fn make_room(&self, inner: &mut Inner, bytes: usize) -> Result<(), PoolError> {
        let needed = bytes as u64;
        while inner.bytes().saturating_add(needed) > self.budget_bytes {
            let oldest = inner
                .shelves
                .values()
                .filter(|shelf| !shelf.rows().free.is_empty())
                .min_by_key(|shelf| shelf.last_used.load(Ordering::Relaxed))
                .cloned();
            let Some(shelf) = oldest else {
                return Err(PoolError {
                    needed,
                    available: self.budget_bytes.saturating_sub(inner.bytes()),
                    budget: self.budget_bytes,
                    lent: inner.lent_frames(),
                });
            };
            let mut rows = shelf.rows();
            if let Some(index) = rows.free.pop() {
                rows.stores[index] = None;
            }
            inner.stats.trimmed += 1;
        }
        Ok(())
    }
}

impl Inner {
    fn shelf(&mut self, bytes: usize) -> Arc<Shelf> {
        let make = || Arc::new(Shelf { bytes, rows: Mutex::default(), last_used: AtomicU64::new(0) });
        Arc::clone(self.shelves.entry(bytes).or_insert_with(make))
    }

    fn bytes(&self) -> u64 {
        let held = |shelf: &Arc<Shelf>| shelf.rows().stores.iter().flatten().count() as u64 * shelf.bytes as u64;
        self.shelves.values().map(held).sum()
    }

    fn pooled_bytes(&self) -> u64 {
        self.shelves.values().map(|shelf| shelf.rows().free.len() as u64 * shelf.bytes as u64).sum()
    }

    fn lent_frames(&self) -> u64 {
        let lent = |shelf: &Arc<Shelf>| {
            let rows = shelf.rows();
            (rows.stores.iter().flatten().count() - rows.free.len()) as u64
        };
        self.shelves.values().map(lent).sum()
    }
}
