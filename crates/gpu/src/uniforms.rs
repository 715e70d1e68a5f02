//! Kernel parameters: one uniform buffer, used as a ring.
//!
//! Parameters travel in the same staging memory as uploads and are copied into the uniform buffer in the same submit.
//!
//! Invariants: each block starts at a valid dynamic offset. The queue runs submissions in order, so a block is never
//! overwritten before the kernels that read the block have run.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::calls::{Calls, Refusal};

/// Room for the parameters of several dozen dispatches at the usual alignment of 256 bytes.
const FIRST_BYTES: u64 = 16 << 10;

/// Identifies uniform buffers in bind group keys; never reused.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Uniforms {
    id: u64,
    buffer: wgpu::Buffer,
    next: u64,
    alignment: u64,
}

impl Uniforms {
    pub(crate) fn new(calls: &Calls, alignment: u32) -> Result<Self, Refusal> {
        let (id, buffer) = make(calls, FIRST_BYTES)?;
        Ok(Self { id, buffer, next: 0, alignment: u64::from(alignment).max(16) })
    }

    /// Size of a block after alignment.
    pub(crate) fn block_bytes(&self, bytes: u32) -> u64 {
        u64::from(bytes).next_multiple_of(self.alignment)
    }

    /// Reserves room for all parameter blocks of a recording, `bytes` in total, and returns the offset of that room.
    pub(crate) fn reserve(&mut self, calls: &Calls, bytes: u64) -> Result<u64, Refusal> {
        if bytes > self.buffer.size() {
            let (id, buffer) = make(calls, bytes.next_power_of_two())?;
            (self.id, self.buffer, self.next) = (id, buffer, 0);
        }
        if self.next + bytes > self.buffer.size() {
            self.next = 0;
        }
        let at = self.next;
        self.next += bytes;
        Ok(at)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

fn make(calls: &Calls, bytes: u64) -> Result<(u64, wgpu::Buffer), Refusal> {
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let buffer = calls.create_buffer("vramp params", bytes, usage, false)?;
    Ok((LAST_ID.fetch_add(1, Ordering::Relaxed) + 1, buffer))
}
