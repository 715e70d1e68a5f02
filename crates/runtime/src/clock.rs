//! The clock: when a paced source fires, and with which number.
//!
//! Owns the arithmetic of frame numbers and times at an exact rate.
//! Does not read the time: it is told, so that tests and the web can step it.
//!
//! Always: numbers only grow; after a stall the frames that were due are skipped, never sent in a burst; a frame's time
//! follows from its number alone.

use std::time::Duration;

use vramp_plan::Rate;

/// One firing of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// The frame's number.
    pub number: u64,
    /// Its time, from its number and the rate.
    pub pts_ns: i64,
    /// Time since the frame before, in stream time; a period for the first.
    pub delta_ns: i64,
    /// Frames that were due and are skipped.
    pub skipped: u64,
}

/// What a clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paced {
    /// Fire now.
    Fire(Tick),
    /// Nothing is due for this long.
    Wait(Duration),
}

/// Counts frames at a rate.
#[derive(Debug, Clone)]
pub struct Clock {
    rate: Rate,
    next: u64,
    before: Option<u64>,
    paced: bool,
}

impl Clock {
    /// A clock that fires at this rate.
    pub fn paced(rate: Rate) -> Clock {
        Clock { rate, next: 0, before: None, paced: true }
    }

    /// A clock that is always due: frames carry the times of this rate, but come as fast as they are wanted.
    pub fn free(rate: Rate) -> Clock {
        Clock { paced: false, ..Clock::paced(rate) }
    }

    /// The time of a frame: its number divided by the rate, rounded down to a nanosecond.
    pub fn pts_ns(rate: Rate, number: u64) -> i64 {
        let ns = u128::from(number) * u128::from(rate.den()) * 1_000_000_000 / u128::from(rate.num());
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// Asks whether a frame is due, this long after the start.
    pub fn ask(&mut self, since_start: Duration) -> Paced {
        let mut skipped = 0;
        if self.paced {
            let due = Duration::from_nanos(Clock::pts_ns(self.rate, self.next).unsigned_abs());
            if let Some(wait) = due.checked_sub(since_start).filter(|wait| !wait.is_zero()) {
                return Paced::Wait(wait);
            }
            let newest = self.number_at(since_start).max(self.next);
            skipped = newest - self.next;
            self.next = newest;
        }
        let number = self.next;
        let pts_ns = Clock::pts_ns(self.rate, number);
        let delta_ns = match self.before.replace(number) {
            None => Clock::pts_ns(self.rate, 1),
            Some(before) => pts_ns - Clock::pts_ns(self.rate, before),
        };
        self.next = number + 1;
        Paced::Fire(Tick { number, pts_ns, delta_ns, skipped })
    }

    /// The newest frame that is due at a time.
    fn number_at(&self, since_start: Duration) -> u64 {
        let frames = since_start.as_nanos() * u128::from(self.rate.num());
        u64::try_from(frames / (u128::from(self.rate.den()) * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    fn fire(clock: &mut Clock, ms: u64) -> Tick {
        match clock.ask(Duration::from_millis(ms)) {
            Paced::Fire(tick) => tick,
            Paced::Wait(wait) => panic!("waits {wait:?}"),
        }
    }

    #[test]
    fn the_first_frame_is_due_at_once_and_its_delta_is_a_period() {
        let mut clock = Clock::paced(rate("50"));
        assert_eq!(fire(&mut clock, 0), Tick { number: 0, pts_ns: 0, delta_ns: 20_000_000, skipped: 0 });
        assert_eq!(clock.ask(Duration::from_millis(5)), Paced::Wait(Duration::from_millis(15)));
        assert_eq!(fire(&mut clock, 20).number, 1);
    }

    #[test]
    fn after_a_stall_due_frames_are_skipped_and_counted_never_sent_in_a_burst() {
        let mut clock = Clock::paced(rate("100"));
        fire(&mut clock, 0);
        let late = fire(&mut clock, 1_005);
        assert_eq!((late.number, late.skipped, late.delta_ns), (100, 99, 1_000_000_000));
        assert_eq!(clock.ask(Duration::from_millis(1_005)), Paced::Wait(Duration::from_millis(5)));
        assert_eq!(fire(&mut clock, 1_010).number, 101);
    }

    #[test]
    fn a_time_that_goes_back_never_takes_a_number_back() {
        let mut clock = Clock::paced(rate("30"));
        fire(&mut clock, 10_000);
        assert!(matches!(clock.ask(Duration::ZERO), Paced::Wait(_)));
        assert_eq!(fire(&mut clock, 10_034).number, 301);
    }

    #[test]
    fn a_free_clock_is_always_due_and_skips_nothing() {
        let mut clock = Clock::free(rate("30000/1001"));
        for number in 0..1000 {
            let tick = fire(&mut clock, 0);
            assert_eq!((tick.number, tick.skipped), (number, 0));
            assert_eq!(tick.pts_ns, Clock::pts_ns(rate("30000/1001"), number));
        }
        assert_eq!(Clock::pts_ns(rate("30000/1001"), 30_000), 1_001_000_000_000);
    }
}
