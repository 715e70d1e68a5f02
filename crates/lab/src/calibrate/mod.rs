//! Calibration: what this machine really takes, as a profile.
//!
//! Owns the order in which figures are found out, and which are left as estimates.
//! Does not pick an adapter, does not say anything, and does not decide by what it found: plans do.
//!
//! Every figure comes from real pipelines of real handlers, run as any other. What a step takes is what the whole
//! pipeline takes beyond what the figures so far explain, and the planner itself says how much that is. So a plan of such
//! a pipeline costs what was measured. Time is wall time per frame of a run without pace, where it was quickest, since
//! other programs only ever add to it.
//!
//! Always: every figure is finite, above zero and says how it was measured; nothing is kept when it is interrupted.
//!
//! ```no_run
//! use vramp::calibrate::{Calibration, keep};
//! use vramp::gpu::Device;
//!
//! let device = Device::choose().open()?;
//! let profile = Calibration::on(Some(&device)).measure()?;
//! println!("{}", profile.write());
//! keep(&profile, Some(device.adapter()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cost_of;
mod fit;
mod scratch;
mod steps;
mod stopwatch;
mod taken;
mod timer;
mod tune;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vramp_gpu::Device;
use vramp_handlers::registry;
use vramp_machine::{calibrated, figures_of as class_of};
use vramp_pipeline::Error;
use vramp_plan::{FigureOrigin, Profile, Size};

use fit::measured;
use timer::PipelineTimer;

#[doc(hidden)]
pub use stopwatch::Stopwatch;
pub use tune::variants;
pub use vramp_machine::calibrated::{Calibrated, figures_of, keep, known};

/// Why there is no calibration.
#[derive(thiserror::Error)]
pub enum CalibrateError {
    /// It was interrupted.
    #[error("interrupted; nothing was kept, and plans go on with the figures they had")]
    Interrupted,
    /// A pipeline that is measured was not built, or failed.
    #[error(transparent)]
    Pipeline(#[from] Error),
}

vramp_plan::debug_as_display!(CalibrateError);

/// How far a calibration has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationProgress {
    /// Finished steps.
    pub done: usize,
    /// Steps in all.
    pub of: usize,
    /// The step that runs now, for people.
    pub what: String,
}

/// Builds a calibration; [`Calibration::measure`] runs it.
pub struct Calibration<'a> {
    device: Option<&'a Device>,
    hear: Box<dyn Fn(&CalibrationProgress) + 'a>,
    stop: Arc<AtomicBool>,
    effort: Thoroughness,
    slowed: u32,
}

/// Sizes and times of the measurements.
#[derive(Debug, Clone, Copy)]
struct Thoroughness {
    small: Size,
    large: Size,
    /// How long one run should take.
    run_ms: f64,
    runs: usize,
    /// The size at which variants are compared.
    tuned_at: Size,
    /// Sizes beyond the large one, to find where the cache ends.
    beyond: &'static [Size],
}

const fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

const THOROUGH: Thoroughness = Thoroughness {
    small: size(320, 240),
    large: size(1280, 720),
    run_ms: 20.0,
    runs: 2,
    tuned_at: size(640, 360),
    beyond: &[size(1920, 1080), size(2560, 1440), size(3840, 2160)],
};

/// After this long, it hurries.
const LONG: Duration = Duration::from_secs(20);

const HASTY: Thoroughness = Thoroughness {
    small: size(64, 48),
    large: size(256, 192),
    run_ms: 1.0,
    runs: 1,
    tuned_at: size(64, 48),
    beyond: &[size(512, 384)],
};

impl<'a> Calibration<'a> {
    /// Of the host and this device, or of the host alone.
    pub fn on(device: Option<&'a Device>) -> Calibration<'a> {
        Calibration { device, hear: Box::new(|_| {}), stop: Arc::default(), effort: THOROUGH, slowed: 1 }
    }

    /// Tells somebody how far it is.
    #[must_use]
    pub fn listener(mut self, hear: impl Fn(&CalibrationProgress) + 'a) -> Self {
        self.hear = Box::new(hear);
        self
    }

    /// Ends with [`CalibrateError::Interrupted`] soon after this becomes true.
    #[must_use]
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Small pictures and short runs: figures of the right kind that are not worth much.
    #[must_use]
    pub fn hasty(mut self) -> Self {
        self.effort = HASTY;
        self
    }

    /// Computes every band of rows on the host this many times: for tests of placement.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, times: u32) -> Self {
        self.slowed = times;
        self
    }

    /// Measures.
    pub fn measure(self) -> Result<Profile, CalibrateError> {
        let adapter = self.device.map(Device::adapter);
        let threads = calibrated::threads();
        let mut profile = class_of(adapter);
        profile.about = match adapter {
            None => format!("this machine without a device: {}", calibrated::processor()),
            Some(adapter) => format!("{} ({}) and {}", adapter.name, adapter.driver_version, calibrated::processor()),
        };
        profile.cpu.threads = measured(threads as f64, "asked of the system");
        inherit(&mut profile);
        let (mut registry, stopwatch) = (registry(), Stopwatch::default());
        stopwatch.add_to(&mut registry).map_err(Error::Entry)?;
        let (device, effort, slowed) = (self.device, self.effort, self.slowed);
        let mut timer = PipelineTimer { registry: &registry, device, effort, slowed, stopwatch: &stopwatch };
        let steps = steps::all(&registry, self.device.is_some());
        let of = steps.len();
        let folder = scratch::ScratchFolder::make();
        let started = Instant::now();
        for (done, step) in steps.iter().enumerate() {
            (self.hear)(&CalibrationProgress { done, of, what: step.what() });
            if self.stop.load(Ordering::Acquire) {
                return Err(CalibrateError::Interrupted);
            }
            // A machine that is slow or busy is not kept for minutes: what is left is measured once.
            if started.elapsed() > LONG {
                (timer.effort.runs, timer.effort.run_ms) = (1, effort.run_ms / 2.0);
            }
            step.take(&timer, &mut profile, folder.as_ref(), &|| self.stop.load(Ordering::Acquire))?;
        }
        steps::classes(&mut profile);
        (self.hear)(&CalibrationProgress { done: of, of, what: "done".to_owned() });
        Ok(profile.named(calibrated::name_for(adapter)))
    }
}

/// Marks what came with the class of the adapter: whatever is not measured stays an estimate.
fn inherit(profile: &mut Profile) {
    let class = profile.name().to_owned();
    steps::each_rate(profile, |figure| {
        let (FigureOrigin::From(words) | FigureOrigin::Estimate(words)) = &figure.origin else { return };
        figure.origin =
            FigureOrigin::Estimate(format!("nothing of this class could be measured; {class} says: {words}"));
    });
}
