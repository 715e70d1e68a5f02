//! Benchmarks: what one piece of work takes on this machine.
//!
//! Owns the works by name, how each is run to be measured, and the figures that come of it.
//! Does not compare: whoever prints figures of others beside these does.
//!
//! Always: what was measured was computed, which the hash of the last frame shows; a work is its operations and nothing
//! else: its source hands out one picture again and again, its sink drops what comes, and time counts from the first
//! frame's arrival to the last one's, so that beginning and ending are no part of it.

mod clock;
mod ends;
mod tensor;
mod workloads;

use std::time::Duration;

use serde::Serialize;
use vramp_plan::{RunOptions, Size, Space};
use vramp_runtime::Registry;

use vramp_pipeline::{Error, Pipeline, PipelineBuilder};

pub use clock::cpu_time;
pub use tensor::{TENSOR_WORKLOADS, TensorWorkload};
pub use workloads::{Suite, WORKLOADS, Workload};

use ends::{RunSpan, SeenFrames};

/// Why a work was not measured.
#[derive(thiserror::Error)]
pub enum BenchError {
    /// Its pipeline was not built as asked, or failed.
    #[error(transparent)]
    Pipeline(#[from] Error),
    /// It did not bring its last frame.
    #[error("{work}: {frames} frames were asked for, and the last one did not arrive")]
    NoLastFrame {
        /// Which work.
        work: &'static str,
        /// How many frames.
        frames: u64,
    },
    /// A work on tensors failed.
    #[error("{work}: {problem}")]
    Tensor {
        /// Which work.
        work: &'static str,
        /// Why.
        problem: vramp_tensor::TensorError,
    },
    /// A work on tensors was to run on the device, and did not.
    #[error("{work}: the device was given nothing to compute")]
    NotOnDevice {
        /// Which work.
        work: &'static str,
    },
}

vramp_plan::debug_as_display!(BenchError);

/// What a work takes.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// Who computed it.
    pub peer: &'static str,
    /// What.
    pub work: &'static str,
    /// The size of what comes in.
    pub size: String,
    /// Threads on the host.
    pub threads: usize,
    /// `cpu`, or the API of the device that took part.
    pub backend: String,
    /// Time of a frame in the middle one of several runs.
    pub ms_median: f64,
    /// And in the quickest.
    pub ms_min: f64,
    /// CPU time of a frame, of all threads, in the middle run; none where the system does not tell it.
    pub cpu_ms: Option<f64>,
    /// Frames in a second.
    pub fps: f64,
    /// Frames in all runs.
    pub reps: u64,
    /// Of the last frame, XXH64 as `probe` prints it.
    pub hash: String,
}

/// How works are measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// How many runs.
    pub runs: usize,
    /// How long each of them should take.
    pub run: Duration,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { runs: 5, run: Duration::from_millis(150) }
    }
}

/// Runs works and keeps what they end in.
pub struct Bench {
    registry: Registry,
    last: SeenFrames,
}

impl Bench {
    /// Ready to measure.
    pub fn new() -> Bench {
        let (mut registry, last) = (vramp_handlers::registry(), SeenFrames::default());
        ends::add_to(&mut registry, &last).expect("tests add the two kinds");
        Bench { registry, last }
    }

    /// Measures a work at a size, in runs with these options; `with` adds what a builder is given besides, such as the
    /// choice of a device.
    pub fn measure(
        &self,
        work: &Workload,
        size: Size,
        effort: Effort,
        options: &RunOptions,
        with: impl Fn(PipelineBuilder) -> PipelineBuilder,
    ) -> Result<Measurement, BenchError> {
        let run = |frames: u64| self.run(work, size, frames, options, &with);
        // Drivers compile, and memory is touched first, in a run of its own.
        let mut frames = 4;
        let mut one = run(frames)?;
        loop {
            let wanted = (effort.run.as_secs_f64() / one.frame_s().max(1e-7)) as u64;
            let enough = one.span.took >= effort.run / 4 || frames >= MOST_FRAMES;
            frames = wanted.clamp(LEAST_FRAMES, 16 * frames.max(LEAST_FRAMES)).min(MOST_FRAMES);
            if enough {
                break;
            }
            one = run(frames)?;
        }
        let mut runs = Vec::new();
        for _ in 0..effort.runs.max(1) {
            runs.push(run(frames)?);
        }
        runs.sort_by(|a, b| a.frame_s().total_cmp(&b.frame_s()));
        let mut cpu_s: Vec<f64> = runs.iter().filter_map(MeasuredRun::cpu_frame_s).collect();
        cpu_s.sort_by(f64::total_cmp);
        let middle = &runs[runs.len() / 2];
        Ok(Measurement {
            peer: "vramp",
            work: work.name,
            size: size.to_string(),
            threads: middle.threads,
            backend: middle.backend.clone(),
            ms_median: middle.frame_s() * 1e3,
            ms_min: runs[0].frame_s() * 1e3,
            cpu_ms: cpu_s.get(cpu_s.len() / 2).map(|seconds| seconds * 1e3),
            fps: 1.0 / middle.frame_s().max(1e-12),
            reps: runs.iter().map(|run| run.frames).sum(),
            hash: format!("{:016x}", middle.span.hash),
        })
    }

    fn run(
        &self,
        work: &Workload,
        size: Size,
        frames: u64,
        options: &RunOptions,
        with: &impl Fn(PipelineBuilder) -> PipelineBuilder,
    ) -> Result<MeasuredRun, BenchError> {
        let options = options.clone().frames(frames);
        let builder = Pipeline::parse(work.text(size, frames)).registry(&self.registry).options(options);
        let mut pipeline = with(builder).build()?;
        let on_device = pipeline.plan().handlers.iter().any(|handler| handler.space == Space::Gpu);
        let threads = pipeline.threads();
        self.last.forget();
        let report = pipeline.run()?;
        let span = self.last.up_to(frames - 1).ok_or(BenchError::NoLastFrame { work: work.name, frames })?;
        let backend = if on_device { report.backend } else { "cpu".to_owned() };
        Ok(MeasuredRun { frames: frames - 1, span, backend, threads })
    }
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::new()
    }
}

/// Fewer frames than this are mostly a beginning and an end.
const LEAST_FRAMES: u64 = 16;
/// More make no run any better.
const MOST_FRAMES: u64 = 20_000;

/// One run; the first frame is not counted.
struct MeasuredRun {
    frames: u64,
    span: RunSpan,
    backend: String,
    threads: usize,
}

impl MeasuredRun {
    fn frame_s(&self) -> f64 {
        self.span.took.as_secs_f64() / self.frames as f64
    }

    fn cpu_frame_s(&self) -> Option<f64> {
        self.span.cpu.map(|cpu| cpu.as_secs_f64() / self.frames as f64)
    }
}
