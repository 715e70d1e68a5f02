//! The delay line: slots that a node holds back, in order. They are held by `delay`, or await a download.
//!
//! **Delays.** `delay` holds N slots. When a frame arrives, `delay` sends at once the frame that came N slots earlier,
//! under the number and time of the arriving frame. This adds no latency, so parallel links need no depth. With
//! `keep-times`, a frame leaves N slots later under its own time, and parallel links are N slots deep.
//!
//! **Downloads.** A download is recorded now and arrives some submits later. The node holds the slot of the frame and
//! counts the room for the frame as taken. Frames leave in the order in which they were requested.
//!
//! The node sends the oldest slot when that slot is complete and due. Empty slots count like any other slot.

use std::collections::VecDeque;

use crate::frame::Frame;
use crate::frame::notes::Notes;
use crate::handler::Now;
use crate::link::ring::StreamSlot;

#[derive(Debug)]
pub(crate) struct DelayLine {
    slots: VecDeque<DelayedSlot>,
    awaited: usize,
}

/// A slot that is held back.
#[derive(Debug)]
enum DelayedSlot {
    /// Complete; can be sent.
    Slot(StreamSlot<Frame>),
    /// The slot's frame is still being made.
    Awaited(Now, Option<Notes>),
}

impl Default for DelayLine {
    fn default() -> DelayLine {
        DelayLine { slots: VecDeque::with_capacity(8), awaited: 0 }
    }
}

impl DelayLine {
    /// Reserves room for a delay of this many slots, with runs of empty slots in between.
    pub(crate) fn reserve(&mut self, delay: usize) {
        self.slots.reserve(2 * delay + 2);
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.awaited = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the oldest slot can be sent.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.slots.front(), Some(DelayedSlot::Slot(_)))
    }

    /// Number of slots; every empty slot of a run counts.
    pub(crate) fn slot_count(&self) -> u64 {
        let count = |held: &DelayedSlot| match held {
            DelayedSlot::Slot(StreamSlot::Empty { count, .. }) => *count,
            DelayedSlot::Slot(StreamSlot::Frame { .. }) | DelayedSlot::Awaited(..) => 1,
        };
        self.slots.iter().map(count).sum()
    }

    /// Number of slots that await their frames.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited
    }

    /// The time of the oldest frame: no earlier frame will leave. Empty slots do not count, because the slots of a run
    /// leave one by one and only the time of the first slot is known.
    pub(crate) fn first_frame_ns(&self) -> Option<i64> {
        self.slots.iter().find_map(|held| match held {
            DelayedSlot::Slot(StreamSlot::Frame { pts_ns, .. }) => Some(*pts_ns),
            DelayedSlot::Slot(StreamSlot::Empty { .. }) => None,
            DelayedSlot::Awaited(now, _) => Some(now.pts_ns),
        })
    }

    /// Appends a slot. An empty slot is joined with the empty slots before it.
    pub(crate) fn push(&mut self, slot: StreamSlot<Frame>) {
        let rest = match self.slots.back_mut() {
            Some(DelayedSlot::Slot(back)) => back.join(slot),
            _ => Some(slot),
        };
        self.slots.extend(rest.map(DelayedSlot::Slot));
    }

    /// Appends the slot of a frame that arrives later and will have these notes.
    pub(crate) fn await_frame(&mut self, now: Now, notes: Option<Notes>) {
        self.awaited += 1;
        self.slots.push_back(DelayedSlot::Awaited(now, notes));
    }

    /// Takes the notes of the oldest slot that awaits its frame.
    pub(crate) fn awaited_notes(&mut self) -> Option<Notes> {
        self.slots.iter_mut().find_map(|held| match held {
            DelayedSlot::Awaited(_, notes) => Some(notes.take()),
            DelayedSlot::Slot(_) => None,
        })?
    }

    /// The oldest slot that awaits its frame.
    pub(crate) fn oldest_awaited(&self) -> Option<Now> {
        self.slots.iter().find_map(|held| match held {
            DelayedSlot::Awaited(now, _) => Some(*now),
            DelayedSlot::Slot(_) => None,
        })
    }

    /// Fills the oldest awaited slot.
    pub(crate) fn arrive(&mut self, slot: StreamSlot<Frame>) {
        if let Some(awaited) = self.slots.iter_mut().find(|held| matches!(held, DelayedSlot::Awaited(..))) {
            *awaited = DelayedSlot::Slot(slot);
            self.awaited -= 1;
        }
    }

    /// Empties the slots of the frames that `is_lost` selects and returns their number.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&Frame) -> bool) -> u64 {
        let mut lost = 0;
        for held in &mut self.slots {
            if let DelayedSlot::Slot(StreamSlot::Frame { pts_ns, frame }) = held
                && is_lost(frame)
            {
                *held = DelayedSlot::Slot(StreamSlot::lost(*pts_ns));
                lost += 1;
            }
        }
        lost
    }

    /// Removes the oldest slot, if it is complete.
    pub(crate) fn pop(&mut self) -> Option<StreamSlot<Frame>> {
        match self.slots.front_mut()? {
            DelayedSlot::Awaited(..) => None,
            DelayedSlot::Slot(StreamSlot::Empty { count, first_ns, lost, .. }) if *count > 1 => {
                // Only the time of the first slot of a run is known, so the remaining slots keep that time.
                *count -= 1;
                Some(if *lost { StreamSlot::lost(*first_ns) } else { StreamSlot::empty(*first_ns) })
            }
            DelayedSlot::Slot(_) => match self.slots.pop_front() {
                Some(DelayedSlot::Slot(slot)) => Some(slot),
                _ => None,
            },
        }
    }
}
