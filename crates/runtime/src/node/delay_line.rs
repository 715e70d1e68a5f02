//! The delay line: places of a stream that a node keeps back, in order.
//!
//! Owns what `delay` holds and what was asked for and comes later.
//! Does not send: the node does, when what is oldest is there and due.
//!
//! Always: places leave in the order they came; empty places count like any other.

use std::collections::VecDeque;

use crate::frame::Frame;
use crate::handler::Now;
use crate::link::ring::StreamSlot;

/// Places that are kept back.
#[derive(Debug)]
pub(crate) struct DelayLine {
    places: VecDeque<DelayedSlot>,
    awaited: usize,
}

/// A place that is kept back.
#[derive(Debug)]
enum DelayedSlot {
    /// It can go.
    Slot(StreamSlot<Frame>),
    /// Its frame is still being made.
    Awaited(Now),
}

impl Default for DelayLine {
    fn default() -> DelayLine {
        DelayLine { places: VecDeque::with_capacity(8), awaited: 0 }
    }
}

impl DelayLine {
    /// Makes room for a delay of this many places, with runs of empty ones in between.
    pub(crate) fn reserve(&mut self, delay: usize) {
        self.places.reserve(2 * delay + 2);
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.awaited = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the oldest place can go.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.places.front(), Some(DelayedSlot::Slot(_)))
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> u64 {
        let count = |held: &DelayedSlot| match held {
            DelayedSlot::Slot(StreamSlot::Empty { count, .. }) => *count,
            DelayedSlot::Slot(StreamSlot::Frame { .. }) | DelayedSlot::Awaited(_) => 1,
        };
        self.places.iter().map(count).sum()
    }

    /// How many of them wait for their frames.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited
    }

    /// The time of the oldest frame: no frame will leave before it. Empty places do not count, since a run of them is let
    /// go one by one and which times they have is not known.
    pub(crate) fn first_frame_ns(&self) -> Option<i64> {
        self.places.iter().find_map(|held| match held {
            DelayedSlot::Slot(StreamSlot::Frame { pts_ns, .. }) => Some(*pts_ns),
            DelayedSlot::Slot(StreamSlot::Empty { .. }) => None,
            DelayedSlot::Awaited(now) => Some(now.pts_ns),
        })
    }

    /// Keeps a slot, joined with the empty places before it.
    pub(crate) fn push(&mut self, slot: StreamSlot<Frame>) {
        let rest = match self.places.back_mut() {
            Some(DelayedSlot::Slot(back)) => back.join(slot),
            _ => Some(slot),
        };
        self.places.extend(rest.map(DelayedSlot::Slot));
    }

    /// Keeps the place of a frame that comes later.
    pub(crate) fn await_frame(&mut self, now: Now) {
        self.awaited += 1;
        self.places.push_back(DelayedSlot::Awaited(now));
    }

    /// The oldest place that waits for its frame.
    pub(crate) fn oldest_awaited(&self) -> Option<Now> {
        self.places.iter().find_map(|held| match held {
            DelayedSlot::Awaited(now) => Some(*now),
            DelayedSlot::Slot(_) => None,
        })
    }

    /// Gives the oldest place that waits its frame, or leaves it empty.
    pub(crate) fn arrive(&mut self, slot: StreamSlot<Frame>) {
        if let Some(place) = self.places.iter_mut().find(|held| matches!(held, DelayedSlot::Awaited(_))) {
            *place = DelayedSlot::Slot(slot);
            self.awaited -= 1;
        }
    }

    /// Makes the places of those frames empty that `is_lost` says are gone, and says how many there were.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&Frame) -> bool) -> u64 {
        let mut lost = 0;
        for held in &mut self.places {
            if let DelayedSlot::Slot(StreamSlot::Frame { pts_ns, frame }) = held
                && is_lost(frame)
            {
                *held = DelayedSlot::Slot(StreamSlot::lost(*pts_ns));
                lost += 1;
            }
        }
        lost
    }

    /// Lets the oldest place go, if it can.
    pub(crate) fn pop(&mut self) -> Option<StreamSlot<Frame>> {
        match self.places.front_mut()? {
            DelayedSlot::Awaited(_) => None,
            DelayedSlot::Slot(StreamSlot::Empty { count, first_ns, lost, .. }) if *count > 1 => {
                // Which times the rest of a run has is not known: only its first is certain.
                *count -= 1;
                Some(if *lost { StreamSlot::lost(*first_ns) } else { StreamSlot::empty(*first_ns) })
            }
            DelayedSlot::Slot(_) => match self.places.pop_front() {
                Some(DelayedSlot::Slot(slot)) => Some(slot),
                _ => None,
            },
        }
    }
}
