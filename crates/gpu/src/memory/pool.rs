//! A pool that lends whole resources and takes them back.
//!
//! The pool has a ledger of holders and a byte budget. A closure creates resources, so the pool does not know how
//! resources are created. An owner gets a free resource that the owner had before. If there is no such resource, the
//! owner gets the free resource that was returned last. Resources that the device has finished with become free once
//! per frame ([`Pool::reclaim`]), and earlier only if a request finds no free resource of its owner. If resources
//! became free whenever the device happens to finish, buffers would be shuffled among their owners, and every new
//! combination of buffers would need a new bind group.
//!
//! Besides the budget there is an aim ([`Pool::aim`]), which the runtime sets to a quarter more than the planned bytes.
//! Above the aim, the pool drops free resources, longest unused first, before it creates more. A stream of many sizes
//! therefore needs the memory of its largest size, not of all sizes.
//!
//! Invariants: a resource is never lent to two owners at once, nor while a submission still uses the resource. The
//! bytes held never exceed the budget, which does not count adopted resources. Only free resources are dropped, and
//! adopted resources that have lost their last handle.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::holding::{PoolEntry, ResourceState, Statistics};
use super::lent::{PoolSlot, Pooled, Tag};
use super::progress::SubmissionProgress;

/// Sizes are rounded up to a multiple of this many bytes, so that requests of similar sizes can use the same resources.
pub const SIZE_CLASS_BYTES: u64 = 256;

/// How much a pool may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// Maximum of all bytes: lent, in use by the device, and free.
    pub budget_bytes: u64,
    /// Maximum of free bytes. If more bytes are free, the pool drops the longest unused resources.
    pub keep_bytes: u64,
    /// Maximum number of free resources of one size.
    pub keep_each: usize,
}

impl PoolRules {
    /// A budget of this many bytes, without further limits on free resources.
    pub fn budget(bytes: u64) -> Self {
        Self { budget_bytes: bytes, keep_bytes: bytes, keep_each: usize::MAX }
    }
}

/// Of each size, the maximum number of free resources that were lent last for something that the plan does not foresee.
pub const KEEP_UNPLANNED: usize = 10;

/// Why nothing was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LendError<E> {
    #[error("{owner} requested 0 bytes; request at least 1")]
    Empty { owner: Arc<str> },
    /// The budget has no room, even if every free resource is dropped.
    #[error(
        "{owner} needs {needed_bytes} bytes of memory, but {available_bytes} are available: {held_bytes} of \
         {budget_bytes} are held; raise the budget, or hold fewer frames"
    )]
    OutOfBudget {
        owner: Arc<str>,
        needed_bytes: u64,
        available_bytes: u64,
        /// Bytes that are lent or in use by the device.
        held_bytes: u64,
        budget_bytes: u64,
    },
    #[error("{owner} needs {needed_bytes} bytes of memory: {problem}")]
    NotMade { owner: Arc<str>, needed_bytes: u64, problem: E },
}

/// A pool of resources. Clones are the same pool.
pub struct Pool<T> {
    state: Arc<Mutex<PoolState<T>>>,
    progress: SubmissionProgress,
}

impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), progress: self.progress.clone() }
    }
}

impl<T> std::fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

impl<T> Pool<T> {
    /// An empty pool. A returned resource can become free when `progress` has passed the last submission that uses it.
    pub fn new(rules: PoolRules, progress: SubmissionProgress) -> Self {
        Self { state: Arc::new(Mutex::new(PoolState::new(rules))), progress }
    }

    /// Lends a resource to `owner`, with this size rounded up to a multiple of [`SIZE_CLASS_BYTES`]. Only free
    /// resources of exactly the rounded size are considered. If `owner` had some of these before, the pool lends the
    /// last returned of those. Otherwise the pool lends the last returned of all. If no such resource is free, the pool
    /// creates a resource. An owner that gets the same resource back can use the cached bind groups of that resource
    /// again.
    ///
    /// `make` gets the rounded size, and is called without the pool's lock.
    pub fn lend<E>(
        &self,
        bytes: u64,
        owner: &Arc<str>,
        make: impl FnOnce(u64) -> Result<T, E>,
    ) -> Result<Pooled<T>, LendError<E>> {
        if bytes == 0 {
            return Err(LendError::Empty { owner: Arc::clone(owner) });
        }
        let class = bytes.div_ceil(SIZE_CLASS_BYTES).saturating_mul(SIZE_CLASS_BYTES);
        let mut dropped = Vec::new();
        {
            let mut state = lock(&self.state);
            if !state.has_pooled_of(class, owner) {
                // The owner has no free resource left. Reclaiming earlier, whenever the device happens to finish, would
                // shuffle the resources among their owners, and cached bind groups would be useless.
                state.reclaim(self.progress.finished(), &mut dropped);
            }
            if let Some(lent) = state.lend_pooled(class, bytes, owner) {
                return Ok(lent);
            }
            state.reserve(class, owner, &mut dropped)?;
        }
        drop(dropped);
        match make(class) {
            Ok(value) => Ok(lock(&self.state).seat(value, class, bytes, owner, &self.state)),
            Err(problem) => {
                lock(&self.state).reserved_bytes -= class;
                Err(LendError::NotMade { owner: Arc::clone(owner), needed_bytes: class, problem })
            }
        }
    }

    /// As [`Pool::lend`], for a loan that the plan does not foresee. The aim then covers the planned memory and
    /// everything that is lent at the same time. Of each size, at most [`KEEP_UNPLANNED`] such resources stay free.
    pub fn lend_unplanned<E>(
        &self,
        bytes: u64,
        owner: &Arc<str>,
        make: impl FnOnce(u64) -> Result<T, E>,
    ) -> Result<Pooled<T>, LendError<E>> {
        {
            let mut state = lock(&self.state);
            let held_bytes = state.held_bytes().saturating_sub(state.pooled_bytes);
            state.allowed_bytes = state.allowed_bytes.max(held_bytes.saturating_add(bytes));
        }
        let lent = self.lend(bytes, owner, make)?;
        lock(&self.state).seat_mut(lent.seat()).is_unplanned = true;
        Ok(lent)
    }

    /// Adopts a resource that the caller created. The ledger lists the resource, but the budget does not count the
    /// resource. The resource is dropped with its last handle and never lent again.
    pub fn adopt(&self, value: T, bytes: u64, owner: &Arc<str>) -> Pooled<T> {
        lock(&self.state).adopt(value, bytes, owner, &self.state)
    }

    /// Frees the returned resources that no submission after `submission` uses, as far as these submissions have
    /// finished.
    pub fn reclaim(&self, submission: u64) {
        let mut dropped = Vec::new();
        lock(&self.state).reclaim(submission.min(self.progress.finished()), &mut dropped);
    }

    /// Drops free resources, longest unused first, until at most this many bytes are free.
    pub fn trim_to(&self, bytes: u64) {
        let mut dropped = Vec::new();
        let mut state = lock(&self.state);
        state.reclaim(self.progress.finished(), &mut dropped);
        state.trim_while(|state| state.pooled_bytes > bytes, &mut dropped);
        drop(state);
    }

    /// Sets how many bytes the pool should hold at most. Above this aim, the pool drops free resources before it
    /// creates more.
    pub fn aim(&self, bytes: u64) {
        lock(&self.state).aim_bytes = bytes;
    }

    /// Raises the aim by this many bytes, for memory that the plan could not foresee.
    pub fn allow(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.allowed_bytes = state.allowed_bytes.saturating_add(bytes);
    }

    /// Restarts the measurement of the peak.
    pub fn restart_peak(&self) {
        let mut dropped = Vec::new();
        let mut state = lock(&self.state);
        state.reclaim(self.progress.finished(), &mut dropped);
        state.peak_bytes = state.held_bytes() - state.pooled_bytes;
        drop(state);
    }

    /// Sets the current frame number, for the ledger.
    pub fn frame(&self, number: u64) {
        lock(&self.state).frame = number;
    }

    pub fn statistics(&self) -> Statistics {
        lock(&self.state).statistics()
    }

    /// Every resource and its state, sorted by the frame in which the resource was lent.
    pub fn ledger(&self) -> Vec<PoolEntry> {
        let mut rows = lock(&self.state).rows();
        rows.sort_by_key(|row| (row.since_frame, row.tag));
        rows
    }

    /// Resources that are still lent. At the end of a run, such resources are leaks.
    pub fn leaks(&self) -> Vec<PoolEntry> {
        let mut rows = self.ledger();
        rows.retain(|row| row.place == ResourceState::Lent);
        rows
    }

    /// Number of dropped resources. While this number does not change, no resource has disappeared.
    pub fn trimmed(&self) -> u64 {
        lock(&self.state).trimmed
    }

    /// The [`Tag::id`]s of all resources, sorted.
    pub fn living(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = lock(&self.state).seats.iter().flatten().map(|seat| seat.slot.id).collect();
        ids.sort_unstable();
        ids
    }
}

/// A poisoned pool is still consistent: no foreign code runs under the lock.
pub(super) fn lock<T>(state: &Mutex<PoolState<T>>) -> MutexGuard<'_, PoolState<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct PoolState<T> {
    rules: PoolRules,
    seats: Vec<Option<Seat<T>>>,
    vacant: Vec<usize>,
    /// Free seats by size; the seat that was returned last is at the back.
    pooled: BTreeMap<u64, VecDeque<usize>>,
    /// Returned seats that the device still uses, in the order of their return.
    waiting: VecDeque<usize>,
    /// Bytes of resources that are being created, outside the lock.
    reserved_bytes: u64,
    lent_bytes: u64,
    waiting_bytes: u64,
    pooled_bytes: u64,
    peak_bytes: u64,
    /// If the pool holds more bytes than this, free resources are dropped before more resources are created.
    aim_bytes: u64,
    /// Added to the aim.
    allowed_bytes: u64,
    lent: usize,
    frame: u64,
    returns: u64,
    last_id: u64,
    hits: u64,
    misses: u64,
    trimmed: u64,
}

struct Seat<T> {
    slot: Arc<PoolSlot<T>>,
    class: u64,
    place: ResourceState,
    owner: Arc<str>,
    since_frame: u64,
    generation: u64,
    returned: u64,
    /// Created by the caller: dropped with its last handle, never lent again.
    is_adopted: bool,
    /// Lent last for something that the plan does not foresee.
    is_unplanned: bool,
}

impl<T> PoolState<T> {
    fn new(rules: PoolRules) -> Self {
        Self {
            rules,
            seats: Vec::new(),
            vacant: Vec::new(),
            pooled: BTreeMap::new(),
            waiting: VecDeque::new(),
            reserved_bytes: 0,
            lent_bytes: 0,
            waiting_bytes: 0,
            pooled_bytes: 0,
            peak_bytes: 0,
            aim_bytes: u64::MAX,
            allowed_bytes: 0,
            lent: 0,
            frame: 0,
            returns: 0,
            last_id: 0,
            hits: 0,
            misses: 0,
            trimmed: 0,
        }
    }

    fn held_bytes(&self) -> u64 {
        self.reserved_bytes + self.lent_bytes + self.waiting_bytes + self.pooled_bytes
    }

    fn has_pooled_of(&self, class: u64, owner: &Arc<str>) -> bool {
        self.pooled.get(&class).is_some_and(|stack| self.last_of(stack, owner).is_some())
    }

    /// Of the seats in `stack` that this owner had before, the position of the seat that was returned last.
    fn last_of(&self, stack: &VecDeque<usize>, owner: &Arc<str>) -> Option<usize> {
        let was_its = |at: &usize| self.seats[*at].as_ref().is_some_and(|seat| seat.owner == *owner);
        stack.iter().rposition(was_its)
    }

    fn lend_pooled(&mut self, class: u64, bytes: u64, owner: &Arc<str>) -> Option<Pooled<T>> {
        let stack = self.pooled.get(&class)?;
        let place = self.last_of(stack, owner).or(stack.len().checked_sub(1))?;
        let at = self.pooled.get_mut(&class)?.remove(place)?;
        self.pooled_bytes -= class;
        self.lent_bytes += class;
        self.lent += 1;
        self.hits += 1;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes() - self.pooled_bytes);
        let frame = self.frame;
        let seat = self.seat_mut(at);
        seat.place = ResourceState::Lent;
        seat.owner = Arc::clone(owner);
        seat.since_frame = frame;
        seat.generation += 1;
        seat.is_unplanned = false;
        Some(Pooled::first(Arc::clone(&seat.slot), seat.generation, bytes))
    }

    /// Makes room in the budget for a new resource.
    fn reserve<E>(
        &mut self,
        class: u64,
        owner: &Arc<str>,
        dropped: &mut Vec<DroppedSlot<T>>,
    ) -> Result<(), LendError<E>> {
        let budget_bytes = self.rules.budget_bytes;
        let held_bytes = self.held_bytes() - self.pooled_bytes;
        let available_bytes = budget_bytes.saturating_sub(held_bytes);
        if class > available_bytes {
            let owner = Arc::clone(owner);
            return Err(LendError::OutOfBudget {
                owner,
                needed_bytes: class,
                available_bytes,
                held_bytes,
                budget_bytes,
            });
        }
        let most_bytes = budget_bytes.min(self.aim_bytes.saturating_add(self.allowed_bytes));
        self.trim_while(|state| state.held_bytes() + class > most_bytes, dropped);
        self.reserved_bytes += class;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes());
        Ok(())
    }

    /// Gives a new resource a seat and lends the resource.
    fn seat(
        &mut self,
        value: T,
        class: u64,
        bytes: u64,
        owner: &Arc<str>,
        pool: &Arc<Mutex<PoolState<T>>>,
    ) -> Pooled<T> {
        self.reserved_bytes -= class;
        self.lent_bytes += class;
        self.misses += 1;
        let at = self.insert(value, class, owner, pool, false);
        Pooled::first(Arc::clone(&self.seat_mut(at).slot), 1, bytes)
    }

    fn adopt(&mut self, value: T, bytes: u64, owner: &Arc<str>, pool: &Arc<Mutex<PoolState<T>>>) -> Pooled<T> {
        let at = self.insert(value, bytes, owner, pool, true);
        Pooled::first(Arc::clone(&self.seat_mut(at).slot), 1, bytes)
    }

    fn insert(
        &mut self,
        value: T,
        class: u64,
        owner: &Arc<str>,
        pool: &Arc<Mutex<PoolState<T>>>,
        is_adopted: bool,
    ) -> usize {
        self.lent += 1;
        self.last_id += 1;
        let seat = self.vacant.pop().unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        let slot = Arc::new(PoolSlot {
            value,
            id: self.last_id,
            seat,
            holders: AtomicUsize::new(0),
            used_until: AtomicU64::new(0),
            note: AtomicU64::new(0),
            pool: Arc::downgrade(pool),
        });
        self.seats[seat] = Some(Seat {
            slot,
            class,
            place: ResourceState::Lent,
            owner: Arc::clone(owner),
            since_frame: self.frame,
            generation: 1,
            returned: 0,
            is_adopted,
            is_unplanned: false,
        });
        seat
    }

    /// Takes back a resource without handles. The resource becomes free at once, or waits for the device.
    pub(super) fn take_back(&mut self, at: usize) -> Vec<DroppedSlot<T>> {
        let mut dropped = Vec::new();
        let seat = self.seat_mut(at);
        let (class, submission, is_adopted) =
            (seat.class, seat.slot.used_until.load(Ordering::Acquire), seat.is_adopted);
        self.lent -= 1;
        if is_adopted {
            // An adopted resource does not wait here: its creator keeps the resource alive for as long as the device
            // uses the resource.
            self.trimmed += 1;
            self.vacant.push(at);
            dropped.extend(self.seats[at].take().map(|seat| seat.slot));
            return dropped;
        }
        self.lent_bytes -= class;
        if submission == 0 {
            self.pool(at, &mut dropped);
        } else {
            self.seat_mut(at).place = ResourceState::Waiting { submission };
            self.waiting.push_back(at);
            self.waiting_bytes += class;
        }
        dropped
    }

    fn reclaim(&mut self, submission: u64, dropped: &mut Vec<DroppedSlot<T>>) {
        for _ in 0..self.waiting.len() {
            let Some(at) = self.waiting.pop_front() else { break };
            let seat = self.seat_mut(at);
            if seat.slot.used_until.load(Ordering::Acquire) > submission {
                self.waiting.push_back(at);
                continue;
            }
            seat.slot.used_until.store(0, Ordering::Release);
            let class = seat.class;
            self.waiting_bytes -= class;
            self.pool(at, dropped);
        }
    }

    fn pool(&mut self, at: usize, dropped: &mut Vec<DroppedSlot<T>>) {
        self.returns += 1;
        let returned = self.returns;
        let seat = self.seat_mut(at);
        seat.place = ResourceState::Pooled;
        seat.returned = returned;
        let (class, is_unplanned) = (seat.class, seat.is_unplanned);
        let stack = self.pooled.entry(class).or_default();
        stack.push_back(at);
        self.pooled_bytes += class;
        if stack.len() > self.rules.keep_each {
            self.drop_oldest(class, dropped);
        }
        if is_unplanned {
            self.keep_few_unplanned(class, dropped);
        }
        self.trim_while(|state| state.pooled_bytes > state.rules.keep_bytes, dropped);
    }

    /// Drops a free resource of this size if there are too many that the plan does not foresee.
    fn keep_few_unplanned(&mut self, class: u64, dropped: &mut Vec<DroppedSlot<T>>) {
        let Some(stack) = self.pooled.get(&class) else { return };
        let is_unplanned = |at: &usize| self.seats[*at].as_ref().is_some_and(|seat| seat.is_unplanned);
        let mut unplanned = stack.iter().enumerate().filter(|(_, at)| is_unplanned(at)).map(|(place, _)| place);
        let oldest = unplanned.next();
        if unplanned.count() >= KEEP_UNPLANNED
            && let Some(place) = oldest
        {
            self.drop_at(class, place, dropped);
        }
    }

    /// Drops the longest unused resources while `too_much` holds.
    fn trim_while(&mut self, too_much: impl Fn(&Self) -> bool, dropped: &mut Vec<DroppedSlot<T>>) {
        while too_much(self) {
            // In the stack of each size, the resource at the front has been unused longest.
            let bottoms = self.pooled.iter().filter_map(|(class, stack)| Some((*class, *stack.front()?)));
            let oldest = bottoms.min_by_key(|(_, at)| self.seats[*at].as_ref().map(|seat| seat.returned));
            let Some((class, _)) = oldest else { break };
            self.drop_oldest(class, dropped);
        }
    }

    fn drop_oldest(&mut self, class: u64, dropped: &mut Vec<DroppedSlot<T>>) {
        self.drop_at(class, 0, dropped);
    }

    /// Drops the free resource at this place in the stack of its size.
    fn drop_at(&mut self, class: u64, place: usize, dropped: &mut Vec<DroppedSlot<T>>) {
        let Some(stack) = self.pooled.get_mut(&class) else { return };
        let Some(at) = stack.remove(place) else { return };
        if stack.is_empty() {
            self.pooled.remove(&class);
        }
        self.pooled_bytes -= class;
        self.trimmed += 1;
        self.vacant.push(at);
        dropped.extend(self.seats[at].take().map(|seat| seat.slot));
    }

    fn seat_mut(&mut self, at: usize) -> &mut Seat<T> {
        self.seats[at].as_mut().expect("a seat in a stack, in the queue or of a handle is taken")
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            budget_bytes: self.rules.budget_bytes,
            lent: self.lent,
            lent_bytes: self.lent_bytes,
            waiting: self.waiting.len(),
            waiting_bytes: self.waiting_bytes,
            pooled: self.pooled.values().map(VecDeque::len).sum(),
            pooled_bytes: self.pooled_bytes,
            peak_bytes: self.peak_bytes,
            hits: self.hits,
            misses: self.misses,
            trimmed: self.trimmed,
        }
    }

    fn rows(&self) -> Vec<PoolEntry> {
        let row = |seat: &Seat<T>| PoolEntry {
            tag: Tag { id: seat.slot.id, generation: seat.generation },
            owner: Arc::clone(&seat.owner),
            bytes: seat.class,
            since_frame: seat.since_frame,
            holders: seat.slot.holders.load(Ordering::Acquire),
            note: seat.slot.note.load(Ordering::Relaxed),
            place: seat.place,
        };
        self.seats.iter().flatten().map(row).collect()
    }
}

/// A resource that is dropped after the lock is released.
type DroppedSlot<T> = Arc<PoolSlot<T>>;
