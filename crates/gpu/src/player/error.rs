//! The errors of playing a recording.

use std::sync::Arc;

use crate::calls::Refusal;
use crate::health::Lost;
use crate::memory::Tag;

/// Why a recording was not played. The recording is unchanged, and can be played later or on another device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    #[error("{under_way} frames are in flight, which is the limit; play this recording when a frame has finished")]
    Busy { under_way: usize },
    /// Downloads that have arrived were not taken, or were taken and are still held.
    #[error("all {slots} readback slots are in use; take and drop the downloads that have arrived")]
    NotTaken { slots: usize },
    #[error("{buffer} belongs to another device; download it there and upload it here")]
    StrangeBuffer { buffer: Tag },
    /// The kernel belongs to another device, was only described, or was dropped from the cache.
    #[error("{kernel} was not prepared on this device; prepare it first")]
    StrangeKernel { kernel: Arc<str> },
    #[error("{texture} belongs to another device; create it on this device")]
    StrangeTexture { texture: String },
    #[error(
        "{kernel} binds a buffer at offset {offset}, which is not a multiple of this device's alignment of \
         {alignment}; copy that part to a buffer of its own"
    )]
    Unaligned { kernel: Arc<str>, offset: u64, alignment: u64 },
    #[error(
        "{kernel} is dispatched over {grid:?} workgroups, but the device allows {most} per dimension; fold the grid"
    )]
    GridTooLong { kernel: Arc<str>, grid: [u32; 3], most: u32 },
    /// No memory for staging or readback.
    #[error("the device is out of memory for transfers; lower the budget, or send less per frame")]
    OutOfMemory,
    #[error("the driver refused a frame: {problem}")]
    Refused { problem: String },
    #[error("{kernel} did not end within {waited_ms} ms; the device hangs")]
    Overdue {
        /// The names of the first four kernels of the submission.
        kernel: Arc<str>,
        waited_ms: u64,
    },
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl PlayError {
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn overdue(kernels: &crate::calls::Kernels, waited: std::time::Duration) -> Self {
        Self::Overdue { kernel: kernels.to_string().into(), waited_ms: waited.as_millis() as u64 }
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfMemory => Self::OutOfMemory,
            Refusal::Refused(problem) => Self::Refused { problem },
        }
    }
}
