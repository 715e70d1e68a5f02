//! Memory on the device: what the device's pool lends.
//!
//! Owns the making and the end of storage buffers.
//! Does not say who gets which: that is the pool's.
//!
//! Always: a buffer that is given up frees its memory at once, whatever bind group still names it.

use crate::calls::{Calls, Refusal};
use crate::health::Lost;
use crate::memory::Lent;

/// A lent buffer on the device.
pub type Buffer = Lent<DeviceMemory>;

/// Why a buffer could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// A kernel could not see all of it.
    #[error("one buffer of this device has at most {most_bytes}; use smaller frames, or split them")]
    TooBig {
        /// What the device can bind.
        most_bytes: u64,
    },
    /// The device has no memory left.
    #[error("the device is out of memory; lower the budget, or close what else uses it")]
    OutOfMemory,
    /// The driver refused.
    #[error("the driver refused: {problem}")]
    Refused {
        /// What it says.
        problem: String,
    },
    /// The device is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl From<Refusal> for BufferError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfMemory => Self::OutOfMemory,
            Refusal::Refused(problem) => Self::Refused { problem },
        }
    }
}

/// A storage buffer on a device.
#[derive(Debug)]
pub struct DeviceMemory {
    device: u64,
    buffer: wgpu::Buffer,
}

impl DeviceMemory {
    pub(crate) fn make(calls: &Calls, device: u64, bytes: u64, mappable: bool) -> Result<Self, BufferError> {
        calls.health.check()?;
        let mut usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        usage.set(wgpu::BufferUsages::MAP_READ, mappable);
        let buffer = calls.create_buffer("vramp pool", bytes, usage, false)?;
        // wgpu hands out a dead buffer where the device is gone.
        calls.health.check()?;
        Ok(Self { device, buffer })
    }

    /// wgpu's own buffer, for a user's own GPU code. What it is used for there must be submitted before the frame is
    /// given back.
    pub fn raw(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    pub(crate) fn is_of(&self, device: u64) -> bool {
        self.device == device
    }

    pub(crate) fn is_mappable(&self) -> bool {
        self.buffer.usage().contains(wgpu::BufferUsages::MAP_READ)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.buffer.destroy();
    }
}
