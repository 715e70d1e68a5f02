//! The player: turns a recording into one command buffer and one submit.
//!
//! A player belongs to one lane, and keeps the lane's staging rings, bind groups, parameters and frames in flight. The
//! lane decides when to play and which node receives a download.
//!
//! Invariants: one submit per recording, one pass per run of consecutive dispatches, and never more than the allowed
//! number of frames in flight. A refused recording stays unchanged; a played recording is empty afterwards.
//!
//! Every submission has a time limit, so that a kernel without an end becomes [`PlayError::Overdue`]. Most drivers run
//! kernels while the host continues, so the player sees that its oldest submission is overdue. Some drivers run kernels
//! inside the submit call; for these drivers there is [`Device::check_overdue`].

mod encode;
mod error;

pub use error::PlayError;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bind_groups::BindGroups;
use crate::buffer::Buffer;
#[cfg(not(target_arch = "wasm32"))]
use crate::calls::Kernels;
use crate::calls::Refusal;
use crate::device::Device;
use crate::pipelines::CompiledPipeline;
use crate::readback::{Claimed, Readbacks};
use crate::recording::{GpuCommand, HostSource, Recording};
use crate::timing::{DeviceTime, Timed, Timer, Timing};
use crate::uniforms::Uniforms;
use crate::upload::{Staging, Uploads};

/// The device works on one frame while the next frame waits in the queue.
const DEFAULT_IN_FLIGHT: usize = 2;

/// The result of playing a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Played {
    /// Submission number, for [`Player::has_finished`].
    pub submission: u64,
    /// Ticket of the recording's downloads; none without downloads.
    pub ticket: Option<u64>,
    /// Whether [`Player::tell_times`] will report the submission's times, unless the timestamps are lost.
    pub timed: bool,
}

/// Options of a player.
#[derive(Debug, Clone)]
pub struct PlayerBuilder {
    device: Device,
    in_flight: usize,
    readback_slots: Option<usize>,
    timed: Timed,
    #[cfg(not(target_arch = "wasm32"))]
    overdue: std::time::Duration,
}

impl PlayerBuilder {
    /// Maximum number of recordings in flight, at least one. Defaults to 2.
    #[must_use]
    pub fn frames_in_flight(mut self, frames: usize) -> Self {
        self.in_flight = frames.max(1);
        self
    }

    /// Slots of the readback ring. Defaults to one more than the frames in flight, so that the host can read one slot
    /// while the device fills the others.
    #[must_use]
    pub fn readback_slots(mut self, slots: usize) -> Self {
        self.readback_slots = Some(slots.max(1));
        self
    }

    /// Which submissions are timed. Defaults to none.
    #[must_use]
    pub fn timed(mut self, timed: Timed) -> Self {
        self.timed = timed;
        self
    }

    /// Maximum time of one submission, after which the device counts as hung. Defaults to the device's time limit.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn overdue(mut self, after: std::time::Duration) -> Self {
        self.overdue = after;
        self
    }

    /// Creates the player and the memory that every player needs.
    pub fn build(self) -> Result<Player, PlayError> {
        self.device.check()?;
        let calls = self.device.calls();
        let uniforms = Uniforms::new(calls, self.device.limits().params_alignment).map_err(PlayError::refused)?;
        self.device.check()?;
        let readbacks = Readbacks::new(&self.device, self.readback_slots.unwrap_or(self.in_flight + 1));
        Ok(Player {
            uploads: Uploads::new(self.in_flight),
            readbacks,
            uniforms,
            groups: BindGroups::default(),
            under_way: VecDeque::with_capacity(self.in_flight + 1),
            in_flight: self.in_flight,
            // Slots for all submissions in flight, one for the next submission, and one for a submission whose end was
            // noticed but not reported yet.
            timer: Timer::new(&self.device, self.timed, self.in_flight + 2),
            #[cfg(not(target_arch = "wasm32"))]
            overdue: self.overdue,
            scratch: PlayScratch::default(),
            device: self.device,
        })
    }
}

/// Plays recordings on one device, for one lane.
pub struct Player {
    device: Device,
    uploads: Uploads,
    readbacks: Readbacks,
    uniforms: Uniforms,
    groups: BindGroups,
    under_way: VecDeque<UnderWay>,
    in_flight: usize,
    timer: Option<Timer>,
    #[cfg(not(target_arch = "wasm32"))]
    overdue: std::time::Duration,
    scratch: PlayScratch,
}

/// A submission that may not have finished.
struct UnderWay {
    submission: u64,
    #[cfg(not(target_arch = "wasm32"))]
    index: wgpu::SubmissionIndex,
    #[cfg(not(target_arch = "wasm32"))]
    since: std::time::Instant,
    /// The first kernels of the submission. If the submission hangs, the error names these kernels.
    #[cfg(not(target_arch = "wasm32"))]
    kernels: Kernels,
}

/// Lists that are filled again for each recording, and keep their capacity.
#[derive(Default)]
struct PlayScratch {
    order: Vec<usize>,
    /// One step per command.
    steps: Vec<PlayStep>,
}

/// A command, with everything that is needed to encode the command.
enum PlayStep {
    Upload { from: u64 },
    Plain,
    Dispatch { compiled: Arc<CompiledPipeline>, group: wgpu::BindGroup, offset: Option<u32> },
    Download { to: Option<u64> },
}

/// The slots that a recording occupies while the recording is played.
struct Taken {
    staging: Option<Staging>,
    claimed: Option<Claimed>,
    params_at: u64,
    params_bytes: u64,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player")
            .field("device", &self.device)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

impl Player {
    /// Starts to build a player for a device.
    pub fn on(device: &Device) -> PlayerBuilder {
        PlayerBuilder {
            device: device.clone(),
            in_flight: DEFAULT_IN_FLIGHT,
            readback_slots: None,
            timed: Timed::Never,
            #[cfg(not(target_arch = "wasm32"))]
            overdue: device.time_limit(),
        }
    }

    /// Plays a recording and empties the recording. Waits for the oldest submission if too many submissions are in
    /// flight.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn play<H: HostSource>(&mut self, recording: &mut Recording<Buffer, H>) -> Result<Played, PlayError> {
        let started = std::time::Instant::now();
        loop {
            match self.try_play(recording) {
                Err(PlayError::Busy { .. }) => self.wait_until_overdue(started)?,
                answer => return answer,
            }
        }
    }

    /// Plays a recording and empties the recording, or returns [`PlayError::Busy`] at once.
    pub fn try_play<H: HostSource>(&mut self, recording: &mut Recording<Buffer, H>) -> Result<Played, PlayError> {
        self.device.check()?;
        if !self.make_room()? {
            return Err(PlayError::Busy { under_way: self.under_way.len() });
        }
        self.groups.follow(self.device.pool());
        self.check(recording)?;
        let taken = self.take_slots(recording)?;
        match self.submit(recording, &taken) {
            Ok(played) => Ok(played),
            Err(refusal) => {
                self.give_back(&taken);
                self.device.check()?;
                Err(PlayError::refused(refusal))
            }
        }
    }

    /// Whether a recording could be played without waiting. Updates the progress of the device.
    pub fn has_room(&mut self) -> Result<bool, PlayError> {
        self.device.check()?;
        #[cfg(not(target_arch = "wasm32"))]
        self.check_overdue()?;
        self.make_room()
    }

    /// Whether this submission had finished at the last poll.
    pub fn has_finished(&self, submission: u64) -> bool {
        self.device.calls().progress.has_finished(submission)
    }

    /// Submissions in flight at the last poll.
    pub fn under_way(&self) -> usize {
        self.under_way.iter().filter(|one| !self.has_finished(one.submission)).count()
    }

    /// Waits for all of the player's submissions, at most for `timeout`. Returns whether all have finished.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait(&mut self, timeout: std::time::Duration) -> Result<bool, PlayError> {
        let Some(newest) = self.under_way.back() else { return Ok(true) };
        let (index, submission) = (newest.index.clone(), newest.submission);
        self.device.calls().wait(index, timeout)?;
        if self.has_finished(submission) {
            self.under_way.clear();
            self.device.pool().reclaim(submission);
        }
        Ok(self.has_finished(submission))
    }

    /// Waits for the oldest unfinished submission, at most for `timeout`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait_for_oldest(&mut self, timeout: std::time::Duration) -> Result<(), PlayError> {
        let progress = &self.device.calls().progress;
        let Some(oldest) = self.under_way.iter().find(|one| !progress.has_finished(one.submission)) else {
            return Ok(());
        };
        self.device.calls().wait(oldest.index.clone(), timeout)?;
        Ok(())
    }

    /// How submissions are timed; none if the player does not time submissions.
    pub fn timing(&self) -> Option<Timing> {
        self.timer.as_ref().map(Timer::timing)
    }

    /// Reports the times of the timed submissions that have ended since the last call.
    pub fn tell_times(&mut self, report: &mut dyn FnMut(&DeviceTime<'_>)) {
        if let Some(timer) = &mut self.timer {
            timer.tell(self.device.calls(), report);
        }
    }

    /// The receiving end of the downloads.
    pub fn readbacks(&self) -> &Readbacks {
        &self.readbacks
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Size of the staging, readback, parameter and timestamp memory, which is not part of the pool's budget.
    pub fn ring_bytes(&self) -> u64 {
        let stamps = self.timer.as_ref().map_or(0, Timer::bytes);
        self.uploads.bytes() + self.readbacks.bytes() + self.uniforms.buffer().size() + stamps
    }

    /// Number of cached bind groups.
    pub fn bind_groups(&self) -> usize {
        self.groups.len()
    }

    /// Removes finished submissions if the limit is reached, and returns whether there is room for another. Memory
    /// returns to the pool here, at the same point of every frame, and not whenever the device happens to finish. So
    /// the same buffers are bound together in every frame, and their bind groups exist already.
    fn make_room(&mut self) -> Result<bool, PlayError> {
        while self.under_way.len() >= self.in_flight {
            let Some(oldest) = self.under_way.front().map(|one| one.submission) else { break };
            if !self.has_finished(oldest) {
                self.device.poll()?;
            }
            if !self.has_finished(oldest) {
                #[cfg(not(target_arch = "wasm32"))]
                self.check_overdue()?;
                return Ok(false);
            }
            self.under_way.pop_front();
            self.device.pool().reclaim(oldest);
        }
        Ok(true)
    }

    /// Fails if the oldest unfinished submission exceeds the time limit.
    #[cfg(not(target_arch = "wasm32"))]
    fn check_overdue(&self) -> Result<(), PlayError> {
        let unfinished = || self.under_way.iter().find(|one| !self.has_finished(one.submission));
        let overdue = || unfinished().filter(|oldest| oldest.since.elapsed() >= self.overdue);
        if overdue().is_none() {
            return Ok(());
        }
        // The known progress may be outdated.
        self.device.poll()?;
        let Some(oldest) = overdue() else { return Ok(()) };
        Err(PlayError::overdue(&oldest.kernels, oldest.since.elapsed()))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn wait_until_overdue(&mut self, started: std::time::Instant) -> Result<(), PlayError> {
        let Some(oldest) = self.under_way.front() else { return Ok(()) };
        let (index, left) = (oldest.index.clone(), self.overdue.saturating_sub(started.elapsed()));
        let (submission, kernels) = (oldest.submission, oldest.kernels.clone());
        self.device.calls().wait(index, left)?;
        if self.has_finished(submission) || started.elapsed() < self.overdue {
            return Ok(());
        }
        Err(PlayError::overdue(&kernels, started.elapsed()))
    }

    /// Checks the recording against the device, because recordings are made without a device.
    fn check<H: HostSource>(&self, recording: &Recording<Buffer, H>) -> Result<(), PlayError> {
        let id = self.device.id();
        if let Some(stranger) = recording.handles().find(|buffer| !buffer.is_of(id)) {
            return Err(PlayError::StrangeBuffer { buffer: stranger.tag() });
        }
        let most = self.device.limits().workgroups_per_dimension;
        let alignment = u64::from(self.device.limits().storage_alignment);
        for act in recording.commands() {
            let (kernel, buffers, grid) = match act {
                GpuCommand::Dispatch { kernel, buffers, grid, .. } => (kernel, buffers, grid),
                GpuCommand::ToTexture { to: texture, .. } | GpuCommand::FromTexture { from: texture, .. }
                    if !texture.is_of(id) =>
                {
                    return Err(PlayError::StrangeTexture { texture: texture.to_string() });
                }
                _ => continue,
            };
            if let Some(part) = recording.parts(buffers).iter().find(|part| !part.start.is_multiple_of(alignment)) {
                let kernel = Arc::clone(kernel.name());
                return Err(PlayError::Unaligned { kernel, offset: part.start, alignment });
            }
            if kernel.device != id {
                return Err(PlayError::StrangeKernel { kernel: Arc::clone(kernel.name()) });
            }
            if grid.iter().any(|groups| *groups > most) {
                return Err(PlayError::GridTooLong { kernel: Arc::clone(kernel.name()), grid: *grid, most });
            }
        }
        Ok(())
    }

    /// Claims all slots that a recording needs, or none if one of them is not free.
    fn take_slots<H: HostSource>(&mut self, recording: &Recording<Buffer, H>) -> Result<Taken, PlayError> {
        let (mut params_bytes, mut upload_bytes, mut downloads) = (0, 0, false);
        for act in recording.commands() {
            match act {
                GpuCommand::Upload { bytes, .. } => upload_bytes += encode::words(bytes.len() as u64),
                GpuCommand::Write { bytes, .. } => upload_bytes += encode::words(bytes.len() as u64),
                GpuCommand::Dispatch { kernel, .. } => params_bytes += self.uniforms.block_bytes(kernel.params_bytes()),
                GpuCommand::Download { .. } => downloads = true,
                GpuCommand::Zero { .. }
                | GpuCommand::Copy { .. }
                | GpuCommand::ToTexture { .. }
                | GpuCommand::FromTexture { .. } => {}
            }
        }
        let mut taken = Taken { staging: None, claimed: None, params_at: 0, params_bytes };
        if downloads {
            taken.claimed = self.readbacks.claim();
            if taken.claimed.is_none() {
                // The receiver of the downloads holds the slots, so waiting for the device would not help.
                return Err(PlayError::NotTaken { slots: self.readbacks.slots() });
            }
        }
        if params_bytes + upload_bytes == 0 {
            return Ok(taken);
        }
        let calls = self.device.calls();
        let claimed = self.uploads.claim(calls, params_bytes + upload_bytes).and_then(|staging| {
            taken.params_at = self.uniforms.reserve(calls, params_bytes)?;
            Ok(staging)
        });
        let problem = match claimed {
            Ok(Some(staging)) => {
                taken.staging = Some(staging);
                return Ok(taken);
            }
            Ok(None) => PlayError::Busy { under_way: self.under_way.len() },
            Err(refusal) => PlayError::refused(refusal),
        };
        self.give_back(&taken);
        self.device.poll()?;
        Err(problem)
    }

    fn give_back(&mut self, taken: &Taken) {
        self.scratch.steps.clear();
        if let Some(staging) = &taken.staging {
            self.uploads.abandon(staging);
        }
        if let Some(claimed) = &taken.claimed {
            self.readbacks.abandon(claimed);
        }
    }

    fn submit<H: HostSource>(
        &mut self,
        recording: &mut Recording<Buffer, H>,
        taken: &Taken,
    ) -> Result<Played, Refusal> {
        let mut claimed = taken.claimed;
        self.prepare(recording, taken, claimed.as_mut())?;
        let mut timer = self.timer.take();
        let stamps = timer.as_mut().and_then(|timer| {
            timer.claim(recording.len());
            timer.stamps()
        });
        let encoded = self.encode(recording, taken, claimed.as_ref(), stamps);
        self.timer = timer;
        let (submission, index) = encoded.inspect_err(|_| {
            if let Some(timer) = &mut self.timer {
                timer.abandon();
            }
        })?;
        let calls = self.device.calls();
        for buffer in recording.handles() {
            buffer.retire(submission);
        }
        if let Some(staging) = &taken.staging {
            self.uploads.send(calls, staging);
        }
        let ticket = claimed.map(|claimed| self.readbacks.send(calls, &claimed, &index));
        let timed = self.timer.as_mut().is_some_and(|timer| timer.send(calls, submission));
        self.under_way.push_back(UnderWay {
            submission,
            #[cfg(not(target_arch = "wasm32"))]
            index,
            #[cfg(not(target_arch = "wasm32"))]
            since: std::time::Instant::now(),
            #[cfg(not(target_arch = "wasm32"))]
            kernels: encode::named(recording),
        });
        calls.count_in_flight(self.under_way() as u64);
        self.scratch.steps.clear();
        recording.clear();
        Ok(Played { submission, ticket, timed })
    }
}
