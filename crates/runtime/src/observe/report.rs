//! The report: what a run did, in numbers.
//!
//! Owns the names of everything that is counted and measured, as people and programs read them.
//! Does not measure: nodes, links, pools and the device do.
//!
//! Always: the same names in text, JSON and budgets.

use serde::Serialize;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// What computed: `cpu`, or the API of the device.
    pub backend: String,
    /// The device's name, or the host's.
    pub device: String,
    /// Frames that reached the sink that got most.
    pub frames: u64,
    /// How long it took.
    pub seconds: f64,
    /// Frames a second.
    pub fps: f64,
    /// Time between frames at the sinks.
    pub frame_ms: TimeStats,
    /// Time from a frame's birth to its sink.
    pub latency_ms: TimeStats,
    /// How device times are known: `timestamps` of its own clock, `fenced` wall time, or `cpu` where no device was used.
    pub timing: &'static str,
    /// How long the device works for a frame.
    pub gpu_ms: GpuTimes,
    /// The share of the run in which the device worked for it; none where that was not measured.
    pub gpu_busy: Option<f64>,
    /// Everything counted over the whole run.
    pub counters: RunCounters,
    /// The same per frame, over the second half of the run.
    pub steady: PerFrame,
    /// Frames that sources made.
    pub frames_in: u64,
    /// Frames that sinks took.
    pub frames_out: u64,
    /// Frames that ended somewhere on purpose.
    pub filtered: u64,
    /// Frames on which a handler failed.
    pub failed: u64,
    /// Frames that links dropped.
    pub dropped: Dropped,
    /// Frames that were still held or queued at the end.
    pub in_flight: u64,
    /// Each loss of the device, and what came of it.
    pub recoveries: Vec<DeviceRecovery>,
    /// Files that sinks did not finish and left beside older ones.
    pub partial_files: Vec<KeptPartial>,
    /// Memory.
    pub memory: MemoryUse,
    /// Time per fused kernel.
    pub groups: Vec<GroupTime>,
    /// Calls and times per handler.
    pub handlers: Vec<HandlerTime>,
    /// What each link carried.
    pub links: Vec<LinkUse>,
}

/// Times in milliseconds; none where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TimeStats {
    /// Half are shorter.
    pub p50: Option<f64>,
    /// One in a hundred is longer.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// Times of the device in milliseconds; none where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GpuTimes {
    /// Half are shorter.
    pub p50: Option<f64>,
    /// One in a hundred is longer.
    pub p99: Option<f64>,
}

/// Counters of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RunCounters {
    /// Frames that went to the device.
    pub uploads: u64,
    /// Frames that came from the device.
    pub downloads: u64,
    /// Bytes of both.
    pub transfer_bytes: u64,
    /// Kernels that were run on the device.
    pub dispatches: u64,
    /// Compute passes.
    pub passes: u64,
    /// Submits.
    pub submits: u64,
    /// Bind groups that were made.
    pub bind_groups: u64,
    /// Buffers that were made on the device.
    pub gpu_allocs: u64,
    /// Heap allocations in vramp's own code while it worked on frames; none where the program does not count them.
    pub heap_allocs: Option<u64>,
    /// Heap allocations in drivers and codecs meanwhile.
    pub foreign_allocs: Option<u64>,
    /// Frames that were copied because somebody edited what others held.
    pub frame_copies: u64,
    /// Kernels that were compiled after the run had begun.
    pub compiles_after_first_frame: u64,
    /// Times the graph was planned again.
    pub replans: u64,
    /// The most submissions under way at once.
    pub max_in_flight: u64,
}

/// Counters per frame.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PerFrame {
    /// Frames in the window; 0 where the run was too short to have a steady state.
    pub frames: u64,
    /// As in [`RunCounters`].
    pub uploads: f64,
    /// As in [`RunCounters`].
    pub downloads: f64,
    /// As in [`RunCounters`].
    pub transfer_bytes: f64,
    /// As in [`RunCounters`].
    pub dispatches: f64,
    /// As in [`RunCounters`].
    pub passes: f64,
    /// As in [`RunCounters`].
    pub submits: f64,
    /// As in [`RunCounters`].
    pub bind_groups: f64,
    /// As in [`RunCounters`].
    pub gpu_allocs: f64,
    /// As in [`RunCounters`].
    pub heap_allocs: Option<f64>,
    /// As in [`RunCounters`].
    pub foreign_allocs: Option<f64>,
    /// As in [`RunCounters`].
    pub frame_copies: f64,
    /// As in [`RunCounters`].
    pub compiles_after_first_frame: f64,
    /// As in [`RunCounters`].
    pub replans: f64,
    /// As in [`RunCounters`]: the most, not a mean.
    pub max_in_flight: u64,
}

/// Frames that links dropped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Dropped {
    /// There was no room.
    pub link_full: u64,
    /// The consumer had ended.
    pub late: u64,
    /// The run had failed.
    pub error: u64,
    /// The device was lost.
    pub device_lost: u64,
    /// The run was stopped.
    pub stopped: u64,
}

impl Dropped {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.link_full + self.late + self.error + self.device_lost + self.stopped
    }
}

/// A loss of the device that the run survived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceRecovery {
    /// Why the device was lost.
    pub reason: String,
    /// Where the run went on.
    pub on: crate::observe::monitor::GoesOn,
    /// Frames that went with it.
    pub lost: u64,
    /// Frames that the device's lane had been given by then.
    pub frame: u64,
    /// Whether the device came back later.
    pub back: bool,
}

/// A file that a sink did not finish because the run failed or was interrupted. An older file has the name that it was
/// to have, and is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptPartial {
    /// The sink.
    pub handler: String,
    /// The unfinished file.
    pub path: String,
    /// The older file.
    pub instead_of: String,
}

/// Memory of the pools of both sides. What pools do not lend is not in it but for `ring_bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryUse {
    /// Bytes that lie free.
    pub pool_bytes: u64,
    /// The most that there were.
    pub pool_peak_bytes: u64,
    /// Bytes that somebody still holds.
    pub live_bytes: u64,
    /// Frames that somebody still holds after the run.
    pub leaked: u64,
    /// Of the peak, on the host.
    pub cpu_peak_bytes: u64,
    /// Of the peak, on the device.
    pub gpu_peak_bytes: u64,
    /// What the plan said the pools need, on the host.
    pub cpu_planned_bytes: u64,
    /// What the plan said the pools need, on the device.
    pub gpu_planned_bytes: u64,
    /// What the pools may have at most, on the host.
    pub cpu_budget_bytes: u64,
    /// What the pools may have at most, on the device.
    pub gpu_budget_bytes: u64,
    /// The most that was lent at once on the host, where what is planned is made before the first frame.
    pub cpu_lent_peak_bytes: u64,
    /// Staging, readback and parameters of the device's lane, which no pool lends.
    pub ring_bytes: u64,
    /// Times that memory was there when it was asked for, in both pools.
    pub hits: u64,
    /// Times that it had to be made.
    pub misses: u64,
    /// Times that free memory was given up.
    pub trimmed: u64,
    /// Times that somebody had to wait for memory.
    pub waits: u64,
    /// What somebody still holds after the run.
    pub leaks: Vec<Leak>,
}

/// Memory that was not given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// `cpu` or `gpu`.
    pub space: &'static str,
    /// Who asked for it.
    pub owner: String,
    /// Who was given it last, and therefore most likely keeps it.
    pub last: String,
    /// Its bytes.
    pub bytes: u64,
    /// The number of the frame for which it was lent.
    pub since_frame: u64,
}

/// Time of a fused kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupTime {
    /// As in the plan.
    pub id: usize,
    /// Half of its calls are shorter. On the device, the time that the device worked; none where that is only known
    /// together with others.
    pub p50_us: Option<f64>,
}

/// Calls of a handler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandlerTime {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How often it failed.
    pub errors: u64,
    /// Frames that went with a device that was lost.
    pub lost: u64,
    /// Frames that went on.
    pub emitted: u64,
    /// Frames that ended there on purpose.
    pub filtered: u64,
    /// Frames that it still holds.
    pub held: u64,
    /// Half of its calls are shorter, on the device as in [`GroupTime`]; none for members of a larger group.
    pub p50_us: Option<f64>,
}

/// What a link carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkUse {
    /// Where it comes from.
    pub from: String,
    /// Where it goes.
    pub to: String,
    /// Frames that were put in.
    pub sent: u64,
    /// Frames that were taken out.
    pub taken: u64,
    /// Frames that were dropped.
    pub dropped: u64,
    /// Frames that still wait.
    pub queued: u64,
    /// Times that a frame was supplied once more because no newer one had come.
    pub repeats: u64,
}

impl PerFrame {
    /// A figure by its name; `transfers` and `allocs` are sums. None if it was not counted: allocations on the heap are
    /// counted only in a program whose global allocator is [`CountingAllocator`](crate::CountingAllocator).
    pub fn named(&self, name: &str) -> Option<f64> {
        Some(match name {
            "uploads" => self.uploads,
            "downloads" => self.downloads,
            "transfer_bytes" => self.transfer_bytes,
            "dispatches" => self.dispatches,
            "passes" => self.passes,
            "submits" => self.submits,
            "bind_groups" => self.bind_groups,
            "gpu_allocs" => self.gpu_allocs,
            "heap_allocs" => self.heap_allocs?,
            "foreign_allocs" => self.foreign_allocs?,
            "frame_copies" => self.frame_copies,
            "compiles_after_first_frame" => self.compiles_after_first_frame,
            "replans" => self.replans,
            "max_in_flight" => self.max_in_flight as f64,
            "transfers" => self.uploads + self.downloads,
            "allocs" => self.gpu_allocs + self.heap_allocs?,
            _ => return None,
        })
    }

    /// The names of all figures, as `named` takes them.
    pub const NAMES: [&'static str; 16] = [
        "uploads",
        "downloads",
        "transfer_bytes",
        "dispatches",
        "passes",
        "submits",
        "bind_groups",
        "gpu_allocs",
        "heap_allocs",
        "foreign_allocs",
        "frame_copies",
        "compiles_after_first_frame",
        "replans",
        "max_in_flight",
        "transfers",
        "allocs",
    ];
}
