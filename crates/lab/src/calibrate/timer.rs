//! One measurement: a pipeline's time per frame, and its cost according to the planner.
//!
//! Invariant: the timed and the priced plan are the same plan of the same graph.

use vramp_gpu::Device;
use vramp_plan::{OnLoss, Profile, RunOptions, Size, Space};
use vramp_runtime::{Registry, Report};

use super::stopwatch::Stopwatch;
use super::{CalibrateError, Thoroughness};
use vramp_pipeline::{Pipeline, PipelineBuilder};

/// Measures the time of pipelines, and asks the planner for their cost.
pub(super) struct PipelineTimer<'a> {
    pub registry: &'a Registry,
    pub device: Option<&'a Device>,
    pub effort: Thoroughness,
    pub slowed: u32,
    pub stopwatch: &'a Stopwatch,
}

/// With fewer frames, the start and the end of a run would dominate.
const LEAST_FRAMES: u64 = 16;

/// More frames than this do not improve a measurement.
const MOST_FRAMES: u64 = 20_000;

/// A pipeline to measure. `SIZE` in its text is replaced by the image size, and `null` by a stopwatch.
#[derive(Debug, Clone)]
pub(super) struct TimedPiece {
    pub text: String,
    pub space: Space,
    /// Handlers that are pinned to a space. If there is any pin, `space` does not place the other handlers.
    pub pins: Vec<(&'static str, Space)>,
    pub fusion: bool,
    /// The maximum number of frames, for pipelines that write files.
    pub most_frames: u64,
}

impl TimedPiece {
    pub fn new(text: impl Into<String>, space: Space) -> TimedPiece {
        TimedPiece { text: text.into(), space, pins: Vec::new(), fusion: true, most_frames: u64::MAX }
    }

    pub fn unfused(mut self) -> TimedPiece {
        self.fusion = false;
        self
    }

    pub fn pin(mut self, handler: &'static str, space: Space) -> TimedPiece {
        self.pins.push((handler, space));
        self
    }

    fn is_watched(&self) -> bool {
        self.text.contains("! null")
    }

    pub fn most_frames(mut self, frames: u64) -> TimedPiece {
        self.most_frames = frames;
        self
    }
}

/// The time of all calls for one frame. A run that writes a few frames to a file takes longer than that, because the file
/// is opened and finished.
fn calls_ns(report: &Report) -> Option<f64> {
    let alone = report.handlers.iter().filter_map(|handler| handler.p50_us);
    let fused = report.groups.iter().filter(|group| group.handlers.len() > 1).filter_map(|group| group.p50_us);
    let sum_us: f64 = alone.chain(fused).sum();
    (sum_us > 0.0).then_some(sum_us * 1e3)
}

impl PipelineTimer<'_> {
    /// The time per frame, in nanoseconds: the quickest of several runs.
    pub fn frame_ns(
        &self,
        piece: &TimedPiece,
        size: Size,
        profile: &Profile,
        stopped: &dyn Fn() -> bool,
    ) -> Result<f64, CalibrateError> {
        let builder = self.builder(piece, size, profile);
        let wanted_ns = self.effort.run_ms * 1e6;
        let least = LEAST_FRAMES.min(piece.most_frames);
        let (mut frames, mut best, mut runs, mut warm) = (4.min(least), f64::MAX, 0, false);
        while runs < self.effort.runs {
            if stopped() {
                return Err(CalibrateError::Interrupted);
            }
            let builder = builder.clone().options(self.options(piece).frames(frames));
            let mut pipeline = match (self.device, piece.space) {
                (Some(device), Space::Gpu) => builder.device(device).build()?,
                _ => builder.build()?,
            };
            let report = pipeline.run()?;
            let whole_ns = report.seconds * 1e9 / frames as f64;
            let called_ns = if piece.is_watched() { self.stopwatch.frame_ns() } else { calls_ns(&report) };
            let ns = called_ns.unwrap_or(whole_ns);
            let is_long = ns * frames as f64 >= wanted_ns / 2.0 || frames >= piece.most_frames.min(MOST_FRAMES);
            // The first run does not count, because drivers still compile during that run, even if the same kernels ran
            // before. The run only shows how many frames are needed.
            if warm && is_long && frames >= least {
                best = best.min(ns);
                runs += 1;
            } else {
                let factor = (wanted_ns / (ns * frames as f64).max(1.0)).clamp(1.0, 64.0);
                let more = (frames as f64 * factor) as u64 + u64::from(warm);
                frames = more.max(least).min(piece.most_frames).min(MOST_FRAMES);
            }
            warm = true;
        }
        Ok(best)
    }

    /// The cost of the piece's plan with this profile, in nanoseconds.
    pub fn cost_ns(&self, piece: &TimedPiece, size: Size, profile: &Profile) -> Result<f64, CalibrateError> {
        Ok(self.builder(piece, size, profile).options(self.options(piece)).plan()?.cost_ns as f64)
    }

    fn builder(&self, piece: &TimedPiece, size: Size, profile: &Profile) -> PipelineBuilder {
        let text = piece.text.replace("SIZE", &size.to_string()).replace("! null", "! stopwatch name=null0");
        Pipeline::parse(text).registry(self.registry).profile(profile.clone())
    }

    fn options(&self, piece: &TimedPiece) -> RunOptions {
        let options = RunOptions::new().slowed(self.slowed).fusion(piece.fusion).on_loss(OnLoss::Stop);
        if piece.pins.is_empty() {
            return options.only(piece.space);
        }
        piece.pins.iter().fold(options, |options, (name, space)| options.place(*name, *space))
    }
}
