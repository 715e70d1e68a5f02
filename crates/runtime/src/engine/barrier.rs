//! The barrier: where sources pause so that another engine can continue the run.
//!
//! A stream that simply stopped would leave joins with unpaired frames: one source may be ahead of another. So the
//! engine first makes every source pause where it is. Then sources that are behind continue until all sources whose
//! frames are paired have sent their frames up to the time of the furthest, and announce that nothing up to that time
//! will come any more. Then lanes run until nothing moves. Nothing has ended at that point, so that the run can also
//! resume, for example because a source waits for its input and does not pause.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
#[cfg(not(target_arch = "wasm32"))]
use std::time::{Duration, Instant};

use crate::link::ring::BEFORE_ALL;
#[cfg(not(target_arch = "wasm32"))]
use crate::memory::shortage::WaitingLane;

/// Tells the sources of a run to pause.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// 0 while sources run. Changes whenever sources have to look at their marks again.
    round: AtomicU32,
}

impl Barrier {
    /// The round; `None` while there is no barrier.
    pub(crate) fn round(&self) -> Option<u32> {
        Some(self.round.load(Ordering::Acquire)).filter(|round| *round > 0)
    }

    /// Begins the next round.
    pub(super) fn raise(&self) {
        self.round.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn lower(&self) {
        self.round.store(0, Ordering::Release);
    }
}

/// Where a source pauses, and what the source has told about it.
#[derive(Debug)]
pub(crate) struct SourceMark {
    name: String,
    /// The same number for sources whose frames are paired with each other.
    company: AtomicU32,
    /// The source continues up to this time.
    until_ns: AtomicI64,
    round: AtomicU32,
    last_ns: AtomicI64,
    over: AtomicBool,
}

impl SourceMark {
    pub(crate) fn new(name: &str) -> SourceMark {
        SourceMark {
            name: name.to_owned(),
            company: AtomicU32::new(0),
            until_ns: AtomicI64::new(BEFORE_ALL),
            round: AtomicU32::new(0),
            last_ns: AtomicI64::new(BEFORE_ALL),
            over: AtomicBool::new(false),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn join(&self, company: u32) {
        self.company.store(company, Ordering::Relaxed);
    }

    /// The time up to which the source continues in this round.
    pub(crate) fn until_ns(&self) -> i64 {
        self.until_ns.load(Ordering::Acquire)
    }

    /// The source pauses in this round, after a frame of this time.
    pub(crate) fn pause(&self, round: u32, last_ns: i64) {
        self.last_ns.store(last_ns, Ordering::Relaxed);
        self.round.store(round, Ordering::Release);
    }

    /// The source has ended.
    pub(crate) fn end(&self, last_ns: i64) {
        self.last_ns.store(last_ns, Ordering::Relaxed);
        self.over.store(true, Ordering::Release);
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn has_paused(&self, round: u32) -> bool {
        self.over.load(Ordering::Acquire) || self.round.load(Ordering::Acquire) == round
    }
}

/// The way of an engine to the end between two frames.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(super) struct Switch {
    begun: Option<Instant>,
    /// Number of times that sources were made level.
    levels: u32,
    /// Whether all sources have paused at the same time.
    is_level: bool,
    before: Option<Vec<WaitingLane>>,
}

/// What the engine has to do next.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SwitchStep {
    /// Begins the next round of the barrier.
    Raise,
    /// Wakes all lanes, and looks again later.
    Look,
    /// Nothing moves: the lanes can return.
    Switch,
    /// The engine continues, because it did not come to a rest.
    GiveUp(Unrest),
}

/// Why an engine did not come to a rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrest {
    /// This source waits for its input, or its consumers have no room.
    Source(String),
    Frames,
}

/// How long sources pause at most.
#[cfg(not(target_arch = "wasm32"))]
const LONGEST: Duration = Duration::from_secs(2);

/// Sources with times of their own may pass each other again and again.
#[cfg(not(target_arch = "wasm32"))]
const MOST_LEVELS: u32 = 8;

#[cfg(not(target_arch = "wasm32"))]
impl Switch {
    /// `lanes` are the lanes that have not ended.
    pub(super) fn look(&mut self, barrier: &Barrier, marks: &[Arc<SourceMark>], lanes: Vec<WaitingLane>) -> SwitchStep {
        let Some(begun) = self.begun else {
            self.begun = Some(Instant::now());
            for mark in marks {
                mark.until_ns.store(BEFORE_ALL, Ordering::Release);
            }
            return SwitchStep::Raise;
        };
        let is_late = begun.elapsed() >= LONGEST;
        let Some(round) = barrier.round() else { return SwitchStep::Look };
        if !self.is_level {
            if let Some(missing) = marks.iter().find(|mark| !mark.has_paused(round)) {
                return if is_late {
                    SwitchStep::GiveUp(Unrest::Source(missing.name.clone()))
                } else {
                    SwitchStep::Look
                };
            }
            self.levels += 1;
            if level(marks) && self.levels <= MOST_LEVELS {
                return SwitchStep::Raise;
            }
            self.is_level = true;
        }
        let at_rest = lanes.iter().all(|lane| lane.idle && !lane.starves);
        // Every lane has made one whole step that began after the previous look, and no lane has moved.
        let same =
            |(before, now): (&WaitingLane, &WaitingLane)| before.moves == now.moves && now.tries >= before.tries + 2;
        let moved = |(before, now): (&WaitingLane, &WaitingLane)| before.moves != now.moves;
        match &self.before {
            _ if !at_rest => self.before = None,
            Some(before) if before.len() == lanes.len() && before.iter().zip(&lanes).all(same) => {
                return SwitchStep::Switch;
            }
            Some(before) if before.len() == lanes.len() && !before.iter().zip(&lanes).any(moved) => {}
            _ => self.before = Some(lanes),
        }
        if is_late { SwitchStep::GiveUp(Unrest::Frames) } else { SwitchStep::Look }
    }
}

/// Lets each source continue to the time of the furthest source in its company. Returns whether a source has to.
#[cfg(not(target_arch = "wasm32"))]
fn level(marks: &[Arc<SourceMark>]) -> bool {
    let mut raised = false;
    for mark in marks {
        let company =
            |other: &&Arc<SourceMark>| other.company.load(Ordering::Relaxed) == mark.company.load(Ordering::Relaxed);
        let times = marks.iter().filter(company).map(|other| other.last_ns.load(Ordering::Relaxed));
        let furthest_ns = times.max().unwrap_or(BEFORE_ALL);
        raised |= mark.until_ns.fetch_max(furthest_ns, Ordering::AcqRel) < furthest_ns;
    }
    raised
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    fn lane(moves: u64, tries: u64) -> WaitingLane {
        WaitingLane { moves, tries, idle: true, starves: false }
    }

    #[test]
    fn sources_pause_become_level_and_then_lanes_come_to_a_rest() {
        let (barrier, mut switch) = (Barrier::default(), Switch::default());
        let marks = ["a", "b"].map(|name| Arc::new(SourceMark::new(name)));
        let raise = |step: SwitchStep| {
            assert_eq!(step, SwitchStep::Raise);
            barrier.raise();
            [0, 1].map(|at: usize| marks[at].until_ns())
        };
        assert_eq!(raise(switch.look(&barrier, &marks, vec![])), [BEFORE_ALL; 2]);
        marks[0].pause(1, 30);
        assert_eq!(switch.look(&barrier, &marks, vec![lane(1, 1)]), SwitchStep::Look, "b runs");
        marks[1].pause(1, 70);
        assert_eq!(raise(switch.look(&barrier, &marks, vec![lane(1, 1)])), [70; 2]);
        marks[1].pause(2, 70);
        assert_eq!(switch.look(&barrier, &marks, vec![lane(1, 1)]), SwitchStep::Look, "a is behind");
        marks[0].end(60);
        assert_eq!(switch.look(&barrier, &marks, vec![lane(1, 1)]), SwitchStep::Look, "the first look at rest");
        assert_eq!(switch.look(&barrier, &marks, vec![lane(1, 2)]), SwitchStep::Look, "no whole step since");
        assert_eq!(switch.look(&barrier, &marks, vec![lane(2, 3)]), SwitchStep::Look, "it moved");
        assert_eq!(switch.look(&barrier, &marks, vec![WaitingLane { idle: false, ..lane(2, 9) }]), SwitchStep::Look);
        assert_eq!(switch.look(&barrier, &marks, vec![lane(2, 10)]), SwitchStep::Look);
        assert_eq!(switch.look(&barrier, &marks, vec![lane(2, 12)]), SwitchStep::Switch);
    }

    #[test]
    fn sources_that_are_not_paired_do_not_wait_for_each_other() {
        let marks = ["a", "b", "c"].map(|name| Arc::new(SourceMark::new(name)));
        marks[2].join(1);
        marks.iter().zip([10, 20, 900]).for_each(|(mark, last_ns)| mark.pause(1, last_ns));
        assert!(level(&marks));
        assert_eq!([0, 1, 2].map(|at: usize| marks[at].until_ns()), [20, 20, 900]);
        assert!(!level(&marks));
    }

    #[test]
    fn an_engine_that_does_not_come_to_a_rest_continues() {
        let (barrier, mut switch) = (Barrier::default(), Switch::default());
        let marks = [Arc::new(SourceMark::new("pipe"))];
        switch.look(&barrier, &marks, vec![]);
        barrier.raise();
        switch.begun = Instant::now().checked_sub(LONGEST);
        assert_eq!(switch.look(&barrier, &marks, vec![]), SwitchStep::GiveUp(Unrest::Source("pipe".into())));
    }
}
