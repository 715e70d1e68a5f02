//! How regularly frames reach the screen: the times between two shown frames, in buckets.

use std::time::{Duration, Instant};

/// Buckets of a quarter of a millisecond, up to one second.
const BUCKET_US: u64 = 250;
const BUCKETS: usize = 4000;

#[derive(Debug)]
pub(crate) struct Intervals {
    counts: Box<[u32]>,
    longest: Duration,
    shown: u64,
    last: Option<Instant>,
}

impl Default for Intervals {
    fn default() -> Intervals {
        Intervals { counts: vec![0; BUCKETS].into(), longest: Duration::ZERO, shown: 0, last: None }
    }
}

impl Intervals {
    /// A new frame is on the screen.
    pub(crate) fn shown(&mut self, at: Instant) {
        self.shown += 1;
        if let Some(last) = self.last.replace(at) {
            let interval = at.saturating_duration_since(last);
            let bucket = (interval.as_micros() as u64 / BUCKET_US).min(BUCKETS as u64 - 1);
            self.counts[bucket as usize] += 1;
            self.longest = self.longest.max(interval);
        }
    }

    /// The next interval does not count, because the window was paused.
    pub(crate) fn pause(&mut self) {
        self.last = None;
    }

    /// What happened, in words.
    pub(crate) fn words(&self) -> String {
        let frames = if self.shown == 1 { "1 frame".to_owned() } else { format!("{} frames", self.shown) };
        let (Some(half), Some(most)) = (self.quantile(0.5), self.quantile(0.99)) else {
            return format!("{frames} shown");
        };
        let longest = self.longest.as_secs_f64() * 1e3;
        format!("{frames} shown, {half:.1} ms apart (p50), {most:.1} ms (p99), {longest:.1} ms (longest)")
    }

    /// The middle of the bucket below which this part of the intervals is, in milliseconds.
    fn quantile(&self, part: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().map(|count| u64::from(*count)).sum();
        let wanted = (all as f64 * part).ceil() as u64;
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += u64::from(*count);
            below > 0 && below >= wanted
        })?;
        Some(((bucket as f64 + 0.5) * BUCKET_US as f64 / 1e3).min(self.longest.as_secs_f64() * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted_between_frames_but_not_across_a_pause() {
        let begun = Instant::now();
        let mut intervals = Intervals::default();
        assert_eq!(intervals.words(), "0 frames shown");
        let mut at = begun;
        for number in 0..201 {
            intervals.shown(at);
            at += Duration::from_micros(if number == 99 { 50_000 } else { 16_700 });
        }
        intervals.pause();
        intervals.shown(at + Duration::from_secs(60));
        assert_eq!(intervals.words(), "202 frames shown, 16.6 ms apart (p50), 16.6 ms (p99), 50.0 ms (longest)");
    }

    #[test]
    fn one_frame_has_no_interval() {
        let mut intervals = Intervals::default();
        intervals.shown(Instant::now());
        assert_eq!(intervals.words(), "1 frame shown");
    }
}
