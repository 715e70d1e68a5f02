//! Staging buffers for transfers to the device.
//!
//! Each slot of a ring is a mapped buffer with everything that one recording sends: parameters first, then uploads. The
//! submit that plays the recording copies out of the slot. The player then returns the slot to the ring.
//!
//! Invariant: a slot is written only while it is mapped, and is mapped again after its submission has finished.
//!
//! `Queue::write_buffer` is not used, because that function creates a staging buffer for every call. Measured on
//! llvmpipe with one dispatch and one readback of 64x64 pixels per frame, a player that stages its parameters here took
//! 84.6 us of CPU time per frame, and a hand-written program with `write_buffer` took 84.3 us (benches/overhead.rs).

use std::sync::Arc;

use crate::calls::{Calls, Mapping, Refusal};
use crate::memory::{SIZE_CLASS_BYTES, StagingRing};

pub(crate) struct Uploads {
    ring: StagingRing,
    slots: Vec<UploadSlot>,
}

#[derive(Default)]
struct UploadSlot {
    buffer: Option<wgpu::Buffer>,
    mapping: Arc<Mapping>,
}

/// A claimed slot, mapped and large enough.
pub(crate) struct Staging {
    pub(crate) buffer: wgpu::Buffer,
    slot: usize,
}

impl Uploads {
    pub(crate) fn new(slots: usize) -> Self {
        let ring = StagingRing::new(slots);
        let slots = (0..ring.slots()).map(|_| UploadSlot::default()).collect();
        Self { ring, slots }
    }

    /// Claims a slot for this many bytes. Returns none if all slots are in flight.
    pub(crate) fn claim(&mut self, calls: &Calls, bytes: u64) -> Result<Option<Staging>, Refusal> {
        self.land();
        let Some(slot) = self.ring.claim() else { return Ok(None) };
        let wanted = bytes.next_multiple_of(SIZE_CLASS_BYTES);
        let kept = self.slots[slot].buffer.take().filter(|buffer| buffer.size() >= wanted);
        let buffer = match kept {
            Some(buffer) => buffer,
            None => match make(calls, wanted) {
                Ok(buffer) => buffer,
                Err(refusal) => {
                    self.ring.abandon(slot);
                    return Err(refusal);
                }
            },
        };
        self.slots[slot].buffer = Some(buffer.clone());
        Ok(Some(Staging { buffer, slot }))
    }

    /// Returns a claimed slot whose submission was refused. The slot's buffer may be unmapped, so the next claim
    /// creates a new buffer.
    pub(crate) fn abandon(&mut self, staging: &Staging) {
        self.slots[staging.slot].buffer = None;
        self.ring.abandon(staging.slot);
    }

    /// Requests that the slot is mapped again after the submission that reads the slot.
    pub(crate) fn send(&mut self, calls: &Calls, staging: &Staging) {
        let mapping = &self.slots[staging.slot].mapping;
        calls.map(&staging.buffer, wgpu::MapMode::Write, staging.buffer.size(), mapping);
        self.ring.send(staging.slot);
    }

    /// Total size of the staging buffers.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots.iter().filter_map(|slot| slot.buffer.as_ref()).map(wgpu::Buffer::size).sum()
    }

    /// Frees the slots that are mapped again.
    fn land(&mut self) {
        while let Some((_, slot)) = self.ring.oldest() {
            let UploadSlot { buffer, mapping } = &mut self.slots[slot];
            if !mapping.is_settled() {
                break;
            }
            if mapping.has_failed() {
                // The buffer cannot be written any more. The next claim creates a new buffer.
                *buffer = None;
                *mapping = Arc::default();
            }
            self.ring.take();
            self.ring.release(slot);
        }
    }
}

fn make(calls: &Calls, bytes: u64) -> Result<wgpu::Buffer, Refusal> {
    let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
    calls.create_buffer("vramp upload", bytes, usage, true)
}
