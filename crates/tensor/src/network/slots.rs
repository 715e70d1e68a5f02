//! Which memories share room: a memory needs room from the step that writes it to the last step that reads it.
//!
//! Invariant: a step's outputs and temporary memory never share room with its inputs, because a device refuses a buffer
//! that one dispatch both reads and writes.

/// A memory that needs room: its words, and the first and last step during which it is needed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lifetime {
    pub(super) words: usize,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The slot of each memory, and the words of each slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SlotPlan {
    pub(super) slots: Vec<usize>,
    pub(super) words: Vec<usize>,
}

/// Assigns slots. Among the free slots, the smallest that is large enough is taken, otherwise the largest grows.
pub(super) fn plan(lifetimes: &[Lifetime]) -> SlotPlan {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|at| (lifetimes[*at].first, std::cmp::Reverse(lifetimes[*at].words)));
    let mut words: Vec<usize> = Vec::new();
    let mut busy_until: Vec<usize> = Vec::new();
    let mut slots = vec![0; lifetimes.len()];
    for at in order {
        let Lifetime { words: wanted, first, last } = lifetimes[at];
        let free = (0..words.len()).filter(|slot| busy_until[*slot] < first);
        let chosen = free.min_by_key(|slot| match words[*slot].checked_sub(wanted) {
            Some(more) => (0, more),
            None => (1, wanted - words[*slot]),
        });
        let slot = chosen.unwrap_or_else(|| {
            words.push(0);
            busy_until.push(0);
            words.len() - 1
        });
        words[slot] = words[slot].max(wanted);
        busy_until[slot] = last;
        slots[at] = slot;
    }
    SlotPlan { slots, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_share_room_only_if_their_lives_do_not_touch() {
        let life = |words, first, last| Lifetime { words, first, last };
        let lives = [life(8, 0, 1), life(4, 1, 2), life(6, 2, 3), life(100, 3, 4), life(2, 2, 9)];
        let SlotPlan { slots, words } = plan(&lives);
        for (one, a) in lives.iter().enumerate() {
            assert!(words[slots[one]] >= a.words);
            for (two, b) in lives.iter().enumerate().filter(|(two, _)| *two != one) {
                let apart = a.last < b.first || b.last < a.first;
                assert!(apart || slots[one] != slots[two], "{one} {two}");
            }
        }
        assert_eq!(words.len(), 3, "{words:?}");
    }
}
