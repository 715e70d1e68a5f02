//! Playing: how what the device's lane records reaches the device, and what comes down.
//!
//! Owns the lane's player and the list of downloads that are under way, in order.
//! Does not decide who fires: the lane does, and only while there is room.
//!
//! Always: one submit per segment that moved; what was asked for first arrives first, at the node that asked.

use std::collections::VecDeque;

use vramp_gpu::{Counters, PlayError, Player, ReadError};

use crate::failure::Failure;
use crate::frame::Meta;
use crate::handler::{DeviceError, HandlerError};
use crate::heap::foreign;
use crate::milestones::Milestones;
use crate::node::Node;
use crate::workplace::Workplace;

/// Plays what one lane records.
pub struct Playing {
    player: Player,
    /// Downloads that were recorded and not played yet have no ticket.
    asked: VecDeque<Asked>,
    segments: Vec<SegmentCount>,
    /// The segment whose recording waits to be played, and the frames that its first node has been given.
    recorded: Option<(usize, u64)>,
}

/// What one segment has asked of the device. Counted where it is played, so that a figure per frame is exact however
/// many frames are under way elsewhere.
#[derive(Debug, Clone)]
struct SegmentCount {
    /// Its frames for each frame of the fastest source.
    share: f64,
    frames: u64,
    counters: Counters,
    milestones: Milestones<Counters>,
}

/// A download and who wants it.
#[derive(Debug, Clone, Copy)]
struct Asked {
    ticket: Option<u64>,
    segment: usize,
    node: usize,
    meta: Meta,
}

impl Playing {
    /// Plays on this player what segments record that have these shares of the fastest source's frames.
    pub fn new(player: Player, shares: Vec<f64>) -> Playing {
        let count =
            |share| SegmentCount { share, frames: 0, counters: Counters::default(), milestones: Milestones::default() };
        let segments = shares.into_iter().map(count).collect();
        Playing { player, asked: VecDeque::with_capacity(16), segments, recorded: None }
    }

    /// What one frame asks of the device over the second half of the run, by a counter; every segment has had its own
    /// second half.
    pub fn per_frame(&self, counter: impl Fn(&Counters) -> u64) -> f64 {
        let each = self.segments.iter().filter_map(|segment| {
            let (frames, before) = segment.milestones.middle(segment.frames)?;
            let asked = counter(&segment.counters) - counter(&before);
            Some(segment.share * asked as f64 / (segment.frames - frames) as f64)
        });
        each.sum()
    }

    /// The player.
    pub fn player(&self) -> &Player {
        &self.player
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.player.under_way() == 0
    }

    /// Plays what was recorded and could not be played before; says whether it went through.
    pub(crate) fn play_what_waits(&mut self, workplace: &mut Workplace) -> Result<bool, Failure> {
        if workplace.desk().is_none_or(|desk| desk.recording.is_empty()) {
            return Ok(false);
        }
        self.play(workplace)?;
        Ok(workplace.desk().is_none_or(|desk| desk.recording.is_empty()))
    }

    /// Whether one more segment can be played.
    pub(crate) fn has_room(&mut self, workplace: &mut Workplace) -> Result<bool, Failure> {
        if workplace.desk().is_some_and(|desk| !desk.recording.is_empty()) {
            return Ok(false);
        }
        let free = self.player.readbacks().pending() < self.player.readbacks().slots();
        Ok(foreign(|| self.player.has_room()).map_err(|error| self.refused(error))? && free)
    }

    /// Notes whose recording is played next, and how many frames its first node has been given in all.
    pub(crate) fn note_recorded(&mut self, segment: usize, frames: u64) {
        self.recorded = Some((segment, frames));
    }

    /// Notes which node asked for the downloads that were recorded since it was last asked.
    pub(crate) fn note_asked(&mut self, segment: usize, node: usize, workplace: &mut Workplace) {
        let Some(desk) = workplace.desk() else { return };
        for meta in desk.downloads.drain(..) {
            self.asked.push_back(Asked { ticket: None, segment, node, meta });
        }
    }

    /// Plays what was recorded. Where the device has no room it stays recorded, and is played first next time.
    pub(crate) fn play(&mut self, workplace: &mut Workplace) -> Result<(), Failure> {
        let Some(desk) = workplace.desk() else { return Ok(()) };
        if desk.recording.is_empty() {
            // What moved asked nothing of the device: there is nothing to wait for.
            self.recorded = None;
            return Ok(());
        }
        let before = desk.device().counters();
        match foreign(|| self.player.try_play(&mut desk.recording)) {
            Ok(played) => {
                if let Some((segment, frames)) = self.recorded.take() {
                    self.segments[segment].add(frames, &before, &desk.device().counters());
                }
                let unplayed = self.asked.iter_mut().filter(|asked| asked.ticket.is_none());
                unplayed.for_each(|asked| asked.ticket = played.ticket);
                Ok(())
            }
            Err(PlayError::Busy { .. } | PlayError::NotTaken { .. }) => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// A device that hangs is left behind: freeing it, or waiting for it, might never end.
    fn refused(&self, error: PlayError) -> Failure {
        if matches!(error, PlayError::Overdue { .. }) {
            self.player.device().clone().abandon();
        }
        failure(DeviceError::Play(error))
    }

    /// Brings what has come down to the nodes that wait for it; says whether anything did.
    pub(crate) fn receive(&mut self, segments: &mut [Vec<Node>], workplace: &Workplace) -> Result<bool, Failure> {
        let mut any = false;
        while self.asked.front().is_some_and(|asked| asked.ticket.is_some()) {
            let (ticket, arrived) = match foreign(|| self.player.readbacks().take()) {
                Ok(None) => break,
                Ok(Some(arrived)) => (arrived.ticket(), Ok(arrived)),
                Err(error @ ReadError::NotMapped { ticket, .. }) => (ticket, Err(error)),
                Err(error) => return Err(failure(DeviceError::Read(error))),
            };
            any = true;
            let mut download = 0;
            while let Some(asked) = self.asked.front().copied().filter(|asked| asked.ticket == Some(ticket)) {
                self.asked.pop_front();
                let made = match &arrived {
                    Ok(arrived) => workplace.pool().lend(asked.meta).map_err(HandlerError::from).map(|mut frame| {
                        if let Some(mut bytes) = frame.fill() {
                            bytes.copy_from_slice(arrived.bytes(download));
                        }
                        frame
                    }),
                    Err(error) => Err(HandlerError::Device(DeviceError::Read(error.clone()))),
                };
                download += 1;
                if let Some(failure) = segments[asked.segment][asked.node].deliver(made, workplace) {
                    return Err(failure);
                }
            }
            foreign(|| drop(arrived));
        }
        Ok(any)
    }

    /// Whether only the device can make something move again.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn waits_for_device(&self) -> bool {
        !self.asked.is_empty() || self.player.under_way() > 0 || self.recorded.is_some()
    }

    /// Waits for the device, at most this long and never so long that stopping would be noticed.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn wait(&mut self, most: std::time::Duration) {
        let most = most.min(std::time::Duration::from_millis(20));
        // A device that is lost is found out by the next call that needs it.
        let _ = foreign(|| self.player.wait_for_oldest(most));
    }

    /// Lets what is under way finish, for a moment: memory that the device uses cannot be given back.
    pub(crate) fn stop(&mut self, workplace: &mut Workplace) {
        if let Some(desk) = workplace.desk() {
            desk.recording.clear();
            desk.downloads.clear();
        }
        self.asked.clear();
        #[cfg(not(target_arch = "wasm32"))]
        {
            // Whoever still works after that may do so for ever, and freeing its device would wait for it.
            if let Ok(false) = self.player.wait(std::time::Duration::from_secs(1)) {
                self.player.device().clone().abandon();
            }
            while let Ok(Some(arrived)) = self.player.readbacks().take() {
                drop(arrived);
            }
        }
    }
}

impl SegmentCount {
    fn add(&mut self, frames: u64, before: &Counters, after: &Counters) {
        let own = &mut self.counters;
        own.uploads += after.uploads - before.uploads;
        own.downloads += after.downloads - before.downloads;
        own.transfer_bytes += after.transfer_bytes - before.transfer_bytes;
        own.dispatches += after.dispatches - before.dispatches;
        own.passes += after.passes - before.passes;
        own.submits += after.submits - before.submits;
        self.frames = frames;
        let reading = self.counters;
        self.milestones.pass(frames, || reading);
    }
}

pub(crate) fn failure(error: DeviceError) -> Failure {
    Failure { handler: "device".to_owned(), frame: 0, error: HandlerError::Device(error) }
}
