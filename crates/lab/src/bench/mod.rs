//! Benchmarks (`vramp bench`): the time of a workload on this machine.
//!
//! A workload is a pipeline with a name. The source sends the same image in every frame and also holds the image, so
//! that no handler edits the image in place. All frames end in `null`. The first and the last frame are also sent to
//! the CPU and read there. Time and CPU time are measured between the arrivals of these two frames, which excludes the
//! start and the end of the run. The hash of the last frame identifies what was computed.
//!
//! Comparing with other libraries is left to the caller: `cargo bench --bench speed` measures vramp and `OpenCV` in
//! turn on the same workloads.

mod clock;
mod ends;
mod model;
mod tensor;
mod timing;
mod workloads;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use vramp_plan::{RunOptions, Size, Space};
use vramp_runtime::Registry;

use vramp_pipeline::{Error, Pipeline, PipelineBuilder};

pub use clock::cpu_time;
pub use model::{MODEL_WORKLOADS, ModelWorkload};
pub use tensor::{TENSOR_WORKLOADS, TensorWorkload};
pub use workloads::{Suite, WORKLOADS, Workload};

use ends::RunSpan;
use workloads::KEEP;

/// Why a workload was not measured.
#[derive(thiserror::Error)]
pub enum BenchError {
    /// The pipeline could not be built with these options, or failed.
    #[error(transparent)]
    Pipeline(#[from] Error),
    #[error("{work}: the last of {frames} frames did not arrive")]
    NoLastFrame { work: &'static str, frames: u64 },
    #[error("{work}: {problem}")]
    Tensor { work: &'static str, problem: vramp_tensor::TensorError },
    #[error("{work}: it was to run on the gpu, but nothing was dispatched there")]
    NotOnDevice { work: &'static str },
    #[error("{work}: {problem}")]
    Model { work: &'static str, problem: Box<vramp_model::ModelError> },
    #[error("{work}: {file} is in none of {folders:?}; help: `cargo xtask models` fetches the models")]
    NoModel { work: &'static str, file: String, folders: Vec<PathBuf> },
}

vramp_plan::debug_as_display!(BenchError);

/// The measured times of a workload. The names of the fields are the JSON keys. For a workload on tensors or a model, a
/// frame is one repetition of the workload.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// The program that was measured.
    pub peer: &'static str,
    pub work: &'static str,
    /// The size of the input.
    pub size: String,
    /// Threads on the CPU.
    pub threads: usize,
    /// `cpu`, or the graphics API if a GPU took part.
    pub backend: String,
    /// Time per frame in the median run.
    pub ms_median: f64,
    /// Time per frame in the quickest run.
    pub ms_min: f64,
    /// CPU time per frame of all threads, the median of all runs. `None` if the system does not report CPU time.
    pub cpu_ms: Option<f64>,
    pub fps: f64,
    /// Number of frames of all runs together.
    pub reps: u64,
    /// XXH64 of the last frame, in the form that `probe` prints.
    pub hash: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Effort {
    pub runs: usize,
    /// The intended duration of a run.
    pub run: Duration,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { runs: 5, run: Duration::from_millis(150) }
    }
}

/// Runs workloads and measures them.
pub struct Bench {
    registry: Registry,
}

impl Bench {
    pub fn new() -> Bench {
        let mut registry = vramp_handlers::registry();
        ends::add_to(&mut registry).expect("tests add the kind");
        Bench { registry }
    }

    /// Measures a workload at a size, with these options. `with` can change the builder further, such as the choice of
    /// a device.
    pub fn measure(
        &self,
        work: &Workload,
        size: Size,
        effort: Effort,
        options: &RunOptions,
        with: impl Fn(PipelineBuilder) -> PipelineBuilder,
    ) -> Result<Measurement, BenchError> {
        let run = |frames: u64| self.run(work, size, frames, options, &with);
        // The first runs do not count: in these runs drivers compile, memory is touched for the first time, and the
        // number of frames for the intended duration is found.
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
        let pipeline = with(builder).build()?;
        let on_device = pipeline.plan().handlers.iter().any(|handler| handler.space == Space::Gpu);
        let threads = pipeline.threads();
        let running = pipeline.spawn()?;
        let span = ends::span(&running.output(KEEP)?, frames - 1);
        let report = running.wait()?;
        let span = span.map_err(Error::from)?.ok_or(BenchError::NoLastFrame { work: work.name, frames })?;
        let backend = if on_device { report.backend } else { "cpu".to_owned() };
        Ok(MeasuredRun { frames: frames - 1, span, backend, threads })
    }
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::new()
    }
}

/// With fewer frames, the start and the end of a run would dominate.
const LEAST_FRAMES: u64 = 16;
/// More frames do not improve a measurement.
const MOST_FRAMES: u64 = 20_000;

/// The result of one run. `frames` does not count the first frame.
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
