//! Pace: how fast a source has been lately.
//!
//! Owns the measuring of what stays with a frame from its birth on.
//! Does not read the time: it is told.
//!
//! Always: a displayed rate follows within a second and can be read; a nominal pace depends on frame numbers only.

use std::time::Duration;

use crate::clock::Tick;
use crate::frame::Birth;

/// How fast a source has been lately.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SourcePace {
    /// Whether frames carry the times of the plan instead of measured ones.
    pub(crate) nominal: bool,
    last_ns: Option<u64>,
    period_ns: f64,
}

impl SourcePace {
    /// A new period counts a tenth: a displayed rate that can be read, and that follows within a second.
    const NEW: f64 = 0.1;

    /// What is measured when a frame is sent.
    pub(crate) fn birth(&mut self, since_start: Duration, tick: &Tick) -> Birth {
        let nominal_ns = tick.delta_ns.max(1).unsigned_abs();
        if self.nominal {
            return Birth { at_ns: tick.pts_ns.unsigned_abs(), delta_ns: nominal_ns, fps: 1e9 / nominal_ns as f64 };
        }
        let at_ns = since_start.as_nanos() as u64;
        let delta_ns = self.last_ns.map_or(nominal_ns, |last| at_ns.saturating_sub(last).max(1));
        self.period_ns = match self.last_ns.replace(at_ns) {
            None => delta_ns as f64,
            // The first measured period replaces the planned one: a free run may be a hundred times faster.
            Some(_) if tick.number == 1 => delta_ns as f64,
            Some(_) => self.period_ns + SourcePace::NEW * (delta_ns as f64 - self.period_ns),
        };
        Birth { at_ns, delta_ns, fps: 1e9 / self.period_ns }
    }
}
