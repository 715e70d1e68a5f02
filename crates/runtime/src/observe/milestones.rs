//! Milestones: what had been counted when so many frames were through.
//!
//! Owns readings of counters along a run, each an eighth further on than the one before, so that the second half of a
//! run can be told from its first although nobody knew how long it would be.
//! Does not read counters itself: whoever passes a milestone brings the reading.
//!
//! Always: at most a few hundred readings, in memory that is there from the start.

/// Readings along a run.
#[derive(Debug, Clone)]
pub(crate) struct Milestones<T> {
    readings: Vec<(u64, T)>,
    next: u64,
}

/// Enough for any run: an eighth further each time reaches 2^64 in 380 steps.
const MOST: usize = 400;

impl<T> Default for Milestones<T> {
    fn default() -> Milestones<T> {
        Milestones { readings: Vec::with_capacity(MOST), next: 1 }
    }
}

impl<T: Copy> Milestones<T> {
    /// Notes a reading if this many frames are a milestone.
    pub(crate) fn pass(&mut self, frames: u64, reading: impl FnOnce() -> T) {
        if frames >= self.next && self.readings.len() < MOST {
            self.readings.push((frames, reading()));
            self.next = frames + 1 + frames / 8;
        }
    }

    /// How many frames the next milestone has.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The reading from which the second half of a run of this many frames counts: the first at or behind its middle.
    /// None where a run was too short to have two halves.
    pub(crate) fn middle(&self, frames: u64) -> Option<(u64, T)> {
        let middle = self.readings.iter().find(|(at, _)| *at >= frames / 2 && *at > 0);
        middle.filter(|(at, _)| *at < frames).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_never_far_behind_the_half() {
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
