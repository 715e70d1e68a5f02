//! Readbacks: the receiving end of downloads, in the order of their recordings.
//!
//! A ring of slots receives the downloads; all downloads of a recording share one slot. The runtime copies the bytes
//! into a frame of the host's pool at once, so the slot does not stay in use while the frame is kept. Only
//! [`Readbacks::wait`] blocks.
//!
//! Invariants: downloads arrive in the order in which they were recorded. A slot is reused after its [`Arrived`] is
//! dropped. If host and device share memory and only the recording holds a buffer, the buffer itself is mapped instead
//! of a copy, and returns to its pool afterwards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::calls::{Calls, Mapping, Refusal};
use crate::device::Device;
use crate::health::Lost;
use crate::memory::{SIZE_CLASS_BYTES, StagingRing};
use crate::recording::COPY_BYTES;

/// Why bytes did not arrive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadbackError {
    #[error(transparent)]
    Lost(#[from] Lost),
    #[error("download {ticket} did not arrive: {problem}; the frame is lost, but later frames may arrive")]
    NotMapped { ticket: u64, problem: String },
}

/// The receiving end of a player's downloads. Clones share the downloads and may be used by other threads.
#[derive(Clone)]
pub struct Readbacks {
    device: Device,
    state: Arc<Mutex<ReadbackState>>,
}

pub(crate) struct ReadbackState {
    ring: StagingRing,
    slots: Vec<ReadbackSlot>,
}

#[derive(Default)]
struct ReadbackSlot {
    buffer: Option<wgpu::Buffer>,
    mapping: Arc<Mapping>,
    parts: Vec<DownloadPart>,
    shown: Vec<MappedPart>,
    submission: Option<wgpu::SubmissionIndex>,
}

/// One download of a slot. The offset counts in the buffer `direct` if there is one, and otherwise in the slot's
/// staging buffer.
struct DownloadPart {
    offset: u64,
    bytes: u64,
    direct: Option<Buffer>,
}

/// A download that has arrived.
struct MappedPart {
    view: wgpu::BufferView,
    bytes: usize,
    direct: Option<Buffer>,
}

/// The downloads of one recording. Dropping this value frees the slot.
pub struct Arrived {
    ticket: u64,
    slot: usize,
    shown: Vec<MappedPart>,
    staged: Option<wgpu::Buffer>,
    state: Arc<Mutex<ReadbackState>>,
}

impl Arrived {
    /// The ticket that [`Player::play`](crate::Player::play) returned for the recording.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Number of downloads of the recording.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// Always false: a recording without downloads has no ticket.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// The bytes of one download. `download` counts the downloads of the recording from 0, in the order of recording.
    pub fn bytes(&self, download: usize) -> &[u8] {
        let shown = &self.shown[download];
        &shown.view[..shown.bytes]
    }
}

impl std::fmt::Debug for Arrived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arrived").field("ticket", &self.ticket).field("downloads", &self.len()).finish_non_exhaustive()
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        for shown in self.shown.drain(..) {
            let MappedPart { view, direct, .. } = shown;
            // A buffer with views cannot be unmapped, and a mapped buffer must not return to its pool.
            drop(view);
            if let Some(buffer) = direct {
                buffer.raw().unmap();
            }
        }
        if let Some(buffer) = self.staged.take() {
            buffer.unmap();
        }
        let mut state = lock(&self.state);
        state.slots[self.slot].shown = std::mem::take(&mut self.shown);
        state.ring.release(self.slot);
    }
}

impl std::fmt::Debug for Readbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Readbacks").field("ring", &state.ring).finish_non_exhaustive()
    }
}

impl Readbacks {
    pub(crate) fn new(device: &Device, slots: usize) -> Self {
        let ring = StagingRing::new(slots);
        let slots = (0..ring.slots()).map(|_| ReadbackSlot::default()).collect();
        Self { device: device.clone(), state: Arc::new(Mutex::new(ReadbackState { ring, slots })) }
    }

    /// Returns the downloads of the oldest recording if they have arrived; does not wait.
    pub fn take(&self) -> Result<Option<Arrived>, ReadbackError> {
        if !self.has_arrived() {
            self.device.poll()?;
        }
        self.take_known()
    }

    /// Waits for the downloads of the oldest recording. Returns none if no download is pending, or after `timeout`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&self, timeout: std::time::Duration) -> Result<Option<Arrived>, ReadbackError> {
        if let Some(arrived) = self.take()? {
            return Ok(Some(arrived));
        }
        let submission = {
            let state = lock(&self.state);
            let Some((_, slot)) = state.ring.oldest() else { return Ok(None) };
            state.slots[slot].submission.clone()
        };
        if let Some(submission) = submission {
            self.device.calls().wait(submission, timeout)?;
        }
        self.take_known()
    }

    /// Recordings whose downloads are in flight or were not taken yet.
    pub fn pending(&self) -> usize {
        lock(&self.state).ring.sent()
    }

    pub fn slots(&self) -> usize {
        lock(&self.state).ring.slots()
    }

    pub(crate) fn bytes(&self) -> u64 {
        let state = lock(&self.state);
        state.slots.iter().filter_map(|slot| slot.buffer.as_ref()).map(wgpu::Buffer::size).sum()
    }

    fn has_arrived(&self) -> bool {
        let state = lock(&self.state);
        state.ring.oldest().is_none_or(|(_, slot)| state.slots[slot].mapping.is_settled())
    }

    fn take_known(&self) -> Result<Option<Arrived>, ReadbackError> {
        let mut state = lock(&self.state);
        let Some((_, at)) = state.ring.oldest() else { return Ok(None) };
        if !state.slots[at].mapping.is_settled() {
            self.device.check()?;
            return Ok(None);
        }
        let Some((ticket, at)) = state.ring.take() else { return Ok(None) };
        let slot = &mut state.slots[at];
        slot.submission = None;
        match slot.show() {
            Ok(()) => {
                let staged = slot.shown.iter().any(|shown| shown.direct.is_none());
                let staged = if staged { slot.buffer.clone() } else { None };
                let shown = std::mem::take(&mut slot.shown);
                Ok(Some(Arrived { ticket, slot: at, shown, staged, state: Arc::clone(&self.state) }))
            }
            Err(problem) => {
                slot.reset();
                state.ring.release(at);
                drop(state);
                self.device.check()?;
                Err(ReadbackError::NotMapped { ticket, problem })
            }
        }
    }

    /// Claims a slot for a recording's downloads. Returns none if all slots are in flight, or hold downloads that were
    /// not taken or not dropped.
    pub(crate) fn claim(&self) -> Option<Claimed> {
        let slot = lock(&self.state).ring.claim()?;
        Some(Claimed { slot, staged_bytes: 0 })
    }

    pub(crate) fn abandon(&self, claimed: &Claimed) {
        let mut state = lock(&self.state);
        state.slots[claimed.slot].parts.clear();
        state.ring.abandon(claimed.slot);
    }

    /// Adds a download that is copied into the slot's staging buffer, and returns the download's offset in that buffer.
    pub(crate) fn add_copied(&self, claimed: &mut Claimed, bytes: u64) -> u64 {
        let offset = claimed.staged_bytes;
        claimed.staged_bytes = (offset + bytes).next_multiple_of(SIZE_CLASS_BYTES);
        lock(&self.state).slots[claimed.slot].parts.push(DownloadPart { offset, bytes, direct: None });
        offset
    }

    /// Adds a download for which the buffer itself will be mapped.
    pub(crate) fn add_direct(&self, claimed: &Claimed, buffer: Buffer, offset: u64, bytes: u64) {
        lock(&self.state).slots[claimed.slot].parts.push(DownloadPart { offset, bytes, direct: Some(buffer) });
    }

    /// The slot's staging buffer, large enough for the slot's copied downloads; none if nothing is copied.
    pub(crate) fn staging(&self, calls: &Calls, claimed: &Claimed) -> Result<Option<wgpu::Buffer>, Refusal> {
        if claimed.staged_bytes == 0 {
            return Ok(None);
        }
        let mut state = lock(&self.state);
        let slot = &mut state.slots[claimed.slot];
        if let Some(buffer) = slot.buffer.as_ref().filter(|buffer| buffer.size() >= claimed.staged_bytes) {
            return Ok(Some(buffer.clone()));
        }
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let buffer = calls.create_buffer("vramp download", claimed.staged_bytes, usage, false)?;
        slot.buffer = Some(buffer.clone());
        Ok(Some(buffer))
    }

    /// Requests that the slot's buffers are mapped after this submission, and returns the ticket.
    pub(crate) fn send(&self, calls: &Calls, claimed: &Claimed, submission: &wgpu::SubmissionIndex) -> u64 {
        let mut state = lock(&self.state);
        let slot = &mut state.slots[claimed.slot];
        slot.submission = Some(submission.clone());
        if let (Some(buffer), true) = (&slot.buffer, claimed.staged_bytes > 0) {
            calls.map(buffer, wgpu::MapMode::Read, claimed.staged_bytes, &slot.mapping);
        }
        for part in &slot.parts {
            if let Some(buffer) = &part.direct {
                let end = (part.offset + part.bytes).next_multiple_of(COPY_BYTES);
                calls.map(buffer.raw(), wgpu::MapMode::Read, end, &slot.mapping);
            }
        }
        state.ring.send(claimed.slot)
    }
}

/// A slot that is being filled.
#[derive(Clone, Copy)]
pub(crate) struct Claimed {
    slot: usize,
    staged_bytes: u64,
}

impl ReadbackSlot {
    /// Opens a view of the mapped memory of every download.
    fn show(&mut self) -> Result<(), String> {
        if self.mapping.has_failed() {
            return Err("the driver did not map the download's memory".into());
        }
        for part in self.parts.drain(..) {
            let DownloadPart { offset, bytes, direct } = part;
            let range = offset..(offset + bytes).next_multiple_of(COPY_BYTES);
            let view = match (&direct, &self.buffer) {
                (Some(buffer), _) => buffer.raw().get_mapped_range(range),
                (None, Some(buffer)) => buffer.get_mapped_range(range),
                (None, None) => return Err("the staging memory is gone".into()),
            };
            let view = view.map_err(|problem| problem.to_string())?;
            self.shown.push(MappedPart { view, bytes: bytes as usize, direct });
        }
        Ok(())
    }

    /// Discards the slot's contents and buffers after a failed mapping.
    fn reset(&mut self) {
        self.parts.clear();
        self.shown.clear();
        self.buffer = None;
        self.mapping = Arc::default();
    }
}

fn lock(state: &Mutex<ReadbackState>) -> MutexGuard<'_, ReadbackState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
