//! Times of a node's calls, and the arrival of frames at sinks.

use std::time::Duration;

use super::Node;

impl Node {
    /// Whether the next call is to be timed.
    pub(crate) fn is_measured(&self) -> bool {
        self.is_sink() || self.measuring.is_due(self.counts.taken)
    }

    /// Records the duration of the last call, which the lane has measured. At a sink, the frame has then arrived;
    /// returns the interval since the sink's previous frame.
    pub(crate) fn note_call(&mut self, took: Duration, done: Duration) -> Option<Duration> {
        let took_ns = took.as_nanos() as u64;
        self.stats.call.add(took_ns);
        self.measuring.note(took_ns);
        // A frame that the device still works on has not arrived.
        if !self.is_sink() || self.held.awaited() > 0 {
            return None;
        }
        self.note_arrival(self.last.birth.at_ns, done)
    }

    /// Records the arrival of a frame with this birth at a sink; returns the interval since the previous arrival.
    pub(super) fn note_arrival(&mut self, born_ns: u64, done: Duration) -> Option<Duration> {
        let at_ns = done.as_nanos() as u64;
        self.stats.latency.add(at_ns.saturating_sub(born_ns));
        let interval_ns = at_ns.saturating_sub(self.sunk_ns.replace(at_ns)?);
        self.stats.interval.add(interval_ns);
        Some(Duration::from_nanos(interval_ns))
    }

    /// The number of the last frame that the node received or produced.
    pub(crate) fn last_number(&self) -> u64 {
        self.last.number
    }
}
