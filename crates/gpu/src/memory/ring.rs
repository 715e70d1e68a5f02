//! A bounded set of slots that are claimed, sent, taken and released.
//!
//! The user of a ring keeps the contents of the slots and knows when a slot has arrived.
//!
//! Invariants: a slot is reused only after it is free. Slots are taken in the order in which they were sent.

use std::collections::VecDeque;

/// Slots of a staging or readback ring.
#[derive(Debug, Clone)]
pub struct StagingRing {
    slots: Vec<SlotState>,
    sent: VecDeque<(u64, usize)>,
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotState {
    Free,
    Filling,
    Sent,
    Held,
}

impl StagingRing {
    /// A ring of this many free slots, at least one.
    pub fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self { slots: vec![SlotState::Free; slots], sent: VecDeque::with_capacity(slots), last: 0 }
    }

    /// Claims the lowest free slot: low slots are used most often, and their memory is most likely still in a cache.
    pub fn claim(&mut self) -> Option<usize> {
        let slot = self.slots.iter().position(|state| *state == SlotState::Free)?;
        self.slots[slot] = SlotState::Filling;
        Some(slot)
    }

    /// Frees a claimed slot that was not sent.
    pub fn abandon(&mut self, slot: usize) {
        self.step(slot, SlotState::Filling, SlotState::Free);
    }

    /// Sends a claimed slot and returns its ticket; tickets count from 1.
    pub fn send(&mut self, slot: usize) -> u64 {
        self.step(slot, SlotState::Filling, SlotState::Sent);
        self.last += 1;
        self.sent.push_back((self.last, slot));
        self.last
    }

    /// The ticket and slot of the oldest sent slot.
    pub fn oldest(&self) -> Option<(u64, usize)> {
        self.sent.front().copied()
    }

    /// Takes the oldest sent slot. The slot stays held until the slot is released.
    pub fn take(&mut self) -> Option<(u64, usize)> {
        let (ticket, slot) = self.sent.pop_front()?;
        self.step(slot, SlotState::Sent, SlotState::Held);
        Some((ticket, slot))
    }

    /// Frees a slot that was taken.
    pub fn release(&mut self, slot: usize) {
        self.step(slot, SlotState::Held, SlotState::Free);
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn free(&self) -> usize {
        self.slots.iter().filter(|state| **state == SlotState::Free).count()
    }

    /// Slots that were sent and not taken.
    pub fn sent(&self) -> usize {
        self.sent.len()
    }

    fn step(&mut self, slot: usize, from: SlotState, to: SlotState) {
        assert_eq!(self.slots[slot], from, "slot {slot} of a ring was to become {to:?}");
        self.slots[slot] = to;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_ring_refuses_until_a_slot_is_released() {
        let mut ring = StagingRing::new(2);
        for expected in 1..=2 {
            let slot = ring.claim().unwrap();
            assert_eq!(ring.send(slot), expected);
        }
        assert_eq!(ring.claim(), None);
        let (ticket, slot) = ring.take().unwrap();
        assert_eq!((ticket, ring.claim()), (1, None), "what is held is not free");
        ring.release(slot);
        assert_eq!(ring.claim(), Some(slot));
    }

    #[test]
    fn a_held_slot_does_not_stop_the_others() {
        let mut ring = StagingRing::new(3);
        let slot = ring.claim().unwrap();
        ring.send(slot);
        let (_, held) = ring.take().unwrap();
        for _ in 0..10 {
            let slot = ring.claim().unwrap();
            assert_ne!(slot, held);
            ring.send(slot);
            let (_, slot) = ring.take().unwrap();
            ring.release(slot);
        }
    }

    #[test]
    #[should_panic(expected = "slot 0 of a ring")]
    fn releasing_what_was_not_taken_is_a_bug() {
        StagingRing::new(1).release(0);
    }

    proptest! {
        #[test]
        fn slots_are_never_shared_and_arrive_in_order(slots in 1_usize..5, steps in prop::collection::vec(0_u8..5, 0..200)) {
            let mut ring = StagingRing::new(slots);
            let (mut filling, mut held, mut sent, mut taken) = (Vec::new(), Vec::new(), 0, 0);
            for step in steps {
                match step {
                    0 => match ring.claim() {
                        Some(slot) => {
                            prop_assert!(!filling.contains(&slot) && !held.contains(&slot));
                            filling.push(slot);
                        }
                        None => prop_assert_eq!(filling.len() + held.len() + ring.sent(), slots),
                    },
                    1 => if let Some(slot) = filling.pop() {
                        sent += 1;
                        prop_assert_eq!(ring.send(slot), sent);
                    },
                    2 => if let Some((ticket, slot)) = ring.take() {
                        taken += 1;
                        prop_assert_eq!(ticket, taken);
                        held.push(slot);
                    } else {
                        prop_assert_eq!(sent, taken);
                    },
                    3 => if !held.is_empty() { ring.release(held.remove(0)) },
                    _ => if let Some(slot) = filling.pop() { ring.abandon(slot) },
                }
                prop_assert_eq!(ring.free() + filling.len() + held.len() + ring.sent(), ring.slots());
            }
        }
    }
}
