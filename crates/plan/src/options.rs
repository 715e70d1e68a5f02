//! All options of a run besides the graph itself, with their defaults.
//!
//! The planner, the runtime, the program and the bindings share the type [`RunOptions`]. The type is plain data, so
//! that options can be built, cloned and sent from anywhere. The choice of an adapter is not part of the options.

use std::collections::BTreeMap;

use crate::words::{Rate, Space};

/// What to do when the device is lost during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// Reopens the device. If reopening fails, the CPU takes over, and the run returns to the device when the device
    /// can be opened again.
    #[default]
    Reopen,
    /// The CPU takes over for the rest of the run.
    Cpu,
    /// The run ends with an error.
    Stop,
}

/// Placement, frames in flight, memory limits and the end of a run.
///
/// ```
/// use vramp_plan::{RunOptions, Space};
///
/// let options = RunOptions::new().only(Space::Cpu).frames(30);
/// assert_eq!(options, RunOptions { only: Some(Space::Cpu), frames: Some(30), ..RunOptions::default() });
/// ```
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct RunOptions {
    /// If set, every handler that has an implementation for this space runs in this space. By default the planner
    /// compares costs.
    pub only: Option<Space>,
    /// Spaces that handlers are pinned to, by handler name.
    pub pins: BTreeMap<String, Space>,
    /// Confines every handler between sources and sinks to the device, including inserted converters. If one of these
    /// handlers cannot run there, the graph has no plan ([`NoPlan::OffDevice`](crate::NoPlan::OffDevice)). Sources and
    /// sinks run wherever that is cheaper. A run can still leave the device if the device is lost: compare the report
    /// after the run (`Report::check_gpu` in crates/runtime).
    pub require_gpu: bool,
    /// Refuses transfers that are not written in the graph.
    pub strict: bool,
    /// Whether neighbouring kernels are fused. Defaults to true.
    pub fusion: bool,
    /// Threads that share the work on the host. Defaults to all threads of the machine.
    pub threads: Option<u32>,
    /// Submissions that may be in flight on the device. Defaults to 2.
    pub in_flight: u32,
    /// Frames per submission. Defaults to 1.
    pub batch: u32,
    /// The latency that a plan should keep, in milliseconds, from a source to the end of its sink's call. The planner
    /// prefers plans whose predicted latency fits, and warns if there is none. It may then use fewer submissions in
    /// flight, smaller batches and shallower links than these options allow.
    pub latency_ms: Option<f64>,
    /// Frames per second at which every source runs. By default sources run as fast as their consumers allow.
    pub pace: Option<Rate>,
    /// Ends every source after this many frames.
    pub frames: Option<u64>,
    /// Ends the run after this many milliseconds. Such an end counts as intended, so output files are completed.
    pub longest_ms: Option<u64>,
    /// Limit on the bytes of frames in host memory. Defaults to what the plan needs plus some slack.
    pub cpu_memory_bytes: Option<u64>,
    /// Limit on the bytes of frames in device memory. Defaults to what the plan needs plus some slack.
    pub gpu_memory_bytes: Option<u64>,
    /// Computes the time of each frame from the frame rate instead of measuring the time, so that a run can be repeated
    /// exactly.
    pub nominal_time: bool,
    /// Lets a handler that is made from a file, such as a shader, follow changes to the file.
    pub watch: bool,
    /// How long the device may take for one submission before the device counts as hung. Defaults to 10 s.
    pub time_limit_ms: Option<u64>,
    /// Defaults to [`OnLoss::Reopen`].
    pub on_loss: OnLoss,
    /// Delay before the next attempt if a device could not be reopened. The delay defaults to 1 s and doubles with each
    /// attempt.
    pub away_ms: Option<u64>,
    /// Destroys the device each time the number of frames that the device has received reaches one of these numbers, to
    /// test `on_loss`.
    pub lose_device_at: Vec<u64>,
    /// On the host, computes every band of rows this many times, to test placement.
    #[doc(hidden)]
    pub slowed: u32,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            only: None,
            pins: BTreeMap::new(),
            require_gpu: false,
            strict: false,
            fusion: true,
            threads: None,
            in_flight: 2,
            batch: 1,
            latency_ms: None,
            pace: None,
            frames: None,
            longest_ms: None,
            cpu_memory_bytes: None,
            gpu_memory_bytes: None,
            nominal_time: false,
            watch: false,
            time_limit_ms: None,
            on_loss: OnLoss::default(),
            away_ms: None,
            lose_device_at: Vec::new(),
            slowed: 1,
        }
    }
}

/// One builder method per field.
impl RunOptions {
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    #[must_use]
    pub fn only(self, space: Space) -> Self {
        RunOptions { only: Some(space), ..self }
    }

    /// Pins one handler by name.
    #[must_use]
    pub fn place(mut self, handler: impl Into<String>, space: Space) -> Self {
        self.pins.insert(handler.into(), space);
        self
    }

    #[must_use]
    pub fn require_gpu(self) -> Self {
        RunOptions { require_gpu: true, ..self }
    }

    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        RunOptions { strict, ..self }
    }

    #[must_use]
    pub fn fusion(self, fusion: bool) -> Self {
        RunOptions { fusion, ..self }
    }

    #[must_use]
    pub fn threads(self, threads: u32) -> Self {
        RunOptions { threads: Some(threads), ..self }
    }

    #[must_use]
    pub fn in_flight(self, in_flight: u32) -> Self {
        RunOptions { in_flight, ..self }
    }

    #[must_use]
    pub fn batch(self, batch: u32) -> Self {
        RunOptions { batch, ..self }
    }

    #[must_use]
    pub fn latency_ms(self, latency_ms: f64) -> Self {
        RunOptions { latency_ms: Some(latency_ms), ..self }
    }

    #[must_use]
    pub fn pace(self, pace: Rate) -> Self {
        RunOptions { pace: Some(pace), ..self }
    }

    #[must_use]
    pub fn frames(self, frames: u64) -> Self {
        RunOptions { frames: Some(frames), ..self }
    }

    #[must_use]
    pub fn longest_ms(self, longest_ms: u64) -> Self {
        RunOptions { longest_ms: Some(longest_ms), ..self }
    }

    /// Limits the bytes of frames in one space. A run that needs more waits for memory as long as waiting can help. If
    /// waiting cannot help, the run ends with an error that names the holders of the memory. Staging memory is not
    /// counted.
    #[must_use]
    pub fn memory_bytes(mut self, space: Space, bytes: u64) -> Self {
        match space {
            Space::Cpu => self.cpu_memory_bytes = Some(bytes),
            Space::Gpu => self.gpu_memory_bytes = Some(bytes),
        }
        self
    }

    #[must_use]
    pub fn nominal_time(self) -> Self {
        RunOptions { nominal_time: true, ..self }
    }

    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        RunOptions { watch, ..self }
    }

    #[must_use]
    pub fn time_limit_ms(self, limit_ms: u64) -> Self {
        RunOptions { time_limit_ms: Some(limit_ms), ..self }
    }

    #[must_use]
    pub fn on_loss(self, on_loss: OnLoss) -> Self {
        RunOptions { on_loss, ..self }
    }

    #[must_use]
    pub fn away_ms(self, away_ms: u64) -> Self {
        RunOptions { away_ms: Some(away_ms), ..self }
    }

    #[must_use]
    pub fn lose_device_at(mut self, frames: &[u64]) -> Self {
        self.lose_device_at = frames.to_vec();
        self
    }

    #[doc(hidden)]
    #[must_use]
    pub fn slowed(self, slowed: u32) -> Self {
        RunOptions { slowed, ..self }
    }

    pub fn memory_limit_bytes(&self, space: Space) -> Option<u64> {
        match space {
            Space::Cpu => self.cpu_memory_bytes,
            Space::Gpu => self.gpu_memory_bytes,
        }
    }

    /// True if these options cannot be met without a device.
    pub fn needs_device(&self) -> bool {
        self.only == Some(Space::Gpu) || self.require_gpu || self.pins.values().any(|space| *space == Space::Gpu)
    }
}
