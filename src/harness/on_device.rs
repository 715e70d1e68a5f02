//! What stepping on a device needs besides the pipeline: its figures, and a way to wait for it.
//!
//! Owns the figures of a device that is open already, with its own limits, and a fence behind all that it was given.
//! Does not run anything of a graph.
//!
//! Always: after a fence everything that was submitted before it has finished, and whoever asks hears of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use vramp_gpu::{AdapterKind, Buffer, BufferError, Device, LendError, PlayError, Player, Recording};
use vramp_plan::Profile;

/// Nothing a test gives a device takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shipped figures of the device's class, under the limits that it was opened with. Listing adapters to find the
/// class again would take longer than most tests.
pub(crate) fn figures(device: &Device) -> Profile {
    let class = if device.adapter().kind == AdapterKind::Software { "software" } else { "integrated" };
    let mut profile = Profile::shipped(class).expect("every class ships, tests/shipped.rs");
    if let Some(gpu) = &mut profile.gpu {
        let (limits, has) = (&mut gpu.limits, device.limits());
        limits.storage_buffers_per_stage.value = f64::from(has.storage_buffers_per_stage);
        limits.binding_bytes.value = has.binding_bytes as f64;
        limits.buffer_bytes.value = has.buffer_bytes as f64;
        limits.workgroups_per_dimension.value = f64::from(has.workgroups_per_dimension);
    }
    profile
}

/// Why the device could not be waited for.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// It had no memory for a mark.
    #[error(transparent)]
    Lend(#[from] LendError<BufferError>),
    /// It would not take one.
    #[error(transparent)]
    Play(#[from] PlayError),
    /// It did not come to the mark.
    #[error("the device has not finished what it was given within {PATIENCE:?}")]
    Overdue,
}

/// Held while a rig steps. Whoever polls a device hears for everybody: while another thread is about to tell this one
/// that its frame is there, this one would find nothing and believe that nothing will come.
static TURN: Mutex<()> = Mutex::new(());

/// A mark behind everything that was submitted.
pub(crate) struct Fence {
    player: Player,
    mark: Buffer,
    recording: Recording,
    /// Submissions when it last waited, its own included.
    submits: Option<u64>,
}

impl Fence {
    pub(crate) fn on(device: &Device) -> Result<Fence, FenceError> {
        let mark = device.lend(16, &Arc::from("harness"))?;
        Ok(Fence { player: Player::on(device).build()?, mark, recording: Recording::new(), submits: None })
    }

    /// Lets one rig step at a time.
    pub(crate) fn turn() -> MutexGuard<'static, ()> {
        // It guards nothing that a panic could leave half done.
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has moved: what the device has is worth waiting for again.
    pub(crate) fn lift(&mut self) {
        self.submits = None;
    }

    /// Waits until the device has finished everything so far; says whether there was anything to wait for. What was
    /// recorded while the device had no room is submitted late and moves nothing, so submits are what counts.
    pub(crate) fn wait(&mut self) -> Result<bool, FenceError> {
        let device = self.player.device().clone();
        if self.submits == Some(device.counters().submits) {
            return Ok(false);
        }
        self.recording.zero(&self.mark);
        self.player.play(&mut self.recording)?;
        let started = Instant::now();
        while !self.player.wait(PATIENCE)? {
            if started.elapsed() >= PATIENCE {
                return Err(FenceError::Overdue);
            }
            std::thread::yield_now();
        }
        self.submits = Some(device.counters().submits);
        Ok(true)
    }
}
