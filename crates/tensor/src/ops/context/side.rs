//! The device half of a context: what is recorded and not yet played, and what comes down.
//!
//! Owns one player with its pending recording, the kernels by what they are for, and the downloads under way.
//! Does not know tensors.
//!
//! Always: what one thread records before another reads is played before it; nothing is played before it has to be, or
//! before enough has gathered; a download waits for nobody but the device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vramp_gpu::{AdapterKind, Buffer, Device, DeviceKernel, HostBytes, PlayError, Player, Recording, Timed};
use vramp_plan::Shader;

use super::arrivals::Arrivals;
use super::asked::PendingDownload;
use crate::ops::device::matmul::Tile;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::memory::Block;
use crate::ops::profile::{ActOwners, Collector};
use crate::ops::texture::copy::TextureCopies;

/// Who memory of the device is lent to, in its pool's ledger.
pub(crate) const OWNER: &str = "tensor";

/// Acts that are gathered before they are played unasked: a device that could work should not lie idle for long.
const MOST_ACTS: usize = 128;

/// The same while each of them is timed: a submission has 256 stamps, and an act may need two.
const MOST_TIMED_ACTS: usize = 64;

/// Bytes that pending acts may newly hold before they are played, so that temporary memory returns to the pool.
const MOST_BYTES: u64 = 64 << 20;

/// Downloads that may be under way at once.
const READBACK_SLOTS: usize = 8;

/// The most bytes that one upload stages at once.
const PART_BYTES: usize = 32 << 20;

/// A part of a block that is on its way up.
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

/// A device as a context uses it.
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
    /// What that player brings down; another one counts its downloads anew.
    arrivals: Arc<Arrivals>,
    recording: Recording,
    /// What was lent since the last play.
    lent_bytes: u64,
    /// Whether the recording is somebody else's just now, who alone may play it.
    is_lent_out: bool,
    /// Why nothing more can be done here: something that was recorded will never be played, so that values are not what
    /// they should be.
    broken: Option<String>,
    profile: Option<Profiled>,
}

/// What a lane has while it is profiled.
struct Profiled {
    acts: ActOwners,
    /// The player of before, which times nothing.
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

    /// Lends memory for so many bytes, filled up to whole groups of four words, which is how kernels read.
    pub(crate) fn lend(&self, op: &'static str, bytes: usize) -> Result<Buffer, TensorError> {
        let bytes = (bytes as u64).next_multiple_of(16).max(16);
        let buffer = self.once_more(op, || self.device.lend(bytes, &self.owner).of(op))?;
        self.lane().lent_bytes += bytes;
        Ok(buffer)
    }

    /// Has something made that needs memory of the device; where there is none, everything that was asked for is waited
    /// for, since it may hold what is missing until it has finished, and it is tried once more.
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

    /// The kernel for a purpose, compiled the first time. `key` names all that its text depends on.
    pub(crate) fn kernel(
        &self,
        op: &'static str,
        key: &str,
        shader: impl FnOnce() -> Shader,
    ) -> Result<DeviceKernel, TensorError> {
        if let Some(kernel) = self.kernels().get(key) {
            return Ok(kernel.clone());
        }
        // Without the lock: compiling takes milliseconds.
        let kernel = self.device.prepare(&shader()).of(op)?;
        self.kernels().insert(key.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// The copies between tensors and textures, prepared the first time.
    pub(crate) fn texture_copies(&self, op: &'static str) -> Result<TextureCopies, TensorError> {
        let mut textures = self.textures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copies) = &*textures {
            return Ok(copies.clone());
        }
        let copies = TextureCopies::prepare(&self.device).of(op)?;
        *textures = Some(copies.clone());
        Ok(copies)
    }

    /// Whether the device is the CPU, pretending.
    pub(crate) fn is_software(&self) -> bool {
        self.device.adapter().kind == AdapterKind::Software
    }

    /// The tile that a product is cut into: what was found best on this device, or what suits its kind.
    pub(crate) fn tile(&self, m: usize, n: usize) -> Tile {
        let found = *self.tile.lock().unwrap_or_else(PoisonError::into_inner);
        // Small products have use for small tiles only.
        found.filter(|_| m > 4 && n > 1).unwrap_or_else(|| Tile::usual(m, n, self.is_software()))
    }

    /// From now on products are cut into this, or again into what suits the device.
    pub(crate) fn set_tile(&self, tile: Option<Tile>) {
        *self.tile.lock().unwrap_or_else(PoisonError::into_inner) = tile;
    }

    /// Records something behind all that is recorded; plays it where enough has gathered.
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

    /// Plays what is recorded; what is recorded for somebody else is his to play.
    pub(crate) fn flush(&self, op: &'static str) -> Result<(), TensorError> {
        let mut lane = self.lane();
        if lane.is_lent_out { Ok(()) } else { lane.play_all(op) }
    }

    /// Plays what is recorded and waits until the device is done with everything.
    pub(crate) fn finish(&self, op: &'static str) -> Result<(), TensorError> {
        let limit = self.device.time_limit();
        let mut lane = self.lane();
        lane.play_all(op)?;
        if lane.player.wait(limit).of(op)? {
            return Ok(());
        }
        let reason = format!("it did not end within {} ms", limit.as_millis());
        Err(TensorError::Lost { op, reason })
    }

    /// Sends a block up to a byte of a buffer that begins a word, behind all that is recorded. Large ones go in parts, so
    /// that staging stays small.
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

    /// Writes bytes into a part of a buffer, behind all that is recorded.
    pub(crate) fn write(&self, op: &'static str, to: &Buffer, start: usize, bytes: &[u8]) -> Result<(), TensorError> {
        for (part, bytes) in bytes.chunks(PART_BYTES).enumerate() {
            // Whole words are written; what lies behind the last value is nobody's.
            let mut owned = bytes.to_vec();
            owned.resize(bytes.len().next_multiple_of(4), 0);
            let at = (start + part * PART_BYTES) as u64;
            self.lane().lent_bytes += owned.len() as u64;
            self.record(op, |recording| recording.upload_at(to, at, owned).of(op))?;
        }
        Ok(())
    }

    /// Lets `act` record into a recording of somebody else's, who plays it on the same device. What was pending is played
    /// first, so that it comes before.
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

    /// Asks for a part of a buffer behind all that is recorded, which is played.
    pub(crate) fn ask(
        &self,
        op: &'static str,
        from: &Buffer,
        offset: u64,
        bytes: u64,
    ) -> Result<PendingDownload, TensorError> {
        self.ask_for(op, &[(from.clone(), offset, bytes)])
    }

    /// Asks for several parts, which come down together.
    pub(crate) fn ask_for(
        &self,
        op: &'static str,
        parts: &[(Buffer, u64, u64)],
    ) -> Result<PendingDownload, TensorError> {
        let mut lane = self.lane();
        lane.check_own(op)?;
        // What fails leaves no download behind, which the next to ask would take for his own.
        let asked = parts
            .iter()
            .try_for_each(|(from, offset, bytes)| lane.recording.download_part(from, *offset, *bytes).of(op));
        let played = asked.and_then(|()| lane.play(op)).inspect_err(|_| lane.recording.forget_downloads());
        let Some(ticket) = played? else {
            let problem = format!("{} parts were asked for, and the device was told of none", parts.len());
            return Err(TensorError::Device { op, problem });
        };
        let (readbacks, arrivals) = (lane.player.readbacks().clone(), Arc::clone(&lane.arrivals));
        drop(lane);
        let limit = self.device.time_limit();
        Ok(PendingDownload::now(op, ticket, limit, readbacks, arrivals))
    }

    /// From now on every act is timed, by another player: whether one times is decided when it is made.
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

    /// Waits for what was recorded, and goes on as before. Doing it again does nothing.
    pub(crate) fn end_profile(&self) -> Result<(), TensorError> {
        if self.lane().profile.is_none() {
            return Ok(());
        }
        let finished = self.finish("profile");
        let mut lane = self.lane();
        // Stamps come down behind the work itself.
        let polled = self.device.poll().map_err(|lost| TensorError::Lost { op: "profile", reason: lost.reason });
        lane.hear();
        if let Some(Profiled { usual, .. }) = lane.profile.take() {
            (lane.player, lane.arrivals) = usual;
        }
        finished.and(polled)
    }

    /// Why nothing more can be done here; none as long as something can.
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
    /// Has something written into the recording, and notes whose it is where somebody wants to know.
    fn write<T>(&mut self, write: impl FnOnce(&mut Recording) -> Result<T, TensorError>) -> Result<T, TensorError> {
        let Some(Profiled { acts, .. }) = &mut self.profile else { return write(&mut self.recording) };
        let (before, dispatches) = (self.recording.len(), self.recording.dispatches());
        let answer = write(&mut self.recording);
        let range = (before, self.recording.len());
        acts.note(range, self.recording.dispatches() - dispatches, !self.is_lent_out);
        answer
    }

    /// Hears how long things took.
    fn hear(&mut self) {
        if let Some(Profiled { acts, .. }) = &mut self.profile {
            acts.hear(&mut self.player);
        }
    }

    /// An error where the recording is somebody else's.
    fn check_own(&self, op: &'static str) -> Result<(), TensorError> {
        if !self.is_lent_out {
            return Ok(());
        }
        let problem = "the context records for somebody else just now; read what was recorded when it was played";
        Err(TensorError::Setting { op, problem: problem.to_owned() })
    }

    /// An error where something that was recorded is lost.
    fn check_whole(&self, op: &'static str) -> Result<(), TensorError> {
        self.broken.as_ref().map_or(Ok(()), |reason| Err(TensorError::Lost { op, reason: reason.clone() }))
    }

    /// Plays what is recorded; whatever comes down that nobody asked for is left.
    fn play_all(&mut self, op: &'static str) -> Result<(), TensorError> {
        if let Some(nobodys) = self.play(op)? {
            self.arrivals.ignore(nobodys, false);
        }
        Ok(())
    }

    /// Plays what is recorded, and gives the ticket of what comes down.
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
                        // Somebody looks at what has come down just now.
                        self.arrivals.wait_a_moment();
                    }
                    if started.elapsed() > limit {
                        return Err(PlayError::NotTaken { slots: READBACK_SLOTS }).of(op);
                    }
                }
                // It is as it was, and can be played when there is memory.
                Err(PlayError::OutOfMemory) if waited => return Err(PlayError::OutOfMemory).of(op),
                Err(PlayError::OutOfMemory) => {
                    waited = true;
                    self.player.wait(limit).of(op)?;
                    self.player.device().pool().trim_to(0);
                }
                Err(error) => {
                    // It will never be played, and nobody may take what it should have written for what is there.
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

/// Puts a recording back where it belongs, whatever happened meanwhile.
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
        assert!(side.ask_for("test", &[]).is_err(), "and nothing is no download");
    }
}
