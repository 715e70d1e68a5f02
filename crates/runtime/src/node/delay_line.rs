//! Holding: places of a stream that a node keeps back, in order.
//!
//! Owns what `delay` holds and what was asked for and comes later.
//! Does not send: the node does, when what is oldest is there and due.
//!
//! Always: places leave in the order they came; empty places count like any other.

use std::collections::VecDeque;

use crate::frame::Frame;
use crate::handler::Now;
use crate::link::ring::Slot;

/// Places that are kept back.
#[derive(Debug)]
pub(crate) struct Holding {
    places: VecDeque<Held>,
    awaited: usize,
}

/// A place that is kept back.
#[derive(Debug)]
enum Held {
    /// It can go.
    Slot(Slot<Frame>),
    /// Its frame is still being made.
    Awaited(Now),
}

impl Default for Holding {
    fn default() -> Holding {
        Holding { places: VecDeque::with_capacity(8), awaited: 0 }
    }
}

impl Holding {
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
        matches!(self.places.front(), Some(Held::Slot(_)))
    }

    /// How many places there are.
    pub(crate) fn places(&self) -> u64 {
        let count = |held: &Held| match held {
            Held::Slot(Slot::Empty { count, .. }) => *count,
            Held::Slot(Slot::Frame { .. }) | Held::Awaited(_) => 1,
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
            Held::Slot(Slot::Frame { pts_ns, .. }) => Some(*pts_ns),
            Held::Slot(Slot::Empty { .. }) => None,
            Held::Awaited(now) => Some(now.pts_ns),
        })
    }

    /// Keeps a slot, joined with the empty places before it.
    pub(crate) fn push(&mut self, slot: Slot<Frame>) {
        let rest = match self.places.back_mut() {
            Some(Held::Slot(back)) => back.join(slot),
            _ => Some(slot),
        };
        self.places.extend(rest.map(Held::Slot));
    }

    /// Keeps the place of a frame that comes later.
    pub(crate) fn await_frame(&mut self, now: Now) {
        self.awaited += 1;
        self.places.push_back(Held::Awaited(now));
    }

    /// The oldest place that waits for its frame.
    pub(crate) fn oldest_awaited(&self) -> Option<Now> {
        self.places.iter().find_map(|held| match held {
            Held::Awaited(now) => Some(*now),
            Held::Slot(_) => None,
        })
    }

    /// Gives the oldest place that waits its frame, or leaves it empty.
    pub(crate) fn arrive(&mut self, slot: Slot<Frame>) {
        if let Some(place) = self.places.iter_mut().find(|held| matches!(held, Held::Awaited(_))) {
            *place = Held::Slot(slot);
            self.awaited -= 1;
        }
    }

    /// Makes the places of those frames empty that `is_lost` says are gone, and says how many there were.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&Frame) -> bool) -> u64 {
        let mut lost = 0;
        for held in &mut self.places {
            if let Held::Slot(Slot::Frame { pts_ns, frame }) = held
                && is_lost(frame)
            {
                *held = Held::Slot(Slot::lost(*pts_ns));
                lost += 1;
            }
        }
        lost
    }

    /// Lets the oldest place go, if it can.
    pub(crate) fn pop(&mut self) -> Option<Slot<Frame>> {
        match self.places.front_mut()? {
            Held::Awaited(_) => None,
            Held::Slot(Slot::Empty { count, first_ns, lost, .. }) if *count > 1 => {
                // Which times the rest of a run has is not known: only its first is certain.
                *count -= 1;
                Some(if *lost { Slot::lost(*first_ns) } else { Slot::empty(*first_ns) })
            }
            Held::Slot(_) => match self.places.pop_front() {
                Some(Held::Slot(slot)) => Some(slot),
                _ => None,
            },
        }
    }
}
