//! The host frame pool: lends memory for frames by size and takes it back. A ledger records which handler requested
//! each frame's memory and which handler received the frame last.
//!
//! The plan decides how much memory there should be, and the user sets the budget. Both frame pools, on the host and on
//! the device, have a target a quarter above the planned memory. If an allocation would exceed the target, free memory
//! is released first, beginning with the longest unused. A stream of many sizes therefore needs the memory of its
//! largest size, not of all sizes together. Of each size, at most as many frames stay free as were planned, or 10 if
//! fewer were planned.
//!
//! Memory that is still lent when all handlers have stopped is listed in the report, with the handler that requested
//! it, the handler that received it last, and the frame for which it was lent. Each call notes its handler in the
//! frames that the handler receives, with one store instruction per frame.
//!
//! Invariants: the same memory is never lent to two frames at once. Bytes never exceed the budget. The memory that was
//! returned last is lent first, because it is still in the cache. Lending and returning existing memory allocates
//! nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::frame::host_memory::HostMemory;
use crate::frame::{Frame, FrameStore, Meta};
use crate::memory::no_memory::NoMemory;

/// Number of free frames that are kept per size, unless more were planned. A frame that is returned above this number
/// is freed at once.
const KEEP_EACH: usize = 10;

/// Bytes that are left to the rest of the process when memory is reserved ahead.
const HEADROOM_BYTES: u64 = 512 << 20;

/// Lends memory for frames. Clones share the memory; each clone lends for its own owner in the ledger.
#[derive(Debug, Clone)]
pub struct FramePool {
    shared: Arc<PoolShared>,
    serves: Owner,
    frame: u64,
}

/// A client of the pool, by number. Names are only looked up for reports. No other pool has a client with the same
/// number, because a program may forward a frame to another pipeline, which records its own clients in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner(pub(crate) u32);

impl Owner {
    /// The bit of owners outside the pipeline.
    const OUTSIDE: u32 = 1 << 31;

    /// Whether this owner replaces the owner `before` in the ledger. A frame that the program holds stays the program's,
    /// whatever handlers of other branches do with it.
    pub(crate) fn replaces(self, before: u32) -> bool {
        self.0 & Owner::OUTSIDE != 0 || before & Owner::OUTSIDE == 0
    }
}

/// Why no memory was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The budget does not allow the loan now, but may allow it after frames are returned.
    #[error("{needed} bytes are needed and {available} of {budget} are free; {lent} frames are held")]
    OverBudget { needed: u64, available: u64, budget: u64, lent: u64 },
    /// The system refuses the memory now, but the memory of returned frames may be used later.
    #[error("{needed} bytes of host memory are needed, and the system refuses them; {lent} frames are held")]
    Scarce { needed: u64, budget: u64, lent: u64 },
    /// The system refuses the memory, all free memory was released, and no held frame will be returned.
    #[error(transparent)]
    System(#[from] NoMemory),
}

impl PoolError {
    /// Bytes needed, available and in the budget, if waiting may help.
    pub(crate) fn missing(&self) -> Option<(u64, u64, u64)> {
        match *self {
            PoolError::OverBudget { needed, available, budget, .. } => Some((needed, available, budget)),
            PoolError::Scarce { needed, budget, .. } => Some((needed, 0, budget)),
            PoolError::System(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    pub budget_bytes: u64,
    pub lent_bytes: u64,
    /// Number of frames that are lent.
    pub lent: u64,
    /// Number of free frames.
    pub pooled: u64,
    /// Free bytes, waiting to be lent.
    pub pooled_bytes: u64,
    /// Peak of lent and free bytes together.
    pub peak_bytes: u64,
    pub lent_peak_bytes: u64,
    /// Frames lent from existing memory.
    pub hits: u64,
    /// Frames for which memory was allocated.
    pub misses: u64,
    /// Buffers freed to make room for other sizes, or because enough buffers of their size were free.
    pub trimmed: u64,
    /// Copies made for editing.
    pub copies: u64,
}

/// A held frame, as recorded in the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFrame {
    /// The handler that requested the frame's memory.
    pub owner: Arc<str>,
    /// The handler that received the frame last.
    pub last: Arc<str>,
    pub bytes: u64,
    /// The number of the frame for which the memory was lent.
    pub since_frame: u64,
    /// Whether the frame is now in the program's hands, outside the pipeline.
    pub outside: bool,
}

/// A client of the pool.
#[derive(Debug, Clone)]
struct OwnerRow {
    name: Arc<str>,
    /// True for the program that runs the pipeline.
    outside: bool,
}

#[derive(Debug)]
struct PoolShared {
    budget_bytes: u64,
    inner: Mutex<FramePoolState>,
    owners: Mutex<BTreeMap<u32, OwnerRow>>,
    counts: Arc<PoolCounts>,
    /// True if clients no longer leave memory to downstream nodes, because waiting did not help.
    pressed: AtomicBool,
}

#[derive(Debug, Default)]
struct FramePoolState {
    shelves: BTreeMap<usize, Arc<SizeShelf>>,
    /// Above this many bytes, free memory is released before more is allocated.
    aim_bytes: Option<u64>,
    /// Added to the target, for loans that the plan does not foresee.
    unplanned_bytes: u64,
    peak_bytes: u64,
    hits: u64,
    misses: u64,
    copies: u64,
    clock: u64,
}

/// Counters that change when frames are returned, outside the pool's lock.
#[derive(Debug, Default)]
struct PoolCounts {
    made_bytes: AtomicU64,
    lent_bytes: AtomicU64,
    lent_peak_bytes: AtomicU64,
    trimmed: AtomicU64,
}

/// The memory of one size.
#[derive(Debug)]
pub(crate) struct SizeShelf {
    bytes: usize,
    rows: Mutex<ShelfRows>,
    last_used: AtomicU64,
    counts: Arc<PoolCounts>,
}

#[derive(Debug)]
struct ShelfRows {
    stores: Vec<Option<Arc<FrameStore>>>,
    /// Indices of free stores, the last returned at the end.
    free: Vec<usize>,
    /// Maximum length of `free`.
    keep: usize,
}

impl SizeShelf {
    fn rows(&self) -> MutexGuard<'_, ShelfRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take_back(&self, index: usize) {
        self.counts.lent_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        let mut rows = self.rows();
        rows.free.push(index);
        let spare = (rows.free.len() > rows.keep).then(|| self.evict(&mut rows));
        drop(rows);
        drop(spare);
    }

    /// Removes a free store. The caller drops it, outside the lock.
    fn evict(&self, rows: &mut ShelfRows) -> Option<Arc<FrameStore>> {
        // The bottom of the stack has been free longest.
        let index = (!rows.free.is_empty()).then(|| rows.free.remove(0))?;
        self.counts.made_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        self.counts.trimmed.fetch_add(1, Ordering::Relaxed);
        rows.stores[index].take()
    }
}

impl FramePool {
    /// A pool that never holds more than this many bytes.
    pub fn new(budget_bytes: u64) -> FramePool {
        let shared = PoolShared {
            budget_bytes,
            inner: Mutex::default(),
            owners: Mutex::default(),
            counts: Arc::default(),
            pressed: AtomicBool::new(false),
        };
        FramePool { shared: Arc::new(shared), serves: Owner::default(), frame: 0 }
    }

    /// Adds a client to the ledger.
    pub fn enter(&self, name: &str) -> Owner {
        self.enter_row(OwnerRow { name: name.into(), outside: false })
    }

    /// Adds the program that runs the pipeline to the ledger, as the holder of the frames of this handler. Frames that
    /// the program holds after the run are not leaks.
    pub fn enter_outside(&self, name: &str) -> Owner {
        self.enter_row(OwnerRow { name: name.into(), outside: true })
    }

    fn enter_row(&self, row: OwnerRow) -> Owner {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) & !Owner::OUTSIDE;
        let number = if row.outside { number | Owner::OUTSIDE } else { number };
        self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(number, row);
        Owner(number)
    }

    /// Sets the owner and the frame number under which the following loans are recorded.
    pub fn serve(&mut self, owner: Owner, frame: u64) {
        (self.serves, self.frame) = (owner, frame);
    }

    /// Sets the target. Above the target, free memory is released before more is allocated.
    pub fn aim(&self, bytes: u64) {
        self.lock().aim_bytes = Some(bytes);
    }

    /// Lends memory for a frame. The frame's bytes are undefined.
    pub fn lend(&self, meta: Meta) -> Result<Frame, PoolError> {
        self.lend_leaving(meta, 0)
    }

    /// As [`FramePool::lend`], for a loan that the plan does not foresee. The target then covers the planned memory and
    /// everything that is lent at the same time.
    pub(crate) fn lend_unplanned(&self, meta: Meta) -> Result<Frame, PoolError> {
        let lent = self.shared.counts.lent_bytes.load(Ordering::Relaxed).saturating_add(meta.bytes());
        {
            let mut inner = self.lock();
            inner.unplanned_bytes = inner.unplanned_bytes.max(lent);
        }
        self.lend(meta)
    }

    /// As [`FramePool::lend`], but only if this many bytes can still be lent afterwards.
    pub(crate) fn lend_leaving(&self, meta: Meta, leave_bytes: u64) -> Result<Frame, PoolError> {
        let needed = meta.bytes();
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX);
        let mut inner = self.lock();
        let PoolShared { budget_bytes, counts, .. } = &*self.shared;
        if leave_bytes > 0 && !self.shared.pressed.load(Ordering::Relaxed) {
            let others = counts.lent_bytes.load(Ordering::Relaxed).saturating_add(leave_bytes);
            if others.saturating_add(needed) > *budget_bytes {
                return Err(self.refusal(&inner, needed, budget_bytes.saturating_sub(others)));
            }
        }
        inner.clock += 1;
        let shelf = inner.shelf(bytes, counts);
        shelf.last_used.store(inner.clock, Ordering::Relaxed);
        let found = {
            let mut rows = shelf.rows();
            rows.free.pop().and_then(|index| rows.stores[index].clone())
        };
        let store = match found {
            Some(store) => {
                inner.hits += 1;
                store
            }
            None => {
                self.make_room(&inner, needed)?;
                inner.misses += 1;
                let made = inner.make(&shelf);
                // The system may allow the allocation after free memory of other sizes is released.
                let made = made.or_else(|_| {
                    inner.evict_all();
                    inner.make(&shelf)
                });
                made.map_err(|error| match inner.lent_frames() {
                    lent if lent > 0 && !self.shared.pressed.load(Ordering::Relaxed) => {
                        PoolError::Scarce { needed, budget: *budget_bytes, lent }
                    }
                    _ => PoolError::System(error),
                })?
            }
        };
        store.owner.store(self.serves.0, Ordering::Relaxed);
        store.last.store(self.serves.0, Ordering::Relaxed);
        store.since_frame.store(self.frame, Ordering::Relaxed);
        let lent = counts.lent_bytes.fetch_add(needed, Ordering::Relaxed) + needed;
        counts.lent_peak_bytes.fetch_max(lent, Ordering::Relaxed);
        Ok(Frame::lent(meta, store))
    }

    /// Allocates and keeps memory for this many frames of a size, as far as the budget allows, so that no memory is
    /// allocated while frames are processed. Pages that are never touched take no physical memory.
    pub fn reserve(&self, frame_bytes: u64, count: usize) {
        let Ok(bytes) = usize::try_from(frame_bytes) else { return };
        let mut inner = self.lock();
        let shelf = inner.shelf(bytes, &self.shared.counts);
        {
            let mut rows = shelf.rows();
            rows.keep = rows.keep.max(count);
        }
        let there = shelf.rows().stores.iter().flatten().count();
        for _ in there..count {
            let made = self.shared.counts.made_bytes.load(Ordering::Relaxed);
            if made.saturating_add(frame_bytes) > self.shared.budget_bytes {
                break;
            }
            // Memory that the system refuses here is requested again when a frame needs it. Some memory is left to
            // threads and codecs.
            if NoMemory::probe(frame_bytes.saturating_mul(2).saturating_add(HEADROOM_BYTES)).is_err() {
                break;
            }
            let Ok(store) = inner.make(&shelf) else { break };
            inner.misses += 1;
            shelf.rows().free.push(store.index);
        }
    }

    /// Lets at least this many frames of a size stay free.
    pub(crate) fn keep_free(&self, bytes: usize, count: usize) {
        let shelf = self.lock().shelf(bytes, &self.shared.counts);
        let mut rows = shelf.rows();
        rows.keep = rows.keep.max(count);
    }

    /// A copy of a shared frame, for editing.
    pub(crate) fn copy(&self, frame: &Frame) -> Result<Frame, PoolError> {
        let copy = self.lend(*frame.meta())?;
        copy.write().copy_from_slice(&frame.bytes());
        self.lock().copies += 1;
        Ok(copy)
    }

    pub fn stats(&self) -> PoolStats {
        let inner = self.lock();
        let counts = &self.shared.counts;
        let (pooled, pooled_bytes) = inner.pooled();
        PoolStats {
            budget_bytes: self.shared.budget_bytes,
            pooled,
            pooled_bytes,
            lent_bytes: counts.made_bytes.load(Ordering::Relaxed).saturating_sub(pooled_bytes),
            lent: inner.lent_frames(),
            peak_bytes: inner.peak_bytes,
            lent_peak_bytes: counts.lent_peak_bytes.load(Ordering::Relaxed),
            hits: inner.hits,
            misses: inner.misses,
            trimmed: counts.trimmed.load(Ordering::Relaxed),
            copies: inner.copies,
        }
    }

    /// Copies made for editing.
    pub(crate) fn copies(&self) -> u64 {
        self.lock().copies
    }

    /// All held frames, the oldest first. Frames that are held after a run are leaks.
    pub fn held(&self) -> Vec<HeldFrame> {
        let inner = self.lock();
        let owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = OwnerRow { name: "unknown".into(), outside: false };
        let elsewhere = OwnerRow { name: "another pipeline".into(), outside: true };
        let row = |number: &AtomicU32| match number.load(Ordering::Relaxed) {
            0 => &unknown,
            number => owners.get(&number).unwrap_or(&elsewhere),
        };
        let mut held = Vec::new();
        for shelf in inner.shelves.values() {
            let rows = shelf.rows();
            let lent = rows.stores.iter().flatten().filter(|store| !rows.free.contains(&store.index));
            held.extend(lent.map(|store| HeldFrame {
                owner: Arc::clone(&row(&store.owner).name),
                last: Arc::clone(&row(&store.last).name),
                outside: row(&store.last).outside,
                bytes: shelf.bytes as u64,
                since_frame: store.since_frame.load(Ordering::Relaxed),
            }));
        }
        held.sort_by(|a, b| (a.since_frame, &a.owner).cmp(&(b.since_frame, &b.owner)));
        held
    }

    /// The name of a client in the ledger, and whether the client is outside the pipeline.
    pub(crate) fn name_of(&self, number: u64) -> Option<(Arc<str>, bool)> {
        let owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let row = owners.get(&u32::try_from(number).ok()?)?;
        Some((Arc::clone(&row.name), row.outside))
    }

    /// Sets whether clients may take everything, without leaving memory to downstream nodes.
    pub(crate) fn press(&self, pressed: bool) {
        self.shared.pressed.store(pressed, Ordering::Relaxed);
    }

    /// Frees all memory that is not lent.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.evict_all();
        inner.shelves.retain(|_, shelf| shelf.rows().stores.iter().any(Option::is_some));
    }

    fn lock(&self) -> MutexGuard<'_, FramePoolState> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees memory of other sizes, the longest unused first, until this many bytes fit the target. The budget is never
    /// exceeded; the target may be exceeded if nothing is free.
    fn make_room(&self, inner: &FramePoolState, needed: u64) -> Result<(), PoolError> {
        let budget = self.shared.budget_bytes;
        let made = || self.shared.counts.made_bytes.load(Ordering::Relaxed);
        let aim = inner.aim_bytes.map_or(budget, |aim| aim.saturating_add(inner.unplanned_bytes).min(budget));
        while made().saturating_add(needed) > aim {
            let unused = inner.shelves.values().filter(|shelf| !shelf.rows().free.is_empty());
            match unused.min_by_key(|shelf| shelf.last_used.load(Ordering::Relaxed)) {
                Some(shelf) => {
                    let evicted = shelf.evict(&mut shelf.rows());
                    drop(evicted);
                }
                None if made().saturating_add(needed) <= budget => break,
                None => return Err(self.refusal(inner, needed, budget.saturating_sub(made()))),
            }
        }
        Ok(())
    }

    fn refusal(&self, inner: &FramePoolState, needed: u64, available: u64) -> PoolError {
        PoolError::OverBudget { needed, available, budget: self.shared.budget_bytes, lent: inner.lent_frames() }
    }
}

impl FramePoolState {
    fn shelf(&mut self, bytes: usize, counts: &Arc<PoolCounts>) -> Arc<SizeShelf> {
        let rows = ShelfRows { stores: Vec::new(), free: Vec::new(), keep: KEEP_EACH };
        let make = || {
            let (rows, last_used) = (Mutex::new(rows), AtomicU64::new(0));
            Arc::new(SizeShelf { bytes, rows, last_used, counts: Arc::clone(counts) })
        };
        Arc::clone(self.shelves.entry(bytes).or_insert_with(make))
    }

    fn evict_all(&self) {
        for shelf in self.shelves.values() {
            let mut rows = shelf.rows();
            while shelf.evict(&mut rows).is_some() {}
        }
    }

    /// Allocates memory for one more frame; the caller has checked the budget.
    fn make(&mut self, shelf: &Arc<SizeShelf>) -> Result<Arc<FrameStore>, NoMemory> {
        let bytes = HostMemory::zeroed(shelf.bytes)?;
        let mut rows = shelf.rows();
        let index = rows.stores.iter().position(Option::is_none).unwrap_or(rows.stores.len());
        let store = Arc::new(FrameStore {
            shelf: Arc::downgrade(shelf),
            index,
            holders: AtomicU32::new(0),
            generation: AtomicU64::new(0),
            owner: AtomicU32::new(0),
            last: AtomicU32::new(0),
            since_frame: AtomicU64::new(0),
            bytes: RwLock::new(bytes),
        });
        if index == rows.stores.len() {
            rows.stores.push(None);
            // Reserves an entry for every store, because returning a frame must not allocate.
            let missing = rows.stores.len() - rows.free.len();
            rows.free.reserve(missing);
        }
        rows.stores[index] = Some(Arc::clone(&store));
        drop(rows);
        let made = shelf.counts.made_bytes.fetch_add(shelf.bytes as u64, Ordering::Relaxed) + shelf.bytes as u64;
        self.peak_bytes = self.peak_bytes.max(made);
        Ok(store)
    }

    /// Number of free frames, and their bytes.
    fn pooled(&self) -> (u64, u64) {
        let free = self.shelves.values().map(|shelf| (shelf.rows().free.len() as u64, shelf.bytes as u64));
        free.fold((0, 0), |(frames, bytes), (free, each)| (frames + free, bytes + free * each))
    }

    fn lent_frames(&self) -> u64 {
        let lent = |shelf: &Arc<SizeShelf>| {
            let rows = shelf.rows();
            (rows.stores.iter().flatten().count() - rows.free.len()) as u64
        };
        self.shelves.values().map(lent).sum()
    }
}
