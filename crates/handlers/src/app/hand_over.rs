//! The hand-over of frames between a lane and the threads of a program: a bounded queue that one side never waits for.
//!
//! The lane never blocks: it looks, puts and takes. Any number of program threads may wait for room or for a frame.
//! Methods of the program side return whether the lane waits for what they have changed; the caller then wakes the lane.
//!
//! Invariants: every frame that was put is taken, dropped and counted, or still queued. The queue never holds more than
//! its capacity, except for frames that the device finished after the lane had taken them. After the end no thread waits.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use super::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Patience, Until, lock, sleep};

/// A queue between a lane and the program. `T` is a frame with its time.
#[derive(Debug)]
pub(super) struct HandOver<T> {
    state: Mutex<State<T>>,
    /// Notified when a frame arrives for the program, or when there is room for a frame of the program.
    changed: Condvar,
    /// Counts what the lane has changed, for threads that look without the lock.
    moves: OwnLine<AtomicU32>,
    patience: Patience,
}

/// A value in cache lines of its own, so that threads that look at it do not slow down the thread that holds the lock.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

#[derive(Debug)]
pub(super) struct State<T> {
    queue: VecDeque<T>,
    capacity: usize,
    /// No further frame will be put.
    closed: bool,
    /// No further frame will be taken.
    ended: bool,
    /// Program threads that sleep.
    sleepers: u32,
    /// Whether the lane has found that it cannot move, and must be woken.
    lane_waits: bool,
    /// Frames that the program has taken and still holds.
    held: usize,
    pub(super) counts: Counts,
}

/// What happened to the frames of one end. `put = taken + dropped + queued` always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counts {
    pub(super) put: u64,
    pub(super) taken: u64,
    pub(super) dropped: u64,
}

/// Why a thread of the program stopped waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// The time has passed.
    Late,
    /// The stream was closed by the program.
    Closed,
    /// The other side has ended.
    Ended,
}

impl<T> HandOver<T> {
    pub(super) fn new(capacity: usize) -> HandOver<T> {
        let state = State {
            queue: VecDeque::with_capacity(capacity + 16),
            capacity,
            closed: false,
            ended: false,
            sleepers: 0,
            lane_waits: false,
            held: 0,
            counts: Counts::default(),
        };
        HandOver {
            state: Mutex::new(state),
            changed: Condvar::new(),
            moves: OwnLine(AtomicU32::new(0)),
            patience: Patience::new(),
        }
    }

    /// Puts a frame as the program. Waits for room until the time has come; with `drops`, a full queue loses its oldest
    /// frame instead. `admit` may refuse the frame or change it, in the order of the queue. Returns whether the lane
    /// must be woken.
    pub(super) fn send<E: From<Gone>>(
        &self,
        mut frame: T,
        drops: bool,
        until: impl FnOnce() -> Result<Until, E>,
        admit: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut oldest = None;
        let is_full = |state: &State<T>| state.queue.len() >= state.capacity && !drops && !state.is_shut();
        let mut state = lock(&self.state);
        if is_full(&state) {
            drop(state);
            state = self.wait_while(until()?, is_full);
            if is_full(&state) {
                return Err(Gone::Late.into());
            }
        }
        if state.ended || state.closed {
            return Err(if state.ended { Gone::Ended } else { Gone::Closed }.into());
        }
        admit(&mut frame)?;
        if state.queue.len() >= state.capacity {
            oldest = state.queue.pop_front();
            state.counts.dropped += 1;
        }
        state.queue.push_back(frame);
        state.counts.put += 1;
        let wakes = std::mem::take(&mut state.lane_waits);
        drop(state);
        // Frames are returned to their pool outside the lock.
        drop(oldest);
        Ok(wakes)
    }

    /// Takes a frame as the lane.
    pub(super) fn take(&self) -> Result<T, Gone> {
        let mut state = lock(&self.state);
        let frame = state.queue.pop_front().ok_or(Gone::Closed);
        state.counts.taken += u64::from(frame.is_ok());
        self.wake_program(state);
        frame
    }

    /// Whether the lane can take a frame or learn of the end; the lane is woken after a `false`.
    pub(super) fn has_news(&self) -> bool {
        let mut state = lock(&self.state);
        let has_news = !state.queue.is_empty() || state.closed;
        state.lane_waits = !has_news;
        has_news
    }

    /// Whether the lane can put a frame, if the program may hold `most` frames and the lane keeps `pending` more. The
    /// lane is woken after a `false`.
    pub(super) fn has_room(&self, most: usize, pending: usize) -> bool {
        let mut state = lock(&self.state);
        let has_room =
            state.ended || state.queue.len() < state.capacity && state.queue.len() + state.held + pending < most.max(1);
        state.lane_waits = !has_room;
        has_room
    }

    /// Puts a frame as the lane, which has asked for room before.
    pub(super) fn put(&self, frame: T) {
        let mut state = lock(&self.state);
        state.counts.put += 1;
        if state.ended {
            state.counts.dropped += 1;
            drop(state);
            drop(frame);
            return;
        }
        state.queue.push_back(frame);
        self.wake_program(state);
    }

    /// Takes the oldest frame as the program, or the newest frame, in which case all older frames are dropped. Waits
    /// until the time has come. `Ok(None)` at the end of the stream. The frame counts as held until
    /// [`HandOver::release`]. The second value is whether the lane must be woken.
    pub(super) fn receive<E: From<Gone>>(
        &self,
        newest: bool,
        until: impl FnOnce() -> Result<Until, E>,
    ) -> Result<(Option<T>, bool), E> {
        let is_empty = |state: &State<T>| state.queue.is_empty() && !state.is_shut();
        let mut state = lock(&self.state);
        if is_empty(&state) {
            drop(state);
            state = self.wait_while(until()?, is_empty);
            if is_empty(&state) {
                return Err(Gone::Late.into());
            }
        }
        let mut older = VecDeque::new();
        if newest && state.queue.len() > 1 {
            let last = state.queue.len() - 1;
            let keep = state.queue.split_off(last);
            older = std::mem::replace(&mut state.queue, keep);
            state.counts.dropped += older.len() as u64;
        }
        let frame = state.queue.pop_front();
        if frame.is_some() {
            state.counts.taken += 1;
            state.held += 1;
        }
        let wakes = std::mem::take(&mut state.lane_waits);
        drop(state);
        drop(older);
        Ok((frame, wakes))
    }

    /// Returns a frame that the program held. Returns whether the lane must be woken.
    pub(super) fn release(&self) -> bool {
        let mut state = lock(&self.state);
        state.held -= 1;
        std::mem::take(&mut state.lane_waits)
    }

    /// Whether the program holds this many frames and nothing is queued.
    pub(super) fn is_held_up(&self, most: usize) -> bool {
        let state = lock(&self.state);
        state.queue.is_empty() && state.held >= most.max(1)
    }

    /// Announces that no further frame will be put. Queued frames can still be taken. Returns whether the lane must be
    /// woken.
    pub(super) fn close(&self) -> bool {
        let mut state = lock(&self.state);
        state.closed = true;
        let wakes = std::mem::take(&mut state.lane_waits);
        self.wake_all(state);
        wakes
    }

    /// Announces that no further frame will be taken, and drops the queued frames.
    pub(super) fn end(&self) -> bool {
        let mut state = lock(&self.state);
        state.ended = true;
        let left = std::mem::take(&mut state.queue);
        state.counts.dropped += left.len() as u64;
        let wakes = std::mem::take(&mut state.lane_waits);
        self.wake_all(state);
        drop(left);
        wakes
    }

    pub(super) fn is_shut(&self) -> bool {
        lock(&self.state).is_shut()
    }

    /// The counts, and the number of queued frames.
    pub(super) fn counts(&self) -> (Counts, usize) {
        let state = lock(&self.state);
        (state.counts, state.queue.len())
    }

    fn wake_program(&self, state: MutexGuard<'_, State<T>>) {
        let sleepers = state.sleepers;
        drop(state);
        // After the lock is free, so that a thread that looks does not find it taken.
        self.moves.0.fetch_add(1, Ordering::Relaxed);
        if sleepers > 0 {
            self.changed.notify_one();
        }
    }

    fn wake_all(&self, state: MutexGuard<'_, State<T>>) {
        drop(state);
        self.moves.0.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Waits while the condition holds and the time has not come.
    fn wait_while(&self, until: Until, waits: impl Fn(&State<T>) -> bool) -> MutexGuard<'_, State<T>> {
        let mut state = lock(&self.state);
        while waits(&state) && !until.is_past() {
            let moves = self.moves.0.load(Ordering::Relaxed);
            drop(state);
            let moved = self.patience.look(|| self.moves.0.load(Ordering::Relaxed) != moves);
            state = lock(&self.state);
            if !moved && waits(&state) {
                state.sleepers += 1;
                state = self.patience.sleep(|| sleep(&self.changed, state, until));
                state.sleepers -= 1;
            }
        }
        state
    }
}

impl<T> State<T> {
    fn is_shut(&self) -> bool {
        self.closed || self.ended
    }
}
