//! The report: the counters and times of a run, with the same names in text, JSON and budgets.

use serde::Serialize;
use vramp_plan::Space;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `cpu`, or the API of the device.
    pub backend: String,
    /// Name of the device, or `host`.
    pub device: String,
    /// Frames at the sink that received the most frames.
    pub frames: u64,
    pub seconds: f64,
    pub fps: f64,
    /// Time between frames at the sinks.
    pub frame_ms: TimeStats,
    /// Time from a frame's birth to its sink.
    pub latency_ms: TimeStats,
    /// The latency that the user asked for; `None` if there is no such need.
    pub latency_need: Option<LatencyNeed>,
    /// How device times were measured: `timestamps` of the device's clock, `fenced` wall time, or `cpu` if no device
    /// was used.
    pub timing: &'static str,
    /// Device time per frame.
    pub gpu_ms: GpuTimes,
    /// Share of the run's time in which the device worked for the run; `None` if not measured.
    pub gpu_busy: Option<f64>,
    /// Over the whole run.
    pub counters: RunCounters,
    /// Per frame, over the second half of the run.
    pub steady: PerFrame,
    pub frames_in: u64,
    pub frames_out: u64,
    /// Frames that handlers discarded on purpose.
    pub filtered: u64,
    pub failed: u64,
    pub dropped: Dropped,
    /// Frames held or queued at the end.
    pub in_flight: u64,
    /// How often a handler, or the handlers of a fused unit, took changed settings.
    pub changes: u64,
    /// How many of these changes replaced kernels.
    pub swaps: u64,
    pub recoveries: Vec<DeviceRecovery>,
    pub placement: Placement,
    /// Files that sinks did not finish and left beside older files.
    pub partial_files: Vec<KeptPartial>,
    pub memory: MemoryUse,
    pub groups: Vec<GroupTime>,
    pub handlers: Vec<HandlerTime>,
    /// Where the time went, longest first. Units whose time is not known are left out.
    pub units: Vec<UnitTime>,
    pub links: Vec<LinkUse>,
    /// The frames that handlers exchanged with the program that runs the pipeline. Not in JSON if there are no such
    /// handlers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<EndUse>,
}

/// Where the handlers between sources and sinks ran. Counts cover the whole run, including its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Placement {
    /// Handlers between sources and sinks that the plan placed on the device and that never left it.
    pub gpu_handlers: u64,
    /// Handlers between sources and sinks that ran on the CPU, as planned or after a device loss.
    pub cpu_handlers: u64,
    /// The most frames that any one handler or transfer took.
    pub frames: u64,
    /// The most frames that any one handler or transfer took on the device.
    pub gpu_frames: u64,
    /// The most frames that any one handler between sources and sinks computed on the CPU, so that a frame that several
    /// handlers computed there counts once.
    pub cpu_frames: u64,
    /// The most frames that any one handler or transfer took on the CPU, although the plan had placed it on the device.
    pub moved_frames: u64,
    /// Graphs of the run that handled frames, but none of them on the device. More than 1 only if the graph was replaced.
    pub graphs_off_device: u64,
    pub device_losses: u64,
}

/// Times in milliseconds; `None` if nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TimeStats {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// A latency need, what the plan predicted, and what the run measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyNeed {
    pub asked_ms: f64,
    pub predicted_ms: f64,
    /// Median of the frames that arrived; `None` if no frame arrived.
    pub p50_ms: Option<f64>,
}

impl LatencyNeed {
    pub fn is_missed(&self) -> bool {
        self.p50_ms.is_some_and(|p50_ms| p50_ms > self.asked_ms)
    }
}

/// Device times in milliseconds; `None` if nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct GpuTimes {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RunCounters {
    /// Frames sent to the device.
    pub uploads: u64,
    /// Frames read back from the device.
    pub downloads: u64,
    /// In both directions.
    pub transfer_bytes: u64,
    pub dispatches: u64,
    /// Compute passes.
    pub passes: u64,
    pub submits: u64,
    pub bind_groups: u64,
    /// Buffers created on the device.
    pub gpu_allocs: u64,
    /// Heap allocations in vramp's own code during the work on frames; `None` if the program does not count
    /// allocations.
    pub heap_allocs: Option<u64>,
    /// Heap allocations in drivers and codecs during that work.
    pub foreign_allocs: Option<u64>,
    /// Frames copied because a handler edited a shared frame.
    pub frame_copies: u64,
    pub compiles_after_first_frame: u64,
    pub replans: u64,
    /// Maximum number of submissions in flight.
    pub max_in_flight: u64,
}

/// [`RunCounters`] per frame.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct PerFrame {
    /// Frames in the second half of the run; 0 if the run was too short to have a steady state.
    pub frames: u64,
    pub uploads: f64,
    pub downloads: f64,
    pub transfer_bytes: f64,
    pub dispatches: f64,
    pub passes: f64,
    pub submits: f64,
    pub bind_groups: f64,
    pub gpu_allocs: f64,
    pub heap_allocs: Option<f64>,
    pub foreign_allocs: Option<f64>,
    pub frame_copies: f64,
    pub compiles_after_first_frame: f64,
    pub replans: f64,
    /// The maximum, not a mean.
    pub max_in_flight: u64,
}

/// Dropped frames by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Dropped {
    /// The link had no room.
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
    pub fn sum(&self) -> u64 {
        self.link_full + self.late + self.error + self.device_lost + self.stopped
    }
}

/// A device loss that the run survived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceRecovery {
    pub reason: String,
    pub on: crate::observe::monitor::GoesOn,
    /// Number of frames that were lost because they were on the device.
    pub lost: u64,
    /// Frames that the device lane had taken before the loss.
    pub frame: u64,
    /// Whether the device was used again later.
    pub back: bool,
}

/// A file that a sink did not finish because the run failed or was interrupted. The older file with the intended name
/// is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptPartial {
    pub handler: String,
    /// The unfinished file.
    pub path: String,
    /// The older file.
    pub instead_of: String,
}

/// Memory of the host's frame pool and of the device's frame pool. Only `ring_bytes` is other memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MemoryUse {
    /// Bytes in the pools that are not lent.
    pub pool_bytes: u64,
    /// Peak of lent and free bytes.
    pub pool_peak_bytes: u64,
    /// Bytes still lent.
    pub live_bytes: u64,
    /// Frames still lent after the run, except those that the program holds.
    pub leaked: u64,
    pub cpu_peak_bytes: u64,
    pub gpu_peak_bytes: u64,
    pub cpu_planned_bytes: u64,
    pub gpu_planned_bytes: u64,
    pub cpu_budget_bytes: u64,
    pub gpu_budget_bytes: u64,
    /// Peak of lent bytes on the host. `cpu_peak_bytes` also contains the frames that are allocated ahead.
    pub cpu_lent_peak_bytes: u64,
    /// Staging, readback and parameter buffers of the device lane, which no pool lends.
    pub ring_bytes: u64,
    /// Requests served from free memory, in both pools.
    pub hits: u64,
    /// Requests that had to allocate.
    pub misses: u64,
    /// Free buffers that were released.
    pub trimmed: u64,
    /// How often a node had to wait for memory.
    pub waits: u64,
    pub leaks: Vec<Leak>,
    /// Frames that the program that runs the pipeline still holds.
    pub held_by_program: Vec<Leak>,
}

/// Memory that is still lent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// `cpu` or `gpu`.
    pub space: &'static str,
    /// The handler that requested the memory.
    pub owner: String,
    /// The handler that received the memory last, and therefore most likely keeps it.
    pub last: String,
    pub bytes: u64,
    /// The number of the frame for which the memory was lent.
    pub since_frame: u64,
}

/// The time of a fused kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupTime {
    /// As in the plan.
    pub id: usize,
    /// The handlers that are fused into the kernel, in running order.
    pub handlers: Vec<String>,
    /// Median time per call: device time if the kernel runs on the device. `None` if only the total time of several
    /// kernels is known.
    pub p50_us: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandlerTime {
    pub name: String,
    /// The space in which the plan placed the handler: `cpu` or `gpu`.
    pub space: Space,
    /// True if the handler is neither a source nor a sink.
    pub between: bool,
    pub calls: u64,
    /// Calls on the CPU. Less than `calls` only if the plan placed the handler on the device.
    pub cpu_calls: u64,
    pub errors: u64,
    /// Problems that did not cost a frame, such as errors of a decoder.
    pub problems: u64,
    /// Frames that a device loss took.
    pub lost: u64,
    pub emitted: u64,
    /// Frames that the handler discarded on purpose.
    pub filtered: u64,
    /// Frames that the handler still holds.
    pub held: u64,
    /// Median time per call, as in [`GroupTime`]; `None` for members of a larger group.
    pub p50_us: Option<f64>,
}

/// The share of one unit in the time of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitTime {
    /// The handlers joined by `+`, or the transfer and the port whose frames it carries.
    pub name: String,
    /// In running order; empty for an inserted transfer. If only the total time of a segment is known, these are all
    /// handlers of the segment.
    pub handlers: Vec<String>,
    /// The space in which the plan placed the unit.
    pub space: Space,
    pub calls: u64,
    /// Mean time per call: device time for work on the device, otherwise the time of the call, including waiting for
    /// files and pipes.
    pub mean_us: f64,
    /// Share of the time of all units, from 0 to 1. Lanes run at the same time, so this is not a share of the run's
    /// duration.
    pub share: f64,
}

/// The counters of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkUse {
    pub from: String,
    pub to: String,
    pub sent: u64,
    pub taken: u64,
    pub dropped: u64,
    pub queued: u64,
    /// How often a frame was supplied again because no newer frame had come.
    pub repeats: u64,
}

/// The frames that one handler exchanged with the program that runs the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndUse {
    /// The name of the handler.
    pub name: String,
    #[serde(flatten)]
    pub counts: EndCounts,
}

/// What happened to the frames between a handler and the program. The last three numbers add up to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "direction", rename_all = "lowercase")]
pub enum EndCounts {
    /// Frames from the program.
    In { pushed: u64, taken: u64, dropped: u64, queued: u64 },
    /// Frames for the program.
    Out { arrived: u64, pulled: u64, dropped: u64, queued: u64 },
}

/// A run under [`RunOptions::require_gpu`](vramp_plan::RunOptions::require_gpu) that did not stay on the device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOnDevice {
    #[error("no frame was on the device, so it is not shown that any frame would be")]
    NoFrame,
    #[error("{frames} of {all} frames were computed on the CPU, by {}", handlers.join(", "))]
    OnCpu { frames: u64, all: u64, handlers: Vec<String> },
    #[error("the device was lost{}, and {frames} {} with it", times(*losses), if *frames == 1 { "frame" } else { "frames" })]
    Lost { losses: u64, frames: u64 },
}

fn times(count: u64) -> String {
    if count == 1 { String::new() } else { format!(" {count} times") }
}

impl Report {
    /// Checks that every handler between sources and sinks was on the device for every frame. A frame that was lost with
    /// its device counts as a frame for which this does not hold.
    pub fn check_gpu(&self) -> Result<(), NotOnDevice> {
        let Placement { frames, gpu_frames, cpu_frames, cpu_handlers, device_losses, .. } = self.placement;
        if cpu_handlers > 0 {
            let handlers = self.between_on_cpu().map(str::to_owned).collect();
            return Err(NotOnDevice::OnCpu { frames: cpu_frames, all: frames, handlers });
        }
        if device_losses > 0 {
            return Err(NotOnDevice::Lost { losses: device_losses, frames: self.dropped.device_lost });
        }
        if gpu_frames == 0 || self.placement.graphs_off_device > 0 { Err(NotOnDevice::NoFrame) } else { Ok(()) }
    }

    /// The unit that takes longest per frame; `None` if no time was measured.
    pub fn slowest_unit(&self) -> Option<&UnitTime> {
        self.units.iter().max_by(|one, two| one.mean_us.total_cmp(&two.mean_us))
    }

    /// The handlers between sources and sinks that ran on the CPU, as planned or after a device loss.
    pub fn between_on_cpu(&self) -> impl Iterator<Item = &str> {
        let on_cpu = |handler: &&HandlerTime| handler.space == Space::Cpu || handler.cpu_calls > 0;
        self.handlers.iter().filter(|handler| handler.between).filter(on_cpu).map(|handler| handler.name.as_str())
    }
}

impl PerFrame {
    /// A figure by name; `transfers` and `allocs` are sums. `None` if the name is unknown or the figure was not
    /// counted: heap allocations are counted only if the program's global allocator is
    /// [`CountingAllocator`](crate::CountingAllocator).
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

    /// The names that [`PerFrame::named`] accepts.
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
