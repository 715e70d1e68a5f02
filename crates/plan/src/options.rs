//! Run options: everything that can be asked of a run besides the graph itself.
//!
//! Owns the options that the planner, the runtime, the program and bindings share, and their defaults.
//! Does not choose an adapter: a device is chosen where devices are known.
//!
//! Invariants: plain data, so that a request can be built, cloned and sent from anywhere; the defaults stand here once.

use std::collections::BTreeMap;

use crate::words::{Rate, Space};

/// What happens when the device is lost in the middle of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// It is opened again; the cpu takes over if that fails, and returns to the device when it can.
    #[default]
    Reopen,
    /// The cpu takes over for the rest of the run.
    Cpu,
    /// The run ends with an error.
    Stop,
}

/// What is asked of a run: where things run, how many frames are in flight, what they may take, when it ends.
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
    /// Keeps everything on the cpu, or puts everything on the gpu that can be there. Left to the costs by default.
    pub only: Option<Space>,
    /// Handlers that are pinned to a space, by name.
    pub pins: BTreeMap<String, Space>,
    /// Refuses transfers that are not written in the graph.
    pub strict: bool,
    /// Whether neighbouring kernels are fused. Defaults to true.
    pub fusion: bool,
    /// Threads that share the work on the host. Defaults to all that the machine has.
    pub threads: Option<u32>,
    /// Submissions that may be in flight on the device. Defaults to 2.
    pub in_flight: u32,
    /// Frames per submission. Defaults to 1.
    pub batch: u32,
    /// Frames per second that every source keeps to. Defaults to as fast as consumers allow.
    pub pace: Option<Rate>,
    /// Ends every source after this many frames.
    pub frames: Option<u64>,
    /// Ends the run after this many milliseconds, as an intended end: files are finished.
    pub longest_ms: Option<u64>,
    /// The most that frames may take on the host. Defaults to what the plan needs and some slack.
    pub cpu_memory_bytes: Option<u64>,
    /// The most that frames may take on the device. Defaults to what the plan needs and some slack.
    pub gpu_memory_bytes: Option<u64>,
    /// Gives frames the times of the plan instead of measured ones, so that a run can be repeated exactly.
    pub nominal_time: bool,
    /// Lets handlers follow changes of the files that they are made from, such as shaders.
    pub watch: bool,
    /// How long the device may take for one submission before it counts as hung. Defaults to 10 s.
    pub time_limit_ms: Option<u64>,
    /// What happens when the device is lost. Defaults to opening it again.
    pub on_loss: OnLoss,
    /// How long a device that could not be opened again is left alone before the next attempt. Defaults to 1 s, and
    /// doubles with each attempt.
    pub away_ms: Option<u64>,
    /// Destroys the device when it has been given this many frames, to test `on_loss`.
    pub lose_device_at: Vec<u64>,
    /// Computes every band of rows on the host this many times, to test placement.
    #[doc(hidden)]
    pub slowed: u32,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            only: None,
            pins: BTreeMap::new(),
            strict: false,
            fusion: true,
            threads: None,
            in_flight: 2,
            batch: 1,
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

/// One method per option, for requests that read as a sentence.
impl RunOptions {
    /// Everything left to the defaults.
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Sets [`RunOptions::only`].
    #[must_use]
    pub fn only(self, space: Space) -> Self {
        RunOptions { only: Some(space), ..self }
    }

    /// Pins one handler, by name.
    #[must_use]
    pub fn place(mut self, handler: impl Into<String>, space: Space) -> Self {
        self.pins.insert(handler.into(), space);
        self
    }

    /// Sets [`RunOptions::strict`].
    #[must_use]
    pub fn strict(self, strict: bool) -> Self {
        RunOptions { strict, ..self }
    }

    /// Sets [`RunOptions::fusion`].
    #[must_use]
    pub fn fusion(self, fusion: bool) -> Self {
        RunOptions { fusion, ..self }
    }

    /// Sets [`RunOptions::threads`].
    #[must_use]
    pub fn threads(self, threads: u32) -> Self {
        RunOptions { threads: Some(threads), ..self }
    }

    /// Sets [`RunOptions::in_flight`].
    #[must_use]
    pub fn in_flight(self, in_flight: u32) -> Self {
        RunOptions { in_flight, ..self }
    }

    /// Sets [`RunOptions::batch`].
    #[must_use]
    pub fn batch(self, batch: u32) -> Self {
        RunOptions { batch, ..self }
    }

    /// Sets [`RunOptions::pace`].
    #[must_use]
    pub fn pace(self, pace: Rate) -> Self {
        RunOptions { pace: Some(pace), ..self }
    }

    /// Sets [`RunOptions::frames`].
    #[must_use]
    pub fn frames(self, frames: u64) -> Self {
        RunOptions { frames: Some(frames), ..self }
    }

    /// Sets [`RunOptions::longest_ms`].
    #[must_use]
    pub fn longest_ms(self, longest_ms: u64) -> Self {
        RunOptions { longest_ms: Some(longest_ms), ..self }
    }

    /// Limits what the frames of a space may take. A run that would need more waits for memory as long as that can
    /// help; if it cannot, it ends with an error that names what holds the memory. Staging memory is not counted.
    #[must_use]
    pub fn memory_bytes(mut self, space: Space, bytes: u64) -> Self {
        match space {
            Space::Cpu => self.cpu_memory_bytes = Some(bytes),
            Space::Gpu => self.gpu_memory_bytes = Some(bytes),
        }
        self
    }

    /// Sets [`RunOptions::nominal_time`].
    #[must_use]
    pub fn nominal_time(self) -> Self {
        RunOptions { nominal_time: true, ..self }
    }

    /// Sets [`RunOptions::watch`].
    #[must_use]
    pub fn watch(self, watch: bool) -> Self {
        RunOptions { watch, ..self }
    }

    /// Sets [`RunOptions::time_limit_ms`].
    #[must_use]
    pub fn time_limit_ms(self, limit_ms: u64) -> Self {
        RunOptions { time_limit_ms: Some(limit_ms), ..self }
    }

    /// Sets [`RunOptions::on_loss`].
    #[must_use]
    pub fn on_loss(self, on_loss: OnLoss) -> Self {
        RunOptions { on_loss, ..self }
    }

    /// Sets [`RunOptions::away_ms`].
    #[must_use]
    pub fn away_ms(self, away_ms: u64) -> Self {
        RunOptions { away_ms: Some(away_ms), ..self }
    }

    /// Sets [`RunOptions::lose_device_at`].
    #[must_use]
    pub fn lose_device_at(mut self, frames: &[u64]) -> Self {
        self.lose_device_at = frames.to_vec();
        self
    }

    /// Sets [`RunOptions::slowed`].
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(self, slowed: u32) -> Self {
        RunOptions { slowed, ..self }
    }

    /// The limit on the memory of a space, if there is one.
    pub fn memory_limit_bytes(&self, space: Space) -> Option<u64> {
        match space {
            Space::Cpu => self.cpu_memory_bytes,
            Space::Gpu => self.gpu_memory_bytes,
        }
    }

    /// Whether the request cannot be met without a device.
    pub fn needs_device(&self) -> bool {
        self.only == Some(Space::Gpu) || self.pins.values().any(|space| *space == Space::Gpu)
    }
}
