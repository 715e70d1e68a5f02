//! Pacing of sources: when a source fires, and with which frame number and time, at an exact rational rate.
//!
//! The caller passes the time in, so that tests and the web can step the clock.
//!
//! A live source is due whenever a frame has arrived, and its frames have the times of their arrival. Any other source
//! has the times of its rate. A pace changes when frames are due, never their times. A paced source slips: a stall
//! delays all later frames, so that no frame of a file is left out and no frames come in a burst. A source may replace
//! the clock's time of a frame by its own ([`Call::stamp`](crate::Call::stamp)).
//!
//! Invariants: frame numbers grow by one, and times grow. Frames of a paced source never come in a burst. Except for a
//! live source, a frame's time depends on its number alone.

use std::time::Duration;

use vramp_plan::Rate;

/// One firing of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    pub number: u64,
    pub pts_ns: i64,
    /// Stream time since the previous frame; one period for the first frame.
    pub delta_ns: i64,
}

/// The answer of [`Clock::due`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paced {
    Fire(Tick),
    /// The next frame is due after this long.
    Wait(Duration),
}

/// Counts frames at a rate.
#[derive(Debug, Clone)]
pub struct Clock {
    rate: Rate,
    next: u64,
    /// The time of the previous frame.
    before_ns: Option<i64>,
    pace: Option<Pace>,
    /// Whether frames have the times at which they arrive.
    arrivals: bool,
    /// A frame number and its time, from which the times of later frames are counted.
    origin: (u64, i64),
}

/// A rate at which frames are due at most.
#[derive(Debug, Clone, Copy)]
struct Pace {
    rate: Rate,
    /// The sum of all stalls. Each stall delays all later frames.
    late: Duration,
}

impl Clock {
    /// A clock by which a frame is always due. Frames carry the times of `rate` but come as fast as they are consumed.
    pub fn free(rate: Rate) -> Clock {
        Clock { rate, next: 0, before_ns: None, pace: None, arrivals: false, origin: (0, 0) }
    }

    /// A clock for live sources: a frame is due when it arrives, and carries the time of its arrival. `rate` is the
    /// expected rate.
    pub fn arrivals(rate: Rate) -> Clock {
        Clock { arrivals: true, ..Clock::free(rate) }
    }

    /// Makes frames due at most at this pace; the times of frames stay the same. After a stall the clock continues with
    /// the next frame, so that no frame is left out.
    #[must_use]
    pub fn pace(self, rate: Rate) -> Clock {
        Clock { pace: Some(Pace { rate, late: Duration::ZERO }), ..self }
    }

    /// Continues after the last frame of another clock, at this clock's rate.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn continue_after(&mut self, other: &Clock) {
        (self.next, self.before_ns) = (other.next, other.before_ns);
        self.pace = other.pace.or(self.pace);
        self.origin = if self.rate == other.rate {
            other.origin
        } else {
            let period_ns = Clock::pts_ns(self.rate, 1);
            (other.next, other.before_ns.map_or(0, |before| before.saturating_add(period_ns)))
        };
    }

    /// The number of the next frame.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The time of a frame: its number divided by the rate, rounded down to a nanosecond.
    pub fn pts_ns(rate: Rate, number: u64) -> i64 {
        let ns = u128::from(number) * u128::from(rate.den()) * 1_000_000_000 / u128::from(rate.num());
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    /// Whether frames are due when they arrive.
    pub(crate) fn is_of_arrivals(&self) -> bool {
        self.arrivals
    }

    /// The time of the next frame, if it is not a time of arrival.
    pub(crate) fn next_ns(&self) -> Option<i64> {
        let (first, first_ns) = self.origin;
        let pts_ns = first_ns.saturating_add(Clock::pts_ns(self.rate, self.next.saturating_sub(first)));
        // The source may have given the previous frame a later time.
        (!self.arrivals).then(|| self.before_ns.map_or(pts_ns, |before| pts_ns.max(before.saturating_add(1))))
    }

    /// Fires if a frame is due at this time since the start.
    pub fn ask(&mut self, since_start: Duration) -> Paced {
        let paced = self.due(since_start);
        if let Paced::Fire(tick) = paced {
            self.fired(&tick, since_start);
        }
        paced
    }

    /// What [`Clock::ask`] would return; changes nothing.
    pub fn due(&self, since_start: Duration) -> Paced {
        let number = self.next;
        if let Some(Pace { rate, late }) = self.pace
            && let Some(wait) = wait_until(due_at(rate, number) + late, since_start)
        {
            return Paced::Wait(wait);
        }
        let pts_ns = self.next_ns().unwrap_or_else(|| {
            let now_ns = i64::try_from(since_start.as_nanos()).unwrap_or(i64::MAX);
            self.before_ns.map_or(now_ns, |before| now_ns.max(before.saturating_add(1)))
        });
        let delta_ns = self.before_ns.map_or_else(|| Clock::pts_ns(self.rate, 1), |before| pts_ns - before);
        Paced::Fire(Tick { number, pts_ns, delta_ns })
    }

    /// Advances past a tick that [`Clock::due`] returned.
    pub fn fired(&mut self, tick: &Tick, since_start: Duration) {
        (self.before_ns, self.next) = (Some(tick.pts_ns), tick.number + 1);
        if let Some(Pace { rate, late }) = &mut self.pace {
            // A delay of less than a period is jitter that later frames may make up for; only a longer delay counts as
            // a stall.
            let behind = since_start.saturating_sub(due_at(*rate, tick.number) + *late);
            let period = due_at(*rate, 1);
            *late += behind.saturating_sub(period);
        }
    }
}

fn due_at(rate: Rate, number: u64) -> Duration {
    Duration::from_nanos(Clock::pts_ns(rate, number).unsigned_abs())
}

fn wait_until(due: Duration, since_start: Duration) -> Option<Duration> {
    due.checked_sub(since_start).filter(|wait| !wait.is_zero())
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
        let mut clock = Clock::free(rate("50")).pace(rate("50"));
        assert_eq!(fire(&mut clock, 0), Tick { number: 0, pts_ns: 0, delta_ns: 20_000_000 });
        assert_eq!(clock.ask(Duration::from_millis(5)), Paced::Wait(Duration::from_millis(15)));
        assert_eq!(fire(&mut clock, 20).number, 1);
    }

    #[test]
    fn frames_of_a_live_source_have_the_times_of_their_arrival() {
        let mut clock = Clock::arrivals(rate("100"));
        let times: Vec<_> = [3, 20, 20, 1_005].map(|ms| fire(&mut clock, ms)).into();
        let of = |number, pts_ns, delta_ns| Tick { number, pts_ns, delta_ns };
        let expected = [
            of(0, 3_000_000, 10_000_000),
            of(1, 20_000_000, 17_000_000),
            of(2, 20_000_001, 1),
            of(3, 1_005_000_000, 984_999_999),
        ];
        assert_eq!(times, expected);
    }

    #[test]
    fn a_time_that_goes_back_never_takes_a_frame_back() {
        let mut clock = Clock::arrivals(rate("30"));
        fire(&mut clock, 10_000);
        assert_eq!(fire(&mut clock, 0), Tick { number: 1, pts_ns: 10_000_000_001, delta_ns: 1 });
    }

    #[test]
    fn a_pace_delays_arrivals_and_leaves_their_times() {
        let mut clock = Clock::arrivals(rate("30")).pace(rate("10"));
        assert_eq!(fire(&mut clock, 7).pts_ns, 7_000_000);
        assert_eq!(clock.ask(Duration::from_millis(40)), Paced::Wait(Duration::from_millis(60)));
        assert_eq!(fire(&mut clock, 120).pts_ns, 120_000_000);
    }

    #[test]
    fn a_free_clock_is_always_due() {
        let mut clock = Clock::free(rate("30000/1001"));
        for number in 0..1000 {
            let tick = fire(&mut clock, 0);
            assert_eq!(tick.number, number);
            assert_eq!(tick.pts_ns, Clock::pts_ns(rate("30000/1001"), number));
        }
        assert_eq!(Clock::pts_ns(rate("30000/1001"), 30_000), 1_001_000_000_000);
    }

    #[test]
    fn a_paced_clock_leaves_no_frame_out_and_does_not_flood() {
        let mut clock = Clock::free(rate("25")).pace(rate("100"));
        let mut fired = Vec::new();
        // A stall of a second after the fourth frame.
        for ms in (0..40).chain(1040..1100) {
            if let Paced::Fire(tick) = clock.ask(Duration::from_millis(ms)) {
                fired.push((ms, tick.number, tick.pts_ns / 1_000_000));
            }
        }
        let numbers: Vec<u64> = fired.iter().map(|f| f.1).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        assert!(fired.iter().all(|f| f.2 == f.1.cast_signed() * 40), "{fired:?}");
        let after = fired.iter().filter(|f| f.0 >= 1040).count();
        assert!((6..=8).contains(&after), "60 ms at 100 frames a second, with one frame caught up: {fired:?}");
    }
}
