//! Calibration (`vramp devices --calibrate`): makes a profile of this machine by measuring.
//!
//! Every measured figure comes from pipelines of built-in handlers that run like any other pipeline: a solid image at
//! several sizes (for calls, cache and memory of the CPU), chains of dispatches, both transfers, files, and every
//! runnable handler with a kernel except `lut`, which needs a file. Every handler is measured at two sizes on the CPU,
//! and at two sizes on the GPU. Each step measures the time of a whole pipeline. From the figures of earlier steps, the
//! planner computes the cost of the parts that are known already, and the step subtracts this cost from the time. The
//! rest is the cost of the part that the step measures. So the planner's cost of a measured pipeline equals the
//! measured time. Figures that cannot be measured keep the value of the adapter's class and are marked as estimates.
//!
//! Time is wall time per frame of an unpaced run. The sink `stopwatch` takes this time from the quickest parts of the
//! run, because other programs can only make a run slower. Before handlers are measured on the GPU, each class of
//! kernels is tuned.
//!
//! The result is stored as a profile file next to the list of adapters ([`keep`]). The file's first lines record what
//! the figures depend on: adapter, driver, processor, threads, vramp's version, and whether vramp was an optimized
//! build. A file that does not match, or is incomplete, is not used. Pipelines are planned with the stored profile by
//! default, and such plans print `calibrated:` and the device's name. The CPU's part of the profile is also stored
//! separately, for `--cpu`.
//!
//! Choosing an adapter and printing progress are left to the caller.
//!
//! Invariants: every figure is finite, above zero, and records its origin: a measurement or an estimate. An interrupted
//! calibration keeps nothing.
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

/// Why a calibration failed.
#[derive(thiserror::Error)]
pub enum CalibrateError {
    #[error("interrupted; no measurement was kept, and plans use the same figures as before")]
    Interrupted,
    /// A measured pipeline could not be built, or failed.
    #[error(transparent)]
    Pipeline(#[from] Error),
}

vramp_plan::debug_as_display!(CalibrateError);

/// The progress of a calibration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationProgress {
    pub done: usize,
    pub of: usize,
    /// The current step, for people.
    pub what: String,
}

/// Builder of a calibration; [`Calibration::measure`] runs the calibration.
pub struct Calibration<'a> {
    device: Option<&'a Device>,
    hear: Box<dyn Fn(&CalibrationProgress) + 'a>,
    stop: Arc<AtomicBool>,
    effort: Thoroughness,
    slowed: u32,
}

/// The sizes and durations of the measurements.
#[derive(Debug, Clone, Copy)]
struct Thoroughness {
    small: Size,
    large: Size,
    /// The intended duration of one run.
    run_ms: f64,
    runs: usize,
    /// The image size at which variants are compared.
    tuned_at: Size,
    /// Sizes beyond `large`, to find where the cache ends.
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

/// After this time, the remaining figures are measured with fewer and shorter runs.
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
    /// Calibrates the CPU and this device, or the CPU alone.
    pub fn on(device: Option<&'a Device>) -> Calibration<'a> {
        Calibration { device, hear: Box::new(|_| {}), stop: Arc::default(), effort: THOROUGH, slowed: 1 }
    }

    /// Sets a function that is called with the progress before every step and at the end.
    #[must_use]
    pub fn listener(mut self, hear: impl Fn(&CalibrationProgress) + 'a) -> Self {
        self.hear = Box::new(hear);
        self
    }

    /// Ends the calibration with [`CalibrateError::Interrupted`] soon after `stop` becomes true.
    #[must_use]
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }

    /// Uses small images and short runs, for tests. The profile is complete, but its figures are imprecise.
    #[must_use]
    pub fn hasty(mut self) -> Self {
        self.effort = HASTY;
        self
    }

    /// Makes the CPU slower for tests of placement: every band of rows is computed this many times.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, times: u32) -> Self {
        self.slowed = times;
        self
    }

    /// Runs all measurements.
    pub fn measure(self) -> Result<Profile, CalibrateError> {
        let adapter = self.device.map(Device::adapter);
        let threads = calibrated::threads();
        let mut profile = class_of(adapter);
        profile.about = match adapter {
            None => format!("this machine without a device: {}", calibrated::processor()),
            Some(adapter) => format!("{} ({}) and {}", adapter.name, adapter.driver_version, calibrated::processor()),
        };
        profile.cpu.threads = measured(threads as f64, "reported by the system");
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
            // A calibration should not take minutes, so on a slow or busy machine the remaining figures are measured
            // with fewer and shorter runs.
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

/// Marks the rates of all classes of work as estimates, because they come from the adapter's class. Measured rates
/// replace the estimates later.
fn inherit(profile: &mut Profile) {
    let class = profile.name().to_owned();
    steps::each_rate(profile, |figure| {
        let (FigureOrigin::From(words) | FigureOrigin::Estimate(words)) = &figure.origin else { return };
        figure.origin = FigureOrigin::Estimate(format!("not measured on this machine; from {class}: {words}"));
    });
}
