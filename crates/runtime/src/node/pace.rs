//! Measures how fast a source has recently sent frames, for the [`Birth`] of its frames.
//!
//! A birth is measured when the call of a source begins that makes a frame, and stays with that frame. It consists of the
//! time, the interval since the previous frame, and the recent rate. So `{fps}` is the same figure on two branches of a
//! graph, and latency is measured from birth to sink. The node of a live source replaces the time by the end of the call,
//! because such a call waits for its frame. Under nominal time, births are computed from frame numbers, so that a run can be
//! repeated byte for byte. The caller passes the current time in.

use std::time::Duration;

use crate::clock::Tick;
use crate::frame::Birth;

/// The recent pace of a source.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SourcePace {
    /// Frames carry planned times instead of measured times.
    pub(crate) nominal: bool,
    last_ns: Option<u64>,
    period_ns: f64,
}

impl SourcePace {
    /// Weight of a new period in the average. With this value the displayed rate stays readable and follows changes
    /// within a second.
    const NEW: f64 = 0.1;

    /// Measures the birth of a frame. The caller adds the number of setting changes.
    pub(crate) fn birth(&mut self, since_start: Duration, tick: &Tick) -> Birth {
        let nominal_ns = tick.delta_ns.max(1).unsigned_abs();
        if self.nominal {
            let (at_ns, fps) = (tick.pts_ns.unsigned_abs(), 1e9 / nominal_ns as f64);
            return Birth { at_ns, delta_ns: nominal_ns, fps, settings: 0 };
        }
        let at_ns = since_start.as_nanos() as u64;
        let delta_ns = self.last_ns.map_or(nominal_ns, |last| at_ns.saturating_sub(last).max(1));
        self.period_ns = match self.last_ns.replace(at_ns) {
            None => delta_ns as f64,
            // The first measured period replaces the planned period: an unpaced run may be a hundred times faster than
            // planned.
            Some(_) if tick.number == 1 => delta_ns as f64,
            Some(_) => self.period_ns + SourcePace::NEW * (delta_ns as f64 - self.period_ns),
        };
        Birth { at_ns, delta_ns, fps: 1e9 / self.period_ns, settings: 0 }
    }
}
