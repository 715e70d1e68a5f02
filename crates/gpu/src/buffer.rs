//! Memory on the device: what the device's pool lends, and buffers of others that are taken in.
//!
//! Owns the making and the end of storage buffers, and what somebody else's must be to be used like one.
//! Does not say who gets which: that is the pool's.
//!
//! Always: a buffer made here that is given up frees its memory at once, whatever bind group still names it; one that
//! somebody else made is only let go.

use crate::calls::{Calls, Refusal};
use crate::health::Lost;
use crate::memory::Pooled;

/// A lent buffer on the device.
pub type Buffer = Pooled<DeviceMemory>;

/// What memory is used for: kernels, and copies both ways.
const USAGES: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

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

/// Why somebody's buffer was not taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// It may not be used as memory of ours is.
    #[error(
        "a buffer of {bytes} bytes without {missing} was given; make it with STORAGE | COPY_SRC | COPY_DST, or copy it \
         into memory that is lent"
    )]
    Usage {
        /// What it has.
        bytes: u64,
        /// The names of the usages that it lacks.
        missing: String,
    },
    /// Kernels could not see it.
    #[error("a buffer of {bytes} bytes was given; one of this device has whole words, from 4 to {most_bytes} bytes")]
    Size {
        /// What it has.
        bytes: u64,
        /// What the device can bind.
        most_bytes: u64,
    },
    /// The device is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A storage buffer on a device.
#[derive(Debug)]
pub struct DeviceMemory {
    device: u64,
    buffer: wgpu::Buffer,
    /// Whether it was made here, and ends here.
    is_ours: bool,
}

impl Pooled<DeviceMemory> {
    /// The same memory, seen up to a multiple of so many bytes, as kernels need it that read groups of values: behind
    /// what was asked for lies whatever was there before. None where there is no such memory.
    pub fn filled_up_to(&self, multiple_bytes: u64) -> Option<Buffer> {
        let bytes = self.bytes().next_multiple_of(multiple_bytes.max(1));
        (bytes <= self.raw().size()).then(|| self.of_bytes(bytes))
    }
}

impl DeviceMemory {
    pub(crate) fn make(calls: &Calls, device: u64, bytes: u64, mappable: bool) -> Result<Self, BufferError> {
        calls.health.check()?;
        let mut usage = USAGES;
        usage.set(wgpu::BufferUsages::MAP_READ, mappable);
        let buffer = calls.create_buffer("vramp pool", bytes, usage, false)?;
        // wgpu hands out a dead buffer where the device is gone.
        calls.health.check()?;
        Ok(Self { device, buffer, is_ours: true })
    }

    pub(crate) fn adopt(device: u64, most_bytes: u64, raw: &wgpu::Buffer) -> Result<Self, AdoptError> {
        let bytes = raw.size();
        if bytes == 0 || bytes > most_bytes || !bytes.is_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT) {
            return Err(AdoptError::Size { bytes, most_bytes });
        }
        let missing = USAGES - raw.usage();
        if !missing.is_empty() {
            let names: Vec<&str> = missing.iter_names().map(|(name, _)| name).collect();
            return Err(AdoptError::Usage { bytes, missing: names.join(" | ") });
        }
        Ok(Self { device, buffer: raw.clone(), is_ours: false })
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
        // Somebody else's may be used meanwhile by whoever made it.
        self.is_ours && self.buffer.usage().contains(wgpu::BufferUsages::MAP_READ)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.is_ours {
            self.buffer.destroy();
        }
    }
}
