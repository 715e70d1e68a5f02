//! Playing: how what the device's lane records reaches the device, and what comes down.
//!
//! Owns the lane's player and the list of downloads that are under way, in order.
//! Does not decide who fires: the lane does, and only while there is room.
//!
//! Always: one submit per segment that moved; what was asked for first arrives first, at the node that asked.

use std::collections::VecDeque;

use vramp_gpu::{Arrived, Counters, PlayError, Player, ReadError};

use crate::failure::Failure;
use crate::frame::Meta;
use crate::handler::{DeviceError, HandlerError};
use crate::heap::foreign;
use crate::milestones::Milestones;
use crate::node::Node;
use crate::shortage::Shortage;
use crate::workplace::Workplace;

/// Plays what one lane records.
pub struct Playing {
    player: Player,
    /// Downloads that were recorded and not played yet have no ticket.
    asked: VecDeque<Asked>,
    segments: Vec<SegmentCount>,
    /// The segment whose recording waits to be played, and the frames that its first node has been given.
    recorded: Option<(usize, u64)>,
    /// What has come down and waits for memory on the host, from this download on.
    come: Option<(Arrived, usize)>,
    short: Option<Shortage>,
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
        Playing { player, asked: VecDeque::with_capacity(16), segments, recorded: None, come: None, short: None }
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
        self.asked.is_empty()
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
        Ok(free && foreign(|| self.player.has_room()).map_err(|error| failure(DeviceError::Play(error)))?)
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
            Err(error) => Err(failure(DeviceError::Play(error))),
        }
    }

    /// Brings what has come down to the nodes that wait for it; says whether anything did.
    pub(crate) fn receive(&mut self, segments: &mut [Vec<Node>], workplace: &mut Workplace) -> Result<bool, Failure> {
        let mut any = false;
        while self.asked.front().is_some_and(|asked| asked.ticket.is_some()) {
            let waiting = self.come.take();
            let mut download = waiting.as_ref().map_or(0, |(_, next)| *next);
            let next = |player: &Player| match waiting {
                Some((arrived, _)) => Ok(Some(arrived)),
                None => foreign(|| player.readbacks().take()),
            };
            let (ticket, arrived) = match next(&self.player) {
                Ok(None) => break,
                Ok(Some(arrived)) => (arrived.ticket(), Ok(arrived)),
                Err(error @ ReadError::NotMapped { ticket, .. }) => (ticket, Err(error)),
                Err(error) => return Err(failure(DeviceError::Read(error))),
            };
            while let Some(asked) = self.asked.front().copied().filter(|asked| asked.ticket == Some(ticket)) {
                let node = &segments[asked.segment][asked.node];
                let (owner, leave_bytes) = node.memory();
                workplace.serve(owner, asked.meta.number);
                let made = match &arrived {
                    Err(error) => Err(HandlerError::Device(DeviceError::Read(error.clone()))),
                    Ok(there) => match workplace.pool().lend_leaving(asked.meta, leave_bytes) {
                        Ok(mut frame) => {
                            if let Some(mut bytes) = frame.fill() {
                                bytes.copy_from_slice(there.bytes(download));
                            }
                            Ok(frame)
                        }
                        Err(error) => {
                            // It stays where it is until there is memory for it.
                            if self.short.is_none() {
                                workplace.count_wait();
                            }
                            self.short = Some(Shortage {
                                handler: node.name(),
                                frame: asked.meta.number,
                                space: vramp_plan::Space::Cpu,
                                needed_bytes: error.needed,
                                available_bytes: error.available,
                                budget_bytes: error.budget,
                            });
                            self.come = arrived.ok().map(|arrived| (arrived, download));
                            return Ok(any);
                        }
                    },
                };
                (any, self.short) = (true, None);
                self.asked.pop_front();
                download += 1;
                if let Some(failure) = segments[asked.segment][asked.node].deliver(made, workplace) {
                    return Err(failure);
                }
            }
            foreign(|| drop(arrived));
        }
        Ok(any)
    }

    /// What it cannot deliver for lack of memory.
    pub(crate) fn shortage(&self) -> Option<&Shortage> {
        self.short.as_ref()
    }

    /// Whether the device works on something of its.
    pub(crate) fn is_at_work(&self) -> bool {
        self.player.under_way() > 0
    }

    /// Whether only the device can make something move again.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn waits_for_device(&self) -> bool {
        self.is_at_work() || self.come.is_none() && (!self.asked.is_empty() || self.recorded.is_some())
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
        (self.come, self.short) = (None, None);
        #[cfg(not(target_arch = "wasm32"))]
        {
            let _ = self.player.wait(std::time::Duration::from_secs(1));
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

fn failure(error: DeviceError) -> Failure {
    Failure { handler: "device".to_owned(), frame: 0, error: HandlerError::Device(error) }
}
