//! Joins the reports of the engines of one run, if the graph was replaced while it ran.
//!
//! Counts of frames and of work are sums over the whole run, and handlers of all graphs are listed, so that a check of the
//! report covers the whole run. A figure of the steady state is that of the graph in which it was larger. Times per frame,
//! memory, links and groups are those of the last graph, because earlier graphs may have had other ones.

use super::report::{Dropped, HandlerTime, PerFrame, Placement, Report, RunCounters};

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
        let (steady, placement) = (self.steady.worse(&last.steady), self.placement.joined(&last.placement));
        let mut handlers = last.handlers.clone();
        for before in self.handlers {
            match handlers.iter_mut().find(|own| own.name == before.name && own.space == before.space) {
                Some(own) => own.count(&before),
                None => handlers.push(HandlerTime { p50_us: None, ..before }),
            }
        }
        Report {
            // The device of the graph that used one.
            backend: if last.placement.gpu_frames == 0 { self.backend } else { last.backend },
            device: if last.placement.gpu_frames == 0 { self.device } else { last.device },
            steady,
            placement,
            handlers,
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

impl Report {
    /// Counts frames that a handler held and that no other graph continues with.
    pub(crate) fn drop_held(&mut self, handler: &str, frames: u64) {
        self.filtered += frames;
        if let Some(row) = self.handlers.iter_mut().find(|row| row.name == handler) {
            row.calls += frames;
            row.filtered += frames;
        }
    }
}

impl HandlerTime {
    /// Adds the frames of the same handler in an earlier graph.
    fn count(&mut self, before: &HandlerTime) {
        self.calls += before.calls;
        self.cpu_calls += before.cpu_calls;
        self.errors += before.errors;
        self.problems += before.problems;
        self.lost += before.lost;
        self.emitted += before.emitted;
        self.filtered += before.filtered;
    }
}

impl Placement {
    fn joined(&self, last: &Placement) -> Placement {
        Placement {
            gpu_handlers: last.gpu_handlers,
            cpu_handlers: self.cpu_handlers.max(last.cpu_handlers),
            frames: self.frames + last.frames,
            gpu_frames: self.gpu_frames + last.gpu_frames,
            cpu_frames: self.cpu_frames + last.cpu_frames,
            moved_frames: self.moved_frames + last.moved_frames,
            graphs_off_device: self.graphs_off_device + last.graphs_off_device,
            device_losses: self.device_losses + last.device_losses,
        }
    }
}

impl PerFrame {
    /// The larger of each figure. A graph that was too short to have a steady state has none.
    fn worse(&self, last: &PerFrame) -> PerFrame {
        if self.frames == 0 || last.frames == 0 {
            return if self.frames == 0 { *last } else { *self };
        }
        let most = |one: Option<f64>, two: Option<f64>| Some(one?.max(two?));
        PerFrame {
            frames: self.frames + last.frames,
            uploads: self.uploads.max(last.uploads),
            downloads: self.downloads.max(last.downloads),
            transfer_bytes: self.transfer_bytes.max(last.transfer_bytes),
            dispatches: self.dispatches.max(last.dispatches),
            passes: self.passes.max(last.passes),
            submits: self.submits.max(last.submits),
            bind_groups: self.bind_groups.max(last.bind_groups),
            gpu_allocs: self.gpu_allocs.max(last.gpu_allocs),
            heap_allocs: most(self.heap_allocs, last.heap_allocs),
            foreign_allocs: most(self.foreign_allocs, last.foreign_allocs),
            frame_copies: self.frame_copies.max(last.frame_copies),
            compiles_after_first_frame: self.compiles_after_first_frame.max(last.compiles_after_first_frame),
            replans: self.replans.max(last.replans),
            max_in_flight: self.max_in_flight.max(last.max_in_flight),
        }
    }
}
