//! Pools: lend memory for frames and take it back.
//!
//! Owns the memory of all frames of one pipeline in host memory, by size, the count of it, and the ledger of who made
//! what and had it last.
//! Does not decide how much there should be: that comes with the plan, and a budget from the user.
//!
//! Always: what is lent is never lent twice; bytes never exceed the budget; what was returned last is lent first, since
//! it is still in the cache; memory of a size that is no longer asked for makes room for others, the longest unused
//! first; lending and returning what is there allocates nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::frame::host_memory::HostMemory;
use crate::frame::{Frame, FrameStore, Meta};
use crate::memory::no_memory::NoMemory;

/// Frames of one size that stay free at least, however few were planned. Beyond, and beyond the plan, what comes back is
/// given up at once.
const KEEP_EACH: usize = 10;

/// What is left to everything else where memory for frames is made ahead.
const HEADROOM_BYTES: u64 = 512 << 20;

/// Lends memory for frames. Clones lend from the same memory, each in the name of whom it serves.
#[derive(Debug, Clone)]
pub struct FramePool {
    shared: Arc<PoolShared>,
    serves: Owner,
    frame: u64,
}

/// Somebody who asks a pool for memory, by number: names are only looked up for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Owner(pub(crate) u32);

/// Why no memory was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The budget does not allow it now. Frames that are given back help.
    #[error("{needed} bytes are needed and {available} of {budget} are free; {lent} frames are held")]
    OverBudget {
        /// Bytes asked for.
        needed: u64,
        /// Bytes that could be had.
        available: u64,
        /// Bytes in all.
        budget: u64,
        /// Frames that are held.
        lent: u64,
    },
    /// The system has none now. Frames that are given back help.
    #[error("{needed} bytes of host memory are needed, and the system does not give them; frames held: {lent}")]
    Scarce {
        /// Bytes asked for.
        needed: u64,
        /// Bytes that the budget would allow in all.
        budget: u64,
        /// Frames that are held.
        lent: u64,
    },
    /// The system has none, everything that lay free was given up, and nothing that is held will come back.
    #[error(transparent)]
    System(#[from] NoMemory),
}

impl PoolError {
    /// Bytes needed, available and in all, if waiting may help.
    pub(crate) fn missing(&self) -> Option<(u64, u64, u64)> {
        match *self {
            PoolError::OverBudget { needed, available, budget, .. } => Some((needed, available, budget)),
            PoolError::Scarce { needed, budget, .. } => Some((needed, 0, budget)),
            PoolError::System(_) => None,
        }
    }
}

/// What a pool has done and has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// The most bytes it may have.
    pub budget_bytes: u64,
    /// Bytes of frames that somebody holds.
    pub lent_bytes: u64,
    /// Frames that somebody holds.
    pub lent: u64,
    /// Bytes of frames that wait to be lent.
    pub pooled_bytes: u64,
    /// The most bytes there ever were.
    pub peak_bytes: u64,
    /// The most bytes that were ever lent at once.
    pub lent_peak_bytes: u64,
    /// Frames lent from what was there.
    pub hits: u64,
    /// Frames for which memory was made.
    pub misses: u64,
    /// Memory given up for other sizes, or because there was more than enough of its own.
    pub trimmed: u64,
    /// Copies made for editing.
    pub copies: u64,
}

/// A frame that somebody holds, as the ledger has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFrame {
    /// Who asked for its memory.
    pub owner: Arc<str>,
    /// Who was given it last.
    pub last: Arc<str>,
    /// Its bytes.
    pub bytes: u64,
    /// The number of the frame for which it was lent.
    pub since_frame: u64,
}

#[derive(Debug)]
struct PoolShared {
    budget_bytes: u64,
    inner: Mutex<FramePoolState>,
    owners: Mutex<Vec<Arc<str>>>,
    counts: Arc<PoolCounts>,
    /// Whether nobody leaves anything for those behind it any more, since nothing else helps.
    pressed: AtomicBool,
}

#[derive(Debug, Default)]
struct FramePoolState {
    shelves: BTreeMap<usize, Arc<SizeShelf>>,
    /// Beyond this many bytes, memory that lies free makes room before more is made.
    aim_bytes: Option<u64>,
    peak_bytes: u64,
    hits: u64,
    misses: u64,
    copies: u64,
    clock: u64,
}

/// What changes where frames come back, without the pool's lock.
#[derive(Debug, Default)]
struct PoolCounts {
    made_bytes: AtomicU64,
    lent_bytes: AtomicU64,
    lent_peak_bytes: AtomicU64,
    trimmed: AtomicU64,
}

/// Memory of one size.
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
    /// Indices of stores that nobody holds, the last returned at the end.
    free: Vec<usize>,
    /// How many of them are kept.
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
        let spare = (rows.free.len() > rows.keep).then(|| self.give_up(&mut rows));
        drop(rows);
        drop(spare);
    }

    /// Takes a free store away for good; it is dropped by the caller, outside the lock.
    fn give_up(&self, rows: &mut ShelfRows) -> Option<Arc<FrameStore>> {
        // The bottom of the stack has been free longest.
        let index = (!rows.free.is_empty()).then(|| rows.free.remove(0))?;
        self.counts.made_bytes.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        self.counts.trimmed.fetch_add(1, Ordering::Relaxed);
        rows.stores[index].take()
    }
}

impl FramePool {
    /// A pool that never holds more than this.
    pub fn new(budget_bytes: u64) -> FramePool {
        let shared = PoolShared {
            budget_bytes,
            inner: Mutex::default(),
            owners: Mutex::new(vec!["nobody in particular".into()]),
            counts: Arc::default(),
            pressed: AtomicBool::new(false),
        };
        FramePool { shared: Arc::new(shared), serves: Owner::default(), frame: 0 }
    }

    /// Enters somebody into the ledger.
    pub fn enter(&self, name: &str) -> Owner {
        let mut owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.push(name.into());
        Owner(u32::try_from(owners.len() - 1).unwrap_or(0))
    }

    /// Lends in this name from now on, for a frame of this number.
    pub(crate) fn serve(&mut self, owner: Owner, frame: u64) {
        (self.serves, self.frame) = (owner, frame);
    }

    /// Says how many bytes should do: beyond, what lies free makes room before more is made.
    pub fn aim(&self, bytes: u64) {
        self.lock().aim_bytes = Some(bytes);
    }

    /// Lends memory for a frame. Its bytes are whatever was there before.
    pub fn lend(&self, meta: Meta) -> Result<Frame, PoolError> {
        self.lend_leaving(meta, 0)
    }

    /// As `lend`, where this many bytes can still be lent to others afterwards.
    pub(crate) fn lend_leaving(&self, meta: Meta, leave_bytes: u64) -> Result<Frame, PoolError> {
        let needed = meta.format.frame_bytes(meta.size);
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
                // What lies free in other sizes may be what the system lacks.
                let made = made.or_else(|_| {
                    inner.give_up_all();
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

    /// Makes memory for this many frames of a size, as far as the budget goes, so that none has to be made while frames
    /// run, and keeps as many. Memory that is never lent is never touched, and the system does not have to find it.
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
            // What the system does not give ahead, a frame asks for again when it comes. Threads and codecs need some too.
            if NoMemory::probe(frame_bytes.saturating_mul(2).saturating_add(HEADROOM_BYTES)).is_err() {
                break;
            }
            let Ok(store) = inner.make(&shelf) else { break };
            inner.misses += 1;
            shelf.rows().free.push(store.index);
        }
    }

    /// A copy of a frame, for somebody who wants to edit what others hold too.
    pub(crate) fn copy(&self, frame: &Frame) -> Result<Frame, PoolError> {
        let copy = self.lend(*frame.meta())?;
        copy.write().copy_from_slice(&frame.bytes());
        self.lock().copies += 1;
        Ok(copy)
    }

    /// What it has done and has.
    pub fn stats(&self) -> PoolStats {
        let inner = self.lock();
        let counts = &self.shared.counts;
        let pooled = inner.pooled_bytes();
        PoolStats {
            budget_bytes: self.shared.budget_bytes,
            pooled_bytes: pooled,
            lent_bytes: counts.made_bytes.load(Ordering::Relaxed).saturating_sub(pooled),
            lent: inner.lent_frames(),
            peak_bytes: inner.peak_bytes,
            lent_peak_bytes: counts.lent_peak_bytes.load(Ordering::Relaxed),
            hits: inner.hits,
            misses: inner.misses,
            trimmed: counts.trimmed.load(Ordering::Relaxed),
            copies: inner.copies,
        }
    }

    /// Copies made for editing, without looking at anything else.
    pub(crate) fn copies(&self) -> u64 {
        self.lock().copies
    }

    /// Every frame that somebody holds, the oldest first: after a run, what was forgotten.
    pub fn held(&self) -> Vec<HeldFrame> {
        let inner = self.lock();
        let owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |number: &AtomicU32| Arc::clone(&owners[number.load(Ordering::Relaxed) as usize]);
        let mut held = Vec::new();
        for shelf in inner.shelves.values() {
            let rows = shelf.rows();
            let lent = rows.stores.iter().flatten().filter(|store| !rows.free.contains(&store.index));
            held.extend(lent.map(|store| HeldFrame {
                owner: name(&store.owner),
                last: name(&store.last),
                bytes: shelf.bytes as u64,
                since_frame: store.since_frame.load(Ordering::Relaxed),
            }));
        }
        held.sort_by(|a, b| (a.since_frame, &a.owner).cmp(&(b.since_frame, &b.owner)));
        held
    }

    /// The name under which somebody was entered.
    pub(crate) fn name_of(&self, number: u64) -> Option<Arc<str>> {
        let owners = self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(usize::try_from(number).ok()?).filter(|_| number > 0).cloned()
    }

    /// Whether everybody may take what there is, without leaving anything for those behind them.
    pub(crate) fn press(&self, pressed: bool) {
        self.shared.pressed.store(pressed, Ordering::Relaxed);
    }

    /// Gives up all memory that nobody holds.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.give_up_all();
        inner.shelves.retain(|_, shelf| shelf.rows().stores.iter().any(Option::is_some));
    }

    fn lock(&self) -> MutexGuard<'_, FramePoolState> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up memory of other sizes, the longest unused first, until this many bytes fit the budget; and while there
    /// is any, until they fit what should do.
    fn make_room(&self, inner: &FramePoolState, needed: u64) -> Result<(), PoolError> {
        let budget = self.shared.budget_bytes;
        let made = || self.shared.counts.made_bytes.load(Ordering::Relaxed);
        let aim = inner.aim_bytes.map_or(budget, |aim| aim.min(budget));
        while made().saturating_add(needed) > aim {
            let unused = inner.shelves.values().filter(|shelf| !shelf.rows().free.is_empty());
            match unused.min_by_key(|shelf| shelf.last_used.load(Ordering::Relaxed)) {
                Some(shelf) => {
                    let given_up = shelf.give_up(&mut shelf.rows());
                    drop(given_up);
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

    /// Gives up everything that lies free.
    fn give_up_all(&self) {
        for shelf in self.shelves.values() {
            let mut rows = shelf.rows();
            while shelf.give_up(&mut rows).is_some() {}
        }
    }

    /// Makes memory for one more frame; the budget has room for it.
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
            // Returning a frame must not allocate: there is a place for every store.
            let places = rows.stores.len() - rows.free.len();
            rows.free.reserve(places);
        }
        rows.stores[index] = Some(Arc::clone(&store));
        drop(rows);
        let made = shelf.counts.made_bytes.fetch_add(shelf.bytes as u64, Ordering::Relaxed) + shelf.bytes as u64;
        self.peak_bytes = self.peak_bytes.max(made);
        Ok(store)
    }

    fn pooled_bytes(&self) -> u64 {
        self.shelves.values().map(|shelf| shelf.rows().free.len() as u64 * shelf.bytes as u64).sum()
    }

    fn lent_frames(&self) -> u64 {
        let lent = |shelf: &Arc<SizeShelf>| {
            let rows = shelf.rows();
            (rows.stores.iter().flatten().count() - rows.free.len()) as u64
        };
        self.shelves.values().map(lent).sum()
    }
}
