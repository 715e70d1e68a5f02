//! Counter readings at growing frame counts, for steady-state averages.
//!
//! Steady state is the second half of a run whose length is not known beforehand. The frame count of each reading is an
//! eighth higher than that of the previous reading. The memory for all readings is allocated at the start.

#[derive(Debug, Clone)]
pub(crate) struct Milestones<T> {
    readings: Vec<(u64, T)>,
    next: u64,
}

/// Enough for any run: steps of an eighth reach 2^64 in 380 steps.
const MOST: usize = 400;

impl<T> Default for Milestones<T> {
    fn default() -> Milestones<T> {
        Milestones { readings: Vec::with_capacity(MOST), next: 1 }
    }
}

impl<T: Copy> Milestones<T> {
    /// Stores a reading if this frame count has reached the next milestone.
    pub(crate) fn pass(&mut self, frames: u64, reading: impl FnOnce() -> T) {
        if frames >= self.next && self.readings.len() < MOST {
            self.readings.push((frames, reading()));
            self.next = frames + 1 + frames / 8;
        }
    }

    /// The frame count of the next milestone.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The first reading at or after the middle of a run of this many frames, with which the second half begins. `None`
    /// if the run was too short to have two halves.
    pub(crate) fn middle(&self, frames: u64) -> Option<(u64, T)> {
        let middle = self.readings.iter().find(|(at, _)| *at >= frames / 2 && *at > 0);
        middle.filter(|(at, _)| *at < frames).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_never_far_past_the_half() {
        let mut milestones = Milestones::default();
        (1..=100_000).for_each(|frames| milestones.pass(frames, || frames));
        for total in [2_u64, 3, 7, 10, 100, 1_000, 99_999] {
            let (at, reading) = milestones.middle(total).expect("two halves");
            assert_eq!(at, reading);
            assert!(at >= total / 2 && at <= total / 2 + 2 + total / 14, "{at} of {total}");
        }
        assert!(milestones.middle(1).is_none());
    }
}
