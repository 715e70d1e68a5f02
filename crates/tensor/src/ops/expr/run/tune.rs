//! Tuning: measures which tile suits a device, by computing products of one size with every candidate tile. Tuning runs
//! only on request; an untuned device uses the default tile for its kind.
//!
//! Invariants: all tiles give the same product within the tolerance of products. A trial that fails is skipped and
//! leaves the device unchanged.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::ops::context::Context;
use crate::ops::device::matmul::{Form, Tile};
use crate::ops::error::TensorError;

/// The side of the test matrices: large enough for any tile, small enough for a software driver.
const SIDE: usize = 256;
const ROUNDS: usize = 3;

/// Results of earlier tuning in this process, by adapter name and driver.
static FOUND: Mutex<Vec<(String, DeviceTuning, Tile)>> = Mutex::new(Vec::new());

/// The result of [`Context::tune`].
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceTuning {
    /// Every tile that was tried.
    pub trials: Vec<TuningTrial>,
    /// The index of the trial in use.
    pub best: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TuningTrial {
    pub name: String,
    /// Milliseconds for a product of 256 by 256 by 256, the fastest of three runs.
    pub ms: f64,
}

impl Context {
    /// Measures which kernels for matrix products suit the device, and uses the fastest from now on. An adapter is
    /// measured once per process. Measuring takes about a second on a software driver, mostly for compilation.
    pub fn tune(&self) -> Result<DeviceTuning, TensorError> {
        let op = "tune";
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op }) };
        let adapter = side.device().adapter();
        let identity = format!("{} {:?} {}", adapter.name, adapter.backend, adapter.driver);
        let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tuning, tile)) = known().iter().find(|(name, ..)| *name == identity) {
            side.set_tile(Some(*tile));
            return Ok(tuning.clone());
        }
        let values: Vec<f32> = (0..SIDE * SIDE).map(|at| (at % 17) as f32 - 8.0).collect();
        let a = self.tensor(&values, &[SIDE, SIDE])?;
        let mut trials = Vec::new();
        for tile in Tile::CANDIDATES {
            side.set_tile(Some(tile));
            let tried = (0..=ROUNDS).map(|_| {
                let started = Instant::now();
                let product = a.matmul(&a)?;
                self.finish()?;
                drop(product);
                Ok::<_, TensorError>(started.elapsed().as_secs_f64() * 1e3)
            });
            // The first run, which compiles the kernel, is not counted.
            let times: Result<Vec<f64>, TensorError> = tried.collect();
            let ms = times.map(|times| times[1..].iter().copied().fold(f64::MAX, f64::min));
            match ms {
                Ok(ms) => trials.push((TuningTrial { name: name(tile), ms }, tile)),
                Err(error) => self.say(|| format!("{} cannot be used: {error}", name(tile))),
            }
        }
        side.set_tile(None);
        side.device().check().map_err(|lost| TensorError::Lost { op, reason: lost.reason })?;
        let best = (0..trials.len()).min_by(|one, other| trials[*one].0.ms.total_cmp(&trials[*other].0.ms));
        let Some(best) = best else {
            return Err(TensorError::NotSupported {
                op,
                problem: "no kernel for products works on this device".to_owned(),
            });
        };
        let tile = trials[best].1;
        side.set_tile(Some(tile));
        let tuning = DeviceTuning { trials: trials.into_iter().map(|(trial, _)| trial).collect(), best };
        self.say(|| format!("products in {}", tuning.trials[best].name));
        known().push((identity, tuning.clone(), tile));
        Ok(tuning)
    }
}

fn name(tile: Tile) -> String {
    let kept = match tile.form {
        Form::Registers => "registers",
        Form::Shared => "shared memory",
    };
    format!("{}x{} in {kept}", tile.m, tile.n)
}
