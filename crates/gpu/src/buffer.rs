//! Storage buffers on the device: made for the pool, or adopted from the user's own GPU code.
//!
//! A frame on the device is a whole storage buffer with the same bytes as on the host. A frame is not a texture, so
//! that a transfer is only a copy, and a download can map the buffer itself if host and device share memory. A frame is
//! not a part of a larger buffer, because WebGPU refuses to bind one buffer for reading and writing in the same
//! dispatch, even if the ranges do not overlap.
//!
//! [`Pool`](crate::Pool) decides which owner gets which buffer. When the pool drops a buffer made here, the buffer's
//! memory is freed at once, even if a bind group still refers to the buffer. An adopted buffer is never destroyed here.

use crate::calls::{Calls, Refusal};
use crate::erased::Erased;
use crate::health::Lost;
use crate::memory::Pooled;

/// A lent buffer on the device.
pub type Buffer = Pooled<DeviceMemory>;

/// Usages of every lent buffer: kernels bind the buffer, and copies read and write the buffer.
const USAGES: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// Why a buffer could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// The buffer would be larger than a kernel can bind.
    #[error("a buffer of this device has at most {most_bytes} bytes; use smaller frames, or split them")]
    TooBig { most_bytes: u64 },
    #[error("the device is out of memory; lower the budget, or close other programs that use the device")]
    OutOfMemory,
    #[error("the driver refused: {problem}")]
    Refused { problem: String },
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

/// Why an existing buffer cannot be adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    #[error(
        "a buffer of {bytes} bytes lacks the usages {missing}; create it with STORAGE | COPY_SRC | COPY_DST, or copy \
         it into lent memory"
    )]
    Usage { bytes: u64, missing: String },
    #[error("a buffer of {bytes} bytes cannot be adopted; expected a multiple of 4, from 4 to {most_bytes}")]
    Size { bytes: u64, most_bytes: u64 },
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A storage buffer on a device.
#[derive(Debug)]
pub struct DeviceMemory {
    device: u64,
    buffer: Erased<wgpu::Buffer>,
    /// False for adopted buffers, which are not destroyed here.
    is_ours: bool,
}

impl Pooled<DeviceMemory> {
    /// The same memory with its length rounded up to a multiple of `multiple_bytes`, for kernels that read groups of
    /// values. Bytes after the requested length are undefined. Returns none if the buffer is too small.
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
        // wgpu returns an invalid buffer if the device is lost.
        calls.health.check()?;
        Ok(Self { device, buffer: Erased::new(buffer), is_ours: true })
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
        Ok(Self { device, buffer: Erased::new(raw.clone()), is_ours: false })
    }

    /// wgpu's own buffer, for a user's own GPU code. Work that uses the buffer must be submitted before the last
    /// handle is dropped.
    pub fn raw(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    pub(crate) fn is_of(&self, device: u64) -> bool {
        self.device == device
    }

    pub(crate) fn is_mappable(&self) -> bool {
        // An adopted buffer is not mapped, because the user's own GPU code may use the buffer in the meantime.
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
