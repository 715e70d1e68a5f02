//! Pacing of sources: when a source fires, and with which frame number and time, at an exact rational rate.
//!
//! The caller passes the time in, so that tests and the web can step the clock.
//!
//! A live source skips frames that were due during a stall. Any other paced source slips: a stall delays all later
//! frames, so that no frame of a file is left out and no frames come in a burst.
//!
//! Invariants: frame numbers only grow. Frames of a paced source never come in a burst. A frame's time depends on its
//! number alone.

use std::time::Duration;

use vramp_plan::Rate;

/// One firing of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    pub number: u64,
    /// Computed from the number and the rate.
    pub pts_ns: i64,
    /// Stream time since the previous frame; one period for the first frame.
    pub delta_ns: i64,
    /// Number of frames that were due before this frame and are skipped.
    pub skipped: u64,
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
    before: Option<u64>,
    pace: Pacing,
}

/// When frames are due.
#[derive(Debug, Clone, Copy)]
enum Pacing {
    Free,
    /// At a rate; frames that were due during a stall are skipped.
    Skipping(Rate),
    /// At a rate; each stall delays all later frames. The second field is the total delay so far.
    Slipping(Rate, Duration),
}

impl Clock {
    /// A clock for live sources: fires at `rate` and skips the frames that were due during a stall.
    pub fn paced(rate: Rate) -> Clock {
        Clock { rate, next: 0, before: None, pace: Pacing::Skipping(rate) }
    }

    /// A clock by which a frame is always due. Frames carry the times of `rate` but come as fast as they are consumed.
    pub fn free(rate: Rate) -> Clock {
        Clock { pace: Pacing::Free, ..Clock::paced(rate) }
    }

    /// A clock for files and patterns: frames carry the times of `rate` and come at most at `pace`. After a stall the
    /// clock continues with the next frame, so that no frame is left out.
    pub fn slipping(rate: Rate, pace: Rate) -> Clock {
        Clock { pace: Pacing::Slipping(pace, Duration::ZERO), ..Clock::paced(rate) }
    }

    /// The time of a frame: its number divided by the rate, rounded down to a nanosecond.
    pub fn pts_ns(rate: Rate, number: u64) -> i64 {
        let ns = u128::from(number) * u128::from(rate.den()) * 1_000_000_000 / u128::from(rate.num());
        i64::try_from(ns).unwrap_or(i64::MAX)
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
        let number = match self.pace {
            Pacing::Free => self.next,
            Pacing::Skipping(rate) => {
                if let Some(wait) = wait_until(due_at(rate, self.next), since_start) {
                    return Paced::Wait(wait);
                }
                number_at(rate, since_start).max(self.next)
            }
            Pacing::Slipping(rate, late) => {
                if let Some(wait) = wait_until(due_at(rate, self.next) + late, since_start) {
                    return Paced::Wait(wait);
                }
                self.next
            }
        };
        let pts_ns = Clock::pts_ns(self.rate, number);
        let delta_ns = match self.before {
            None => Clock::pts_ns(self.rate, 1),
            Some(before) => pts_ns - Clock::pts_ns(self.rate, before),
        };
        Paced::Fire(Tick { number, pts_ns, delta_ns, skipped: number - self.next })
    }

    /// Advances past a tick that [`Clock::due`] returned.
    pub fn fired(&mut self, tick: &Tick, since_start: Duration) {
        (self.before, self.next) = (Some(tick.number), tick.number + 1);
        if let Pacing::Slipping(rate, late) = &mut self.pace {
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

/// The number of the newest frame that is due at a time.
fn number_at(rate: Rate, since_start: Duration) -> u64 {
    let frames = since_start.as_nanos() * u128::from(rate.num());
    u64::try_from(frames / (u128::from(rate.den()) * 1_000_000_000)).unwrap_or(u64::MAX)
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

    #[test]
    fn a_slipping_clock_leaves_no_frame_out_and_does_not_flood() {
        let mut clock = Clock::slipping(rate("25"), rate("100"));
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
