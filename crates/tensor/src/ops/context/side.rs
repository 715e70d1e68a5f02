//! The device side of a context: one player with its pending recording, the compiled kernels by key, and the downloads
//! in flight. This module does not know tensors.
//!
//! Invariants: if one thread records work and another thread reads afterwards, the work is played before the read. The
//! recording is played only on demand, for example for a read or a flush, or if enough work has gathered. A download
//! waits only for the device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vramp_gpu::{AdapterKind, Buffer, Device, DeviceKernel, HostBytes, PlayError, Player, Recording, Timed};
use vramp_plan::Shader;

use super::arrivals::Arrivals;
use super::download::PendingDownload;
use crate::ops::device::matmul::Tile;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::memory::Block;
use crate::ops::profile::{ActOwners, Collector};
use crate::ops::texture::copy::TextureCopies;

/// The owner name of tensor memory in the device pool's ledger.
pub(crate) const OWNER: &str = "tensor";

/// The number of pending acts at which the recording is played even without a read, so that the device does not idle
/// for long.
const MOST_ACTS: usize = 128;

/// Like [`MOST_ACTS`], while acts are timed. A submission has 256 timestamps, and an act may need two.
const MOST_TIMED_ACTS: usize = 64;

/// The number of bytes lent for pending acts at which the acts are played, so that temporary memory returns to the
/// pool.
const MOST_BYTES: u64 = 64 << 20;

/// Maximum number of downloads in flight.
const READBACK_SLOTS: usize = 8;

/// Maximum number of bytes that one upload stages at once.
const PART_BYTES: usize = 32 << 20;

/// A part of a block in an upload.
struct BlockPart {
    block: Arc<Block>,
    start: usize,
    end: usize,
}

impl AsRef<[u8]> for BlockPart {
    fn as_ref(&self) -> &[u8] {
        &self.block.words()[self.start..self.end]
    }
}

pub(crate) struct DeviceSide {
    device: Device,
    owner: Arc<str>,
    lane: Mutex<RecordingLane>,
    kernels: Mutex<BTreeMap<String, DeviceKernel>>,
    tile: Mutex<Option<Tile>>,
    textures: Mutex<Option<TextureCopies>>,
}

struct RecordingLane {
    player: Player,
    /// The downloads of this player. Two players may give the same number to two downloads, so each player has its own
    /// `Arrivals`.
    arrivals: Arc<Arrivals>,
    recording: Recording,
    /// Bytes lent since the last play.
    lent_bytes: u64,
    /// True while the recording belongs to another player, which alone may play it.
    is_lent_out: bool,
    /// Why the lane is unusable; `None` if it works. A lane becomes unusable if a recording is lost before it is
    /// played, because the values that the recording should have computed are wrong.
    broken: Option<String>,
    profile: Option<Profiled>,
}

/// The state of a lane that is being profiled.
struct Profiled {
    acts: ActOwners,
    /// The untimed player, restored at the end.
    usual: (Player, Arc<Arrivals>),
}

impl DeviceSide {
    pub(crate) fn on(device: &Device) -> Result<DeviceSide, TensorError> {
        let player = Player::on(device).readback_slots(READBACK_SLOTS).build().of("open")?;
        let lane = RecordingLane {
            player,
            arrivals: Arc::default(),
            recording: Recording::new(),
            lent_bytes: 0,
            is_lent_out: false,
            broken: None,
            profile: None,
        };
        Ok(DeviceSide {
            device: device.clone(),
            owner: OWNER.into(),
            lane: Mutex::new(lane),
            kernels: Mutex::default(),
            tile: Mutex::default(),
            textures: Mutex::default(),
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Lends `bytes` bytes, rounded up to whole groups of four words, because kernels read whole groups.
    pub(crate) fn lend(&self, op: &'static str, bytes: usize) -> Result<Buffer, TensorError> {
        let bytes = (bytes as u64).next_multiple_of(16).max(16);
        let buffer = self.once_more(op, || self.device.lend(bytes, &self.owner).of(op))?;
        self.lane().lent_bytes += bytes;
        Ok(buffer)
    }

    /// Runs `make`, which needs device memory. If the device has not enough memory, waits for all pending work, because
    /// work holds memory until it ends, and runs `make` once more.
    pub(crate) fn once_more<T>(
        &self,
        op: &'static str,
        make: impl Fn() -> Result<T, TensorError>,
    ) -> Result<T, TensorError> {
        match make() {
            Err(TensorError::OutOfMemory { place: "device", .. }) if !self.lane().is_lent_out => {
                self.finish(op)?;
                make()
            }
            answer => answer,
        }
    }

    /// The kernel for `key`, compiled on first use. `key` names everything that the text of the kernel depends on.
    pub(crate) fn kernel(
        &self,
        op: &'static str,
        key: &str,
        shader: impl FnOnce() -> Shader,
    ) -> Result<DeviceKernel, TensorError> {
        if let Some(kernel) = self.kernels().get(key) {
            return Ok(kernel.clone());
        }
        // Compiled without holding the lock, because compiling takes milliseconds.
        let kernel = self.device.prepare(&shader()).of(op)?;
        self.kernels().insert(key.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// The copies between tensors and textures, prepared on first use.
    pub(crate) fn texture_copies(&self, op: &'static str) -> Result<TextureCopies, TensorError> {
        let mut textures = self.textures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copies) = &*textures {
            return Ok(copies.clone());
        }
        let copies = TextureCopies::prepare(&self.device).of(op)?;
        *textures = Some(copies.clone());
        Ok(copies)
    }

    /// True if a software driver runs the device on the CPU.
    pub(crate) fn is_software(&self) -> bool {
        self.device.adapter().kind == AdapterKind::Software
    }

    /// The tile of a matrix product: the fastest tile found by tuning, or the default for this kind of device.
    pub(crate) fn tile(&self, m: usize, n: usize) -> Tile {
        let found = *self.tile.lock().unwrap_or_else(PoisonError::into_inner);
        // Small products can use only small tiles.
        found.filter(|_| m > 4 && n > 1).unwrap_or_else(|| Tile::usual(m, n, self.is_software()))
    }

    /// Sets the tile of products; `None` restores the default.
    pub(crate) fn set_tile(&self, tile: Option<Tile>) {
        *self.tile.lock().unwrap_or_else(PoisonError::into_inner) = tile;
    }

    /// Records acts after all pending acts; plays the recording if enough acts have gathered.
    pub(crate) fn record<T>(
        &self,
        op: &'static str,
        write: impl FnOnce(&mut Recording) -> Result<T, TensorError>,
    ) -> Result<T, TensorError> {
        self.device.check().map_err(|lost| TensorError::Lost { op, reason: lost.reason })?;
        let mut lane = self.lane();
        lane.check_whole(op)?;
        let answer = lane.write(write)?;
        let most = if lane.profile.is_some() { MOST_TIMED_ACTS } else { MOST_ACTS };
        let enough = lane.recording.len() >= most || lane.lent_bytes >= MOST_BYTES;
        if enough && !lane.is_lent_out {
            lane.play_all(op)?;
        }
        Ok(answer)
    }

    /// Plays the recording, unless it belongs to another player.
    pub(crate) fn flush(&self, op: &'static str) -> Result<(), TensorError> {
        let mut lane = self.lane();
        if lane.is_lent_out { Ok(()) } else { lane.play_all(op) }
    }

    /// Plays the recording and waits until the device has finished everything.
    pub(crate) fn finish(&self, op: &'static str) -> Result<(), TensorError> {
        let limit = self.device.time_limit();
        let mut lane = self.lane();
        lane.play_all(op)?;
        if lane.player.wait(limit).of(op)? {
            return Ok(());
        }
        let reason = format!("the work did not end within {} ms", limit.as_millis());
        Err(TensorError::Lost { op, reason })
    }

    /// Uploads a block to a word-aligned offset of a buffer, after everything that is pending. Large blocks are split,
    /// so that staging stays small.
    pub(crate) fn upload(
        &self,
        op: &'static str,
        to: &Buffer,
        at: usize,
        block: &Arc<Block>,
    ) -> Result<(), TensorError> {
        let bytes = block.words().len();
        let parts = bytes.div_ceil(PART_BYTES);
        for start in (0..bytes).step_by(PART_BYTES) {
            let part = BlockPart { block: Arc::clone(block), start, end: bytes.min(start + PART_BYTES) };
            self.record(op, |recording| recording.upload_at(to, (at + start) as u64, HostBytes::new(part)).of(op))?;
            if parts > 1 {
                self.flush(op)?;
            }
        }
        Ok(())
    }

    /// Writes bytes into a range of a buffer, after everything that is pending.
    pub(crate) fn write(&self, op: &'static str, to: &Buffer, start: usize, bytes: &[u8]) -> Result<(), TensorError> {
        for (part, bytes) in bytes.chunks(PART_BYTES).enumerate() {
            // Devices write whole words, so the bytes are padded; memory after the last value belongs to no tensor.
            let mut owned = bytes.to_vec();
            owned.resize(bytes.len().next_multiple_of(4), 0);
            let at = (start + part * PART_BYTES) as u64;
            self.lane().lent_bytes += owned.len() as u64;
            self.record(op, |recording| recording.upload_at(to, at, owned).of(op))?;
        }
        Ok(())
    }

    /// Lets `act` record into another player's recording on the same device. Pending work is played first, so that the
    /// pending work runs before the other recording.
    pub(crate) fn record_into<T>(
        &self,
        op: &'static str,
        recording: &mut Recording,
        act: impl FnOnce() -> Result<T, TensorError>,
    ) -> Result<T, TensorError> {
        {
            let mut lane = self.lane();
            lane.play(op)?;
            lane.is_lent_out = true;
            std::mem::swap(&mut lane.recording, recording);
        }
        let back = SwapBack { side: self, recording };
        let answer = act();
        drop(back);
        answer
    }

    /// Requests the download of a range of a buffer, after all pending work, and plays the recording.
    pub(crate) fn ask(
        &self,
        op: &'static str,
        from: &Buffer,
        offset: u64,
        bytes: u64,
    ) -> Result<PendingDownload, TensorError> {
        self.ask_for(op, &[(from.clone(), offset, bytes)])
    }

    /// Requests the download of several ranges together.
    pub(crate) fn ask_for(
        &self,
        op: &'static str,
        parts: &[(Buffer, u64, u64)],
    ) -> Result<PendingDownload, TensorError> {
        let mut lane = self.lane();
        lane.check_own(op)?;
        // On failure the download is removed from the recording, because the next request would otherwise receive this
        // download as its own.
        let recorded = parts
            .iter()
            .try_for_each(|(from, offset, bytes)| lane.recording.download_part(from, *offset, *bytes).of(op));
        let played = recorded.and_then(|()| lane.play(op)).inspect_err(|_| lane.recording.forget_downloads());
        let Some(ticket) = played? else {
            let problem = format!("{} parts were requested, but the recording has no download", parts.len());
            return Err(TensorError::Device { op, problem });
        };
        let (readbacks, arrivals) = (lane.player.readbacks().clone(), Arc::clone(&lane.arrivals));
        drop(lane);
        let limit = self.device.time_limit();
        Ok(PendingDownload::now(op, ticket, limit, readbacks, arrivals))
    }

    /// Times every act from now on. Switches to a new player, because whether a player times acts is fixed when the
    /// player is built.
    pub(crate) fn begin_profile(&self, collector: &Arc<Collector>) -> Result<(), TensorError> {
        let op = "profile";
        let mut timed = Player::on(&self.device).readback_slots(READBACK_SLOTS).timed(Timed::Each).build().of(op)?;
        self.finish(op)?;
        let mut lane = self.lane();
        std::mem::swap(&mut lane.player, &mut timed);
        let usual = (timed, std::mem::take(&mut lane.arrivals));
        lane.profile = Some(Profiled { acts: ActOwners::of(collector), usual });
        Ok(())
    }

    /// Waits for the recorded work and restores the untimed player. A second call does nothing.
    pub(crate) fn end_profile(&self) -> Result<(), TensorError> {
        if self.lane().profile.is_none() {
            return Ok(());
        }
        let finished = self.finish("profile");
        let mut lane = self.lane();
        // Timestamps arrive after the work itself.
        let polled = self.device.poll().map_err(|lost| TensorError::Lost { op: "profile", reason: lost.reason });
        lane.hear();
        if let Some(Profiled { usual, .. }) = lane.profile.take() {
            (lane.player, lane.arrivals) = usual;
        }
        finished.and(polled)
    }

    /// Why the device or the lane is unusable; `None` if both work.
    pub(crate) fn lost(&self) -> Option<String> {
        self.device.check().err().map(|lost| lost.reason).or_else(|| self.lane().broken.clone())
    }

    fn lane(&self) -> MutexGuard<'_, RecordingLane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kernels(&self) -> MutexGuard<'_, BTreeMap<String, DeviceKernel>> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordingLane {
    /// Records with `write`, and notes the owner of the new acts if the lane is profiled.
    fn write<T>(&mut self, write: impl FnOnce(&mut Recording) -> Result<T, TensorError>) -> Result<T, TensorError> {
        let Some(Profiled { acts, .. }) = &mut self.profile else { return write(&mut self.recording) };
        let (before, dispatches) = (self.recording.len(), self.recording.dispatches());
        let answer = write(&mut self.recording);
        let range = (before, self.recording.len());
        acts.note(range, self.recording.dispatches() - dispatches, !self.is_lent_out);
        answer
    }

    /// Passes finished times to the profile.
    fn hear(&mut self) {
        if let Some(Profiled { acts, .. }) = &mut self.profile {
            acts.hear(&mut self.player);
        }
    }

    /// Fails if the recording belongs to another player.
    fn check_own(&self, op: &'static str) -> Result<(), TensorError> {
        if !self.is_lent_out {
            return Ok(());
        }
        let problem = "the context is recording for another player; read after that recording was played";
        Err(TensorError::Setting { op, problem: problem.to_owned() })
    }

    /// Fails if a recording was lost before it was played.
    fn check_whole(&self, op: &'static str) -> Result<(), TensorError> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(TensorError::Lost { op, reason: reason.clone() }))
    }

    /// Plays the recording; downloads in it are ignored.
    fn play_all(&mut self, op: &'static str) -> Result<(), TensorError> {
        if let Some(unclaimed) = self.play(op)? {
            self.arrivals.ignore(unclaimed, false);
        }
        Ok(())
    }

    /// Plays the recording and returns the ticket of its download.
    fn play(&mut self, op: &'static str) -> Result<Option<u64>, TensorError> {
        self.check_own(op)?;
        self.check_whole(op)?;
        if self.recording.is_empty() {
            return Ok(None);
        }
        self.lent_bytes = 0;
        self.hear();
        let (started, limit) = (Instant::now(), self.player.device().time_limit());
        let mut waited = false;
        loop {
            match self.player.play(&mut self.recording) {
                Ok(played) => {
                    if let Some(Profiled { acts, .. }) = &mut self.profile {
                        acts.played(Some(played.submission));
                    }
                    return Ok(played.ticket);
                }
                Err(PlayError::NotTaken { .. }) => {
                    self.arrivals.make_room();
                    if !self.arrivals.receive(op, self.player.readbacks().wait(limit), true)? {
                        // Another thread is reading a mapped download.
                        self.arrivals.wait_a_moment();
                    }
                    if started.elapsed() > limit {
                        return Err(PlayError::NotTaken { slots: READBACK_SLOTS }).of(op);
                    }
                }
                // The recording is unchanged, and can be played once there is memory.
                Err(PlayError::OutOfMemory) if waited => return Err(PlayError::OutOfMemory).of(op),
                Err(PlayError::OutOfMemory) => {
                    waited = true;
                    self.player.wait(limit).of(op)?;
                    self.player.device().pool().trim_to(0);
                }
                Err(error) => {
                    // The recording will never be played, so the buffers that it should have written must not be used.
                    self.recording.clear();
                    if let Some(Profiled { acts, .. }) = &mut self.profile {
                        acts.played(None);
                    }
                    self.broken = Some(error.to_string());
                    return Err(error).of(op);
                }
            }
        }
    }
}

/// Gives the lane its own recording back on drop, and the other player its recording.
struct SwapBack<'a> {
    side: &'a DeviceSide,
    recording: &'a mut Recording,
}

impl Drop for SwapBack<'_> {
    fn drop(&mut self) {
        let mut lane = self.side.lane();
        lane.is_lent_out = false;
        std::mem::swap(&mut lane.recording, self.recording);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_fails_leaves_no_part_for_the_next_to_take_for_his_own() {
        let side = DeviceSide::on(&Device::choose().open().unwrap()).unwrap();
        let (one, two) = (side.lend("test", 16).unwrap(), side.lend("test", 16).unwrap());
        side.write("test", &one, 0, &[1; 16]).unwrap();
        side.write("test", &two, 0, &[2; 16]).unwrap();
        let beyond = side.ask_for("test", &[(one, 0, 16), (two.clone(), 0, 4096)]);
        assert!(beyond.is_err());
        let read = side.ask("test", &two, 0, 16).unwrap().wait(<[u8]>::to_vec).unwrap();
        assert_eq!(read, [2; 16]);
        assert!(side.ask_for("test", &[]).is_err(), "an empty request is not a download");
    }
}
