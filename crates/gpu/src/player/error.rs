//! Why a recording was not played.
//!
//! Owns one case per cause, with the remedy.
//! Does not undo anything: a recording that was refused is as it was.

use std::sync::Arc;

use crate::calls::Refusal;
use crate::health::Lost;
use crate::memory::Tag;

/// Why a recording was not played. It is unchanged, and can be played later or elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// As many frames are under way as may be.
    #[error("{under_way} frames are under way, which is the most; play it again when one has finished")]
    Busy {
        /// How many.
        under_way: usize,
    },
    /// Downloads that arrived were not taken, or are still held.
    #[error("all {slots} slots for downloads are taken; take what has arrived, and drop it")]
    NotTaken {
        /// How many.
        slots: usize,
    },
    /// Memory of another device.
    #[error("{buffer} is memory of another device; download it there and upload it here")]
    StrangeBuffer {
        /// Which memory.
        buffer: Tag,
    },
    /// A kernel of another device, one that was never compiled, or one that was forgotten.
    #[error("{kernel} was not prepared on this device; prepare it first")]
    StrangeKernel {
        /// Which kernel.
        kernel: Arc<str>,
    },
    /// A texture of another device.
    #[error("{texture} belongs to another device; make it on this one")]
    StrangeTexture {
        /// Which one.
        texture: String,
    },
    /// A kernel would see memory from where the device cannot show it.
    #[error(
        "{kernel} is to see memory from byte {offset} on; this device shows it from multiples of {alignment}; copy it"
    )]
    Unaligned {
        /// Which kernel.
        kernel: Arc<str>,
        /// Where.
        offset: u64,
        /// What the device asks for.
        alignment: u64,
    },
    /// More workgroups in a row than the device allows.
    #[error("{kernel} is to run over {grid:?} workgroups, the device allows {most} along each side; fold the grid")]
    GridTooLong {
        /// Which kernel.
        kernel: Arc<str>,
        /// Over how many.
        grid: [u32; 3],
        /// What is allowed.
        most: u32,
    },
    /// The device has no memory left for the rings.
    #[error("the device is out of memory for transfers; lower the budget, or send less per frame")]
    OutOfMemory,
    /// The driver refused.
    #[error("the driver refused a frame: {problem}")]
    Refused {
        /// What it says.
        problem: String,
    },
    /// The oldest submission does not end.
    #[error("{kernel} did not end within {waited_ms} ms; the device hangs")]
    Overdue {
        /// Its kernels, the first four.
        kernel: Arc<str>,
        /// How long was waited for it.
        waited_ms: u64,
    },
    /// The device is gone.
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
