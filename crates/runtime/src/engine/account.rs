//! Builds the report from what nodes, links and pools counted.
//!
//! Conservation holds per link (`sent = taken + dropped + queued`) and per node (`taken = emitted + filtered + failed +
//! lost + held`). Debug builds assert a node's equation after every call, and all equations at the end of every run.
//! Every report contains the terms of all equations.
//!
//! Device work per frame is exact. The device's counters are read before and after a segment's recording is played
//! (turned into a submit), and the difference is divided by the number of frames that entered the segment. If all work
//! of the device were divided by the frames of the run instead, frames in flight would blur the figures, and 1.003
//! submits per frame could hide a real second submit. The work of a segment after `every n=10` is multiplied by a
//! tenth, because only one frame in ten reaches that segment.
//!
//! Invariant, for graphs without forks: every frame that came in went out, was filtered, failed, was dropped, or is
//! still in flight.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::device::lane_player::PlaybackTotals;
use crate::link::ring::DropReason;
use crate::memory::heap::is_counted;
use crate::observe::distribution::{RunDistributions, UnitDistribution};
use crate::observe::monitor::{Histogram, RunProgress};
use crate::observe::pool_progress::PoolProgress;
use crate::observe::report::{
    Dropped, GpuTimes, GroupTime, HandlerTime, LatencyNeed, Leak, LinkUse, MemoryUse, PerFrame, Report, RunCounters,
    TimeStats,
};

use super::watch::{WatchedEngine, WatchedNode};

/// A node's time per frame: device time if the node works on the device, where a call only records commands; otherwise
/// call time.
pub(super) fn time(node: &WatchedNode) -> &Histogram {
    if node.on_device || node.stats.device.count() > 0 { &node.stats.device } else { &node.stats.call }
}

impl WatchedEngine {
    pub(super) fn progress(&self, elapsed: Duration) -> RunProgress {
        let count = |which: fn(&WatchedNode) -> bool| -> u64 {
            self.nodes.iter().filter(|node| which(node)).map(|node| node.stats.counts().taken).sum()
        };
        let before = &self.before;
        let frames_in = before.frames_in + count(|node| node.source);
        let frames_out = before.frames_out + count(|node| node.sink);
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let [cpu_pool, gpu_pool] = self.pools().map(|pool| pool.since(&PoolProgress::default(), seconds));
        RunProgress {
            elapsed,
            frames_in,
            frames_out,
            dropped: before.dropped + self.dropped().sum(),
            fps: frames_out as f64 / seconds,
            cpu_pool,
            gpu_pool,
        }
    }

    /// The pools of the host and of the device, without rates.
    pub(super) fn pools(&self) -> [PoolProgress; 2] {
        let host = PoolProgress::of_host(&self.pool.stats());
        let device = PoolProgress::of_device(&self.device_history.memory());
        [host.after(&self.before.cpu_pool), device.after(&self.before.gpu_pool)]
    }

    /// Records fill levels and drops of all links, frames and memory, if there is a timeline. `last` is true after the
    /// last frame.
    pub(super) fn look_at_run(&self, now: &dyn Fn() -> Duration, last: bool) {
        let Some(trace) = &self.trace else { return };
        let now = now();
        trace.sample(now, last, || self.progress(now));
        for (at, link) in self.links.iter().enumerate() {
            let counts = link.rings.iter().map(crate::link::LinkObserver::counts);
            let (queued, dropped) = counts.fold((0, 0), |(queued, dropped), ring| {
                (queued + ring.queued, dropped + ring.dropped.iter().sum::<u64>())
            });
            trace.look(now, self.first_traced + at, queued, dropped);
        }
    }

    pub(super) fn distributions(&self) -> RunDistributions {
        let (frame, latency) = self.sink_times();
        let unit = |node: &WatchedNode| UnitDistribution {
            handlers: node.names.clone(),
            transfer: node.transfer,
            space: node.space,
            time: time(node).distribution(),
        };
        RunDistributions {
            units: self.nodes.iter().map(unit).collect(),
            frame: frame.distribution(),
            latency: latency.distribution(),
        }
    }

    /// The times between frames at all sinks, and the times from the birth of frames to their sinks.
    pub(super) fn sink_times(&self) -> (Histogram, Histogram) {
        let (interval, latency) = (Histogram::default(), Histogram::default());
        for node in self.nodes.iter().filter(|node| node.sink) {
            interval.merge(&node.stats.interval);
            latency.merge(&node.stats.latency);
        }
        (interval, latency)
    }

    /// The name of the node at a position of a lane.
    pub(super) fn name_at(&self, lane: usize, position: usize) -> String {
        let node = self.nodes.iter().find(|node| node.lane == lane && node.position == position);
        node.map_or_else(|| "a transfer".to_owned(), |node| node.names.join("+"))
    }

    /// Whether the node at a position of a lane is a source.
    pub(super) fn is_source_at(&self, lane: usize, position: usize) -> bool {
        self.nodes.iter().any(|node| node.lane == lane && node.position == position && node.source)
    }

    pub(super) fn dropped(&self) -> Dropped {
        let mut sums = [0; 5];
        // A shared ring before a transfer belongs to several links and is counted once.
        let mut seen: Vec<&crate::link::LinkObserver<crate::frame::Frame>> = Vec::new();
        for ring in self.links.iter().flat_map(|link| &link.rings) {
            if seen.iter().any(|other| other.is_same(ring)) {
                continue;
            }
            seen.push(ring);
            for (sum, dropped) in sums.iter_mut().zip(ring.counts().dropped) {
                *sum += dropped;
            }
        }
        // Frames that nodes held on a lost device.
        sums[DropReason::DeviceLost as usize] += self.nodes.iter().map(|node| node.stats.counts().lost).sum::<u64>();
        by_reason(sums)
    }

    /// The first node or link whose counts do not add up, as text; `None` if every frame is accounted for.
    pub(super) fn imbalance(&self) -> Option<String> {
        let node = self.nodes.iter().find(|node| !node.stats.counts().is_conserved());
        let ring = || self.links.iter().find(|link| link.rings.iter().any(|ring| !ring.counts().is_conserved()));
        node.map(|node| format!("{}: {:?}", node.names.join("+"), node.stats.counts()))
            .or_else(|| ring().map(|link| format!("{} -> {}", link.from, link.to)))
    }

    pub(super) fn report(&self, elapsed: Duration, measured: Option<(&PlaybackTotals, u64)>) -> Report {
        let counts: Vec<_> = self.nodes.iter().map(|node| node.stats.counts()).collect();
        let sum = |which: fn(&WatchedNode) -> bool, what: fn(&crate::observe::monitor::NodeCounts) -> u64| -> u64 {
            self.nodes.iter().zip(&counts).filter(|(node, _)| which(node)).map(|(_, counts)| what(counts)).sum()
        };
        let sinks = || self.nodes.iter().filter(|node| node.sink);
        let frames = sinks().map(|node| node.stats.counts().emitted).max().unwrap_or(0);
        let seconds = elapsed.as_secs_f64();
        let (interval, latency) = self.sink_times();
        let (backend, device) = self.device_history.named().unwrap_or_else(|| ("cpu".to_owned(), "host".to_owned()));
        let links: Vec<LinkUse> = self.links.iter().map(|link| self.link_use(link)).collect();
        let queued: u64 = links.iter().map(|link| link.queued).sum();
        let counters = self.counted();
        Report {
            backend,
            device,
            frames,
            seconds,
            fps: if seconds > 0.0 { frames as f64 / seconds } else { 0.0 },
            frame_ms: times(&interval),
            latency_ms: times(&latency),
            latency_need: self.latency.as_ref().map(|need| LatencyNeed {
                asked_ms: need.asked_ns as f64 / 1e6,
                predicted_ms: need.predicted_ns as f64 / 1e6,
                p50_ms: times(&latency).p50,
            }),
            timing: match measured.map(|(kept, _)| kept.timing()) {
                None => "cpu",
                Some(Some(vramp_gpu::Timing::Timestamps)) => "timestamps",
                Some(_) => "fenced",
            },
            gpu_ms: GpuTimes {
                p50: measured.and_then(|(kept, _)| kept.frame_ns(0.5)).map(|ns| ns / 1e6),
                p99: measured.and_then(|(kept, _)| kept.frame_ns(0.99)).map(|ns| ns / 1e6),
            },
            gpu_busy: measured.and_then(|(kept, _)| kept.busy(elapsed)),
            counters,
            steady: self.steady(measured, &counters),
            frames_in: sum(|node| node.source, |counts| counts.taken),
            frames_out: sum(|node| node.sink, |counts| counts.emitted),
            filtered: sum(|_| true, |counts| counts.filtered),
            failed: sum(|_| true, |counts| counts.failed),
            dropped: self.dropped(),
            in_flight: queued + sum(|node| !node.inserted, |counts| counts.held),
            changes: self.sink_counter.changes.load(Ordering::Relaxed),
            swaps: self.sink_counter.swaps.load(Ordering::Relaxed),
            recoveries: self.device_history.recoveries(),
            placement: self.placement(),
            partial_files: Vec::new(),
            memory: self.memory(measured),
            groups: self.groups(),
            handlers: self.handlers(),
            units: self.unit_times(),
            links,
            ends: Vec::new(),
        }
    }

    pub(super) fn link_use(&self, link: &super::watch::WatchedLink) -> LinkUse {
        let mut all = LinkUse {
            from: link.from.clone(),
            to: link.to.clone(),
            sent: 0,
            taken: 0,
            dropped: 0,
            queued: 0,
            repeats: if link.leads { 0 } else { self.nodes[link.to_node].stats.counts().repeats },
        };
        for (at, ring) in link.rings.iter().enumerate() {
            let counts = ring.counts();
            // On a link through a transfer, frames count as sent before the transfer and as taken after it; frames in
            // between count as queued.
            if at == 0 {
                all.sent = counts.sent;
            }
            all.taken = counts.taken;
            all.dropped += counts.dropped.iter().sum::<u64>();
            all.queued += counts.queued;
        }
        if let Some(transfer) = link.transfer {
            // Frames that did not cross the transfer count as dropped on this link, although the total counts them as
            // failed.
            let counts = self.nodes[transfer].stats.counts();
            all.queued += counts.held;
            all.dropped += counts.failed + counts.lost;
        }
        all
    }

    fn counted(&self) -> RunCounters {
        let reading = self.sink_counter.read();
        let device = self.device_history.counters().since(&self.counted_before);
        let heap = is_counted();
        RunCounters {
            uploads: device.uploads,
            downloads: device.downloads,
            transfer_bytes: device.transfer_bytes,
            dispatches: device.dispatches,
            passes: device.passes,
            submits: device.submits,
            bind_groups: reading.bind_groups - self.begun.bind_groups,
            gpu_allocs: reading.gpu_allocs - self.begun.gpu_allocs,
            heap_allocs: heap.then(|| self.tally.own()),
            foreign_allocs: heap.then(|| self.tally.foreign()),
            frame_copies: reading.frame_copies,
            compiles_after_first_frame: reading.compiles - self.begun.compiles,
            replans: reading.replans,
            max_in_flight: device.max_in_flight,
        }
    }

    fn steady(&self, measured: Option<(&PlaybackTotals, u64)>, counters: &RunCounters) -> PerFrame {
        let Some((frames_before, before)) = self.sink_counter.middle() else { return PerFrame::default() };
        let now = self.sink_counter.read();
        let frames = self.sink_counter.frames() - frames_before;
        let per_frame = |now: u64, before: u64| (now - before) as f64 / frames.max(1) as f64;
        let device_work =
            |counter: fn(&vramp_gpu::Counters) -> u64| measured.map_or(0.0, |(kept, _)| kept.per_frame(counter));
        let heap = is_counted();
        PerFrame {
            frames,
            uploads: device_work(|c| c.uploads),
            downloads: device_work(|c| c.downloads),
            transfer_bytes: device_work(|c| c.transfer_bytes),
            dispatches: device_work(|c| c.dispatches),
            passes: device_work(|c| c.passes),
            submits: device_work(|c| c.submits),
            bind_groups: per_frame(now.bind_groups, before.bind_groups),
            gpu_allocs: per_frame(now.gpu_allocs, before.gpu_allocs),
            heap_allocs: heap.then(|| per_frame(now.heap_allocs, before.heap_allocs)),
            foreign_allocs: heap.then(|| per_frame(now.foreign_allocs, before.foreign_allocs)),
            frame_copies: per_frame(now.frame_copies, before.frame_copies),
            compiles_after_first_frame: per_frame(now.compiles, before.compiles),
            replans: per_frame(now.replans, before.replans),
            max_in_flight: counters.max_in_flight,
        }
    }

    fn memory(&self, measured: Option<(&PlaybackTotals, u64)>) -> MemoryUse {
        let host = self.pool.stats();
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let device = self.device_history.memory();
        let (held_by_program, leaks) = self.held();
        MemoryUse {
            pool_bytes: host.pooled_bytes + device.pooled_bytes,
            pool_peak_bytes: host.peak_bytes + device.peak_bytes,
            live_bytes: host.lent_bytes + device.lent_bytes,
            leaked: leaks.len() as u64,
            cpu_peak_bytes: host.peak_bytes,
            gpu_peak_bytes: device.peak_bytes,
            cpu_planned_bytes: planned.cpu_bytes,
            gpu_planned_bytes: planned.gpu_bytes,
            cpu_budget_bytes: host.budget_bytes,
            gpu_budget_bytes: device.budget_bytes,
            cpu_lent_peak_bytes: host.lent_peak_bytes,
            ring_bytes: measured.map_or(0, |(_, rings)| rings),
            hits: host.hits + device.hits,
            misses: host.misses + device.misses,
            trimmed: host.trimmed + device.trimmed,
            waits: self.sink_counter.waits.load(Ordering::Relaxed),
            leaks,
            held_by_program,
        }
    }

    /// Memory that is still lent, except what was lent on the same device before this engine was built: first what the
    /// program holds, then leaks.
    fn held(&self) -> (Vec<Leak>, Vec<Leak>) {
        let here = self.pool.held().into_iter().map(|held| {
            let leak = Leak {
                space: "cpu",
                owner: held.owner.to_string(),
                last: held.last.to_string(),
                bytes: held.bytes,
                since_frame: held.since_frame,
            };
            (held.outside, leak)
        });
        let current = self.device_history.current().filter(|device| device.check().is_ok());
        let there = current.into_iter().flat_map(|device| device.pool().leaks());
        let there = there.filter(|row| !self.lent_before.contains(&row.tag)).map(|row| {
            let (last, outside) = self.pool.name_of(row.note).unwrap_or_else(|| (row.owner.clone(), false));
            let leak = Leak {
                space: "gpu",
                last: last.to_string(),
                owner: row.owner.to_string(),
                bytes: row.bytes,
                since_frame: row.since_frame,
            };
            (outside, leak)
        });
        let (program, leaks): (Vec<_>, Vec<_>) = here.chain(there).partition(|(outside, _)| *outside);
        let rows = |all: Vec<(bool, Leak)>| all.into_iter().map(|(_, leak)| leak).collect();
        (rows(program), rows(leaks))
    }

    fn groups(&self) -> Vec<GroupTime> {
        let group = |node: &WatchedNode| {
            Some(GroupTime { id: node.group?, handlers: node.names.clone(), p50_us: us(time(node)) })
        };
        let mut groups: Vec<GroupTime> = self.nodes.iter().filter_map(group).collect();
        groups.sort_by_key(|group| group.id);
        groups
    }

    fn handlers(&self) -> Vec<HandlerTime> {
        let of = |node: &WatchedNode| {
            let alone = node.names.len() == 1;
            let time = if alone { us(time(node)) } else { None };
            let each = |(at, name): (usize, &String)| {
                let counts = node.stats.counts_of(at);
                HandlerTime {
                    name: name.clone(),
                    space: node.space,
                    between: node.between[at],
                    calls: counts.taken,
                    cpu_calls: node.stats.on_host().min(counts.taken),
                    errors: counts.failed,
                    problems: if at == 0 { node.stats.problems() } else { 0 },
                    lost: counts.lost,
                    emitted: counts.emitted,
                    filtered: counts.filtered,
                    held: counts.held,
                    p50_us: time,
                }
            };
            node.names.iter().enumerate().map(each).collect::<Vec<_>>()
        };
        self.nodes.iter().filter(|node| !node.names.is_empty()).flat_map(of).collect()
    }
}

/// Counts in the order of [`DropReason::ALL`] as named fields.
pub(super) fn by_reason(sums: [u64; 5]) -> Dropped {
    let of = |reason: DropReason| sums[reason as usize];
    Dropped {
        link_full: of(DropReason::LinkFull),
        late: of(DropReason::Late),
        error: of(DropReason::Error),
        device_lost: of(DropReason::DeviceLost),
        stopped: of(DropReason::Stopped),
    }
}

pub(super) fn times(histogram: &Histogram) -> TimeStats {
    let ms = |ns: u64| ns as f64 / 1e6;
    TimeStats {
        p50: histogram.quantile_ns(0.5).map(ms),
        p99: histogram.quantile_ns(0.99).map(ms),
        max: (histogram.count() > 0).then(|| ms(histogram.max_ns())),
    }
}

fn us(histogram: &Histogram) -> Option<f64> {
    histogram.quantile_ns(0.5).map(|ns| ns as f64 / 1e3)
}
