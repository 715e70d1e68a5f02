//! Lends whole resources and takes them back.
//!
//! Owns every resource it made, the ledger of who holds which, and a byte budget.
//! Does not know what a resource is: a closure makes one of a given size.
//!
//! Always: a lent resource is never lent twice, nor while a submission still uses it; bytes held never exceed the
//! budget; what returned last is lent first; only resources that could be lent are given up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::holding::{PoolEntry, ResourceState, Statistics};
use super::lent::{PoolSlot, Pooled, Tag};
use super::progress::SubmissionProgress;

/// Sizes are rounded up to this, so that nearly equal ones share their resources.
pub const SIZE_CLASS_BYTES: u64 = 256;

/// How much a pool may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRules {
    /// The most bytes at once: lent, in use by the device and free together.
    pub budget_bytes: u64,
    /// The most bytes that stay free; beyond, what was free longest is given up.
    pub keep_bytes: u64,
    /// The most resources of one size that stay free.
    pub keep_each: usize,
}

impl PoolRules {
    /// Holds and keeps up to this many bytes.
    pub fn budget(bytes: u64) -> Self {
        Self { budget_bytes: bytes, keep_bytes: bytes, keep_each: usize::MAX }
    }
}

/// Why nothing was lent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LendError<E> {
    /// A resource of no bytes cannot be bound.
    #[error("{owner} asked for 0 bytes; ask for at least 1")]
    Empty {
        /// Who asked.
        owner: Arc<str>,
    },
    /// The budget has no room, even with everything given up that is free.
    #[error(
        "{owner} needs {needed_bytes} bytes of memory, {available_bytes} are available: {held_bytes} of \
         {budget_bytes} are held; raise the budget, or hold fewer frames"
    )]
    OutOfBudget {
        /// Who asked.
        owner: Arc<str>,
        /// What that takes.
        needed_bytes: u64,
        /// What could be lent at most.
        available_bytes: u64,
        /// What is lent, or in use by the device.
        held_bytes: u64,
        /// What the pool may hold.
        budget_bytes: u64,
    },
    /// It could not be made.
    #[error("{owner} needs {needed_bytes} bytes of memory: {problem}")]
    NotMade {
        /// Who asked.
        owner: Arc<str>,
        /// What that takes.
        needed_bytes: u64,
        /// What the maker says.
        problem: E,
    },
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
    /// An empty pool that lends again what `progress` says is finished.
    pub fn new(rules: PoolRules, progress: SubmissionProgress) -> Self {
        Self { state: Arc::new(Mutex::new(PoolState::new(rules))), progress }
    }

    /// Lends a resource of at least this size to `owner`: of those that it had before the one that returned last, else
    /// of all the one that returned last, else a new one. Whoever gets its own back meets the same others again, whose
    /// bind groups are made already.
    ///
    /// `make` is told the size to make, a multiple of [`SIZE_CLASS_BYTES`], and is called without the pool's lock.
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
        let mut given_up = Vec::new();
        {
            let mut state = lock(&self.state);
            if !state.has_pooled_of(class, owner) {
                // Only now: returns that come one by one, whenever the device happens to be done, would shuffle
                // which resource is lent to whom, and with it the bind groups that are already made.
                state.reclaim(self.progress.finished(), &mut given_up);
            }
            if let Some(lent) = state.lend_pooled(class, bytes, owner) {
                return Ok(lent);
            }
            state.reserve(class, owner, &mut given_up)?;
        }
        drop(given_up);
        match make(class) {
            Ok(value) => Ok(lock(&self.state).seat(value, class, bytes, owner, &self.state)),
            Err(problem) => {
                lock(&self.state).reserved_bytes -= class;
                Err(LendError::NotMade { owner: Arc::clone(owner), needed_bytes: class, problem })
            }
        }
    }

    /// Takes in a resource of somebody else's: it is in the ledger while somebody holds it, counts for no budget, and is
    /// let go with its last handle instead of being lent again.
    pub fn adopt(&self, value: T, bytes: u64, owner: &Arc<str>) -> Pooled<T> {
        lock(&self.state).adopt(value, bytes, owner, &self.state)
    }

    /// Makes free what no submission after this one uses and nobody holds.
    pub fn reclaim(&self, submission: u64) {
        let mut given_up = Vec::new();
        lock(&self.state).reclaim(submission.min(self.progress.finished()), &mut given_up);
    }

    /// Gives up free resources, those that were free longest first, until at most this many bytes are free.
    pub fn trim_to(&self, bytes: u64) {
        let mut given_up = Vec::new();
        let mut state = lock(&self.state);
        state.reclaim(self.progress.finished(), &mut given_up);
        state.trim_while(|state| state.pooled_bytes > bytes, &mut given_up);
        drop(state);
    }

    /// Says how many bytes should do, in all: beyond, what lies free makes room before more is made.
    pub fn aim(&self, bytes: u64) {
        lock(&self.state).aim_bytes = bytes;
    }

    /// Says that these bytes come on top of what should do: nobody could know of them before.
    pub fn allow(&self, bytes: u64) {
        let mut state = lock(&self.state);
        state.allowed_bytes = state.allowed_bytes.saturating_add(bytes);
    }

    /// Measures its peak from here on.
    pub fn restart_peak(&self) {
        let mut given_up = Vec::new();
        let mut state = lock(&self.state);
        state.reclaim(self.progress.finished(), &mut given_up);
        state.peak_bytes = state.held_bytes() - state.pooled_bytes;
        drop(state);
    }

    /// Says which frame it is, for the ledger.
    pub fn frame(&self, number: u64) {
        lock(&self.state).frame = number;
    }

    /// What it has done and holds.
    pub fn statistics(&self) -> Statistics {
        lock(&self.state).statistics()
    }

    /// Every resource and where it is, in the order in which they were lent.
    pub fn ledger(&self) -> Vec<PoolEntry> {
        let mut rows = lock(&self.state).rows();
        rows.sort_by_key(|row| (row.since_frame, row.tag));
        rows
    }

    /// What is still held: at the end of a run, what was forgotten.
    pub fn leaks(&self) -> Vec<PoolEntry> {
        let mut rows = self.ledger();
        rows.retain(|row| row.place == ResourceState::Lent);
        rows
    }

    /// How many resources were given up since it was made. While it does not change, known resources still exist.
    pub fn trimmed(&self) -> u64 {
        lock(&self.state).trimmed
    }

    /// The resources that exist, by [`Tag::id`], in order.
    pub fn living(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = lock(&self.state).seats.iter().flatten().map(|seat| seat.slot.id).collect();
        ids.sort_unstable();
        ids
    }
}

/// A poisoned pool is still balanced: no code of others runs under the lock.
pub(super) fn lock<T>(state: &Mutex<PoolState<T>>) -> MutexGuard<'_, PoolState<T>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct PoolState<T> {
    rules: PoolRules,
    seats: Vec<Option<Seat<T>>>,
    vacant: Vec<usize>,
    /// Seats that can be lent, by size; the last returned is at the back.
    pooled: BTreeMap<u64, VecDeque<usize>>,
    /// Seats that only the device uses, in the order of their return.
    waiting: VecDeque<usize>,
    /// Being made, outside the lock.
    reserved_bytes: u64,
    lent_bytes: u64,
    waiting_bytes: u64,
    pooled_bytes: u64,
    peak_bytes: u64,
    /// Beyond this, what lies free makes room before more is made.
    aim_bytes: u64,
    /// What came on top of that.
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
    /// Whether it is somebody else's, and never lent again.
    is_guest: bool,
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

    /// Where in a stack the last returned is that was this owner's.
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
        Some(Pooled::first(Arc::clone(&seat.slot), seat.generation, bytes))
    }

    /// Makes room in the budget for a new resource.
    fn reserve<E>(&mut self, class: u64, owner: &Arc<str>, given_up: &mut Vec<GivenUp<T>>) -> Result<(), LendError<E>> {
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
        self.trim_while(|state| state.held_bytes() + class > most_bytes, given_up);
        self.reserved_bytes += class;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes());
        Ok(())
    }

    /// Gives a new resource a seat and lends it.
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
        let at = self.sit_down(value, class, owner, pool, false);
        Pooled::first(Arc::clone(&self.seat_mut(at).slot), 1, bytes)
    }

    fn adopt(&mut self, value: T, bytes: u64, owner: &Arc<str>, pool: &Arc<Mutex<PoolState<T>>>) -> Pooled<T> {
        let at = self.sit_down(value, bytes, owner, pool, true);
        Pooled::first(Arc::clone(&self.seat_mut(at).slot), 1, bytes)
    }

    fn sit_down(
        &mut self,
        value: T,
        class: u64,
        owner: &Arc<str>,
        pool: &Arc<Mutex<PoolState<T>>>,
        is_guest: bool,
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
            is_guest,
        });
        seat
    }

    /// Takes back what its last holder dropped: free at once, or waiting for the device.
    pub(super) fn take_back(&mut self, at: usize) -> Vec<GivenUp<T>> {
        let mut given_up = Vec::new();
        let seat = self.seat_mut(at);
        let (class, submission, is_guest) = (seat.class, seat.slot.used_until.load(Ordering::Acquire), seat.is_guest);
        self.lent -= 1;
        if is_guest {
            // Whoever made it sees to it that it lives as long as the device uses it.
            self.trimmed += 1;
            self.vacant.push(at);
            given_up.extend(self.seats[at].take().map(|seat| seat.slot));
            return given_up;
        }
        self.lent_bytes -= class;
        if submission == 0 {
            self.pool(at, &mut given_up);
        } else {
            self.seat_mut(at).place = ResourceState::Waiting { submission };
            self.waiting.push_back(at);
            self.waiting_bytes += class;
        }
        given_up
    }

    fn reclaim(&mut self, submission: u64, given_up: &mut Vec<GivenUp<T>>) {
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
            self.pool(at, given_up);
        }
    }

    fn pool(&mut self, at: usize, given_up: &mut Vec<GivenUp<T>>) {
        self.returns += 1;
        let returned = self.returns;
        let seat = self.seat_mut(at);
        seat.place = ResourceState::Pooled;
        seat.returned = returned;
        let class = seat.class;
        let stack = self.pooled.entry(class).or_default();
        stack.push_back(at);
        self.pooled_bytes += class;
        if stack.len() > self.rules.keep_each {
            self.give_up(class, given_up);
        }
        self.trim_while(|state| state.pooled_bytes > state.rules.keep_bytes, given_up);
    }

    /// Gives up what has been free longest, while `too_much` holds.
    fn trim_while(&mut self, too_much: impl Fn(&Self) -> bool, given_up: &mut Vec<GivenUp<T>>) {
        while too_much(self) {
            // The bottom of each stack has been free longest among its size.
            let bottoms = self.pooled.iter().filter_map(|(class, stack)| Some((*class, *stack.front()?)));
            let oldest = bottoms.min_by_key(|(_, at)| self.seats[*at].as_ref().map(|seat| seat.returned));
            let Some((class, _)) = oldest else { break };
            self.give_up(class, given_up);
        }
    }

    fn give_up(&mut self, class: u64, given_up: &mut Vec<GivenUp<T>>) {
        let Some(stack) = self.pooled.get_mut(&class) else { return };
        let Some(at) = stack.pop_front() else { return };
        if stack.is_empty() {
            self.pooled.remove(&class);
        }
        self.pooled_bytes -= class;
        self.trimmed += 1;
        self.vacant.push(at);
        given_up.extend(self.seats[at].take().map(|seat| seat.slot));
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

/// What is given up, on its way out of the lock.
type GivenUp<T> = Arc<PoolSlot<T>>;
