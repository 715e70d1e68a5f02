//! Joins the reports of the engines of one run, if the graph was replaced while it ran.
//!
//! Counts of frames and of work are sums over the whole run. Times per frame, figures of the steady state, memory, links,
//! groups and handlers are those of the last graph, because earlier graphs may have had other ones.

use super::report::{Dropped, Report, RunCounters};

impl Report {
    /// The report of a run that this report began and `last` ended.
    #[must_use]
    pub fn joined(self, last: Report) -> Report {
        let both = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
        let (one, two) = (&self.counters, &last.counters);
        let counters = RunCounters {
            uploads: one.uploads + two.uploads,
            downloads: one.downloads + two.downloads,
            transfer_bytes: one.transfer_bytes + two.transfer_bytes,
            dispatches: one.dispatches + two.dispatches,
            passes: one.passes + two.passes,
            submits: one.submits + two.submits,
            bind_groups: one.bind_groups + two.bind_groups,
            gpu_allocs: one.gpu_allocs + two.gpu_allocs,
            heap_allocs: both(one.heap_allocs, two.heap_allocs),
            foreign_allocs: both(one.foreign_allocs, two.foreign_allocs),
            frame_copies: one.frame_copies + two.frame_copies,
            compiles_after_first_frame: one.compiles_after_first_frame + two.compiles_after_first_frame,
            replans: one.replans + two.replans + 1,
            max_in_flight: one.max_in_flight.max(two.max_in_flight),
        };
        let dropped = Dropped {
            link_full: self.dropped.link_full + last.dropped.link_full,
            late: self.dropped.late + last.dropped.late,
            error: self.dropped.error + last.dropped.error,
            device_lost: self.dropped.device_lost + last.dropped.device_lost,
            stopped: self.dropped.stopped + last.dropped.stopped,
        };
        let frames = self.frames + last.frames;
        Report {
            frames,
            fps: if last.seconds > 0.0 { frames as f64 / last.seconds } else { 0.0 },
            counters,
            frames_in: self.frames_in + last.frames_in,
            frames_out: self.frames_out + last.frames_out,
            filtered: self.filtered + last.filtered,
            failed: self.failed + last.failed,
            dropped,
            changes: self.changes + last.changes,
            swaps: self.swaps + last.swaps,
            recoveries: self.recoveries.into_iter().chain(last.recoveries).collect(),
            partial_files: self.partial_files.into_iter().chain(last.partial_files).collect(),
            ..last
        }
    }
}
