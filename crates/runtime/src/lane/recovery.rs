//! Recovery: how the device's lane goes on when its device is gone.
//!
//! Owns the decision (open it again, compute on the host, or end) and the way back to a device.
//! Does not open devices by itself: whoever made the pipeline says how.
//!
//! Always: only frames that were on the device are lost, and each is counted; nodes, links and handlers' states stay
//! as they are, so the stream goes on with the next frame; a device that hangs is left behind and not tried again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Device, OpenError, PlayError, Player};
use vramp_plan::OnLoss;

use crate::device::history::DeviceHistory;
use crate::device::lane_player::{LanePlayer, PlaybackTotals};
use crate::failure::HandlerFailure;
use crate::handler::{DeviceError, HandlerError, Trouble};
use crate::node::Node;
use crate::observe::monitor::{GoesOn, RunEvent};
use crate::observe::report::DeviceRecovery;

use super::{Lane, Stepped};

/// Opens a device like the one that was lost.
pub type Reopen = Arc<dyn Fn() -> Result<Device, OpenError> + Send + Sync>;

/// Makes a player for a device.
pub(crate) type MakePlayer = Arc<dyn Fn(&Device) -> Result<Player, PlayError> + Send + Sync>;

/// So many losses within this time are too many: the device stays away for a while.
const MOST_LOSSES: usize = 3;
const WITHIN: Duration = Duration::from_secs(10);

/// How long the device stays away at first; twice as long after each attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What the device's lane needs to go on without its device.
pub(crate) struct RecoveryState {
    pub(crate) rule: OnLoss,
    pub(crate) reopen: Option<Reopen>,
    pub(crate) player: MakePlayer,
    pub(crate) device_history: Arc<DeviceHistory>,
    /// The device is destroyed when it has been given so many frames, to see what becomes of it.
    pub(crate) lose_at: VecDeque<u64>,
    /// How long the device stays away at first.
    pub(crate) first_pause: Duration,
    losses: VecDeque<Duration>,
    /// The last pause, and when it was decided.
    #[cfg(not(target_arch = "wasm32"))]
    paused: Option<(Duration, Duration)>,
    /// Frames lost by nodes themselves that have been told of.
    told: u64,
    /// What was counted and measured on the device that is gone.
    kept: Option<PlaybackTotals>,
    #[cfg(not(target_arch = "wasm32"))]
    way_back: Option<WayBack>,
}

/// A device that is away and may come back.
#[cfg(not(target_arch = "wasm32"))]
struct WayBack {
    next: Duration,
    opening: Option<std::sync::mpsc::Receiver<Option<Device>>>,
}

impl RecoveryState {
    pub(crate) fn new(
        rule: OnLoss,
        reopen: Option<Reopen>,
        player: MakePlayer,
        device_history: Arc<DeviceHistory>,
        lose_at: VecDeque<u64>,
    ) -> RecoveryState {
        RecoveryState {
            rule,
            reopen,
            player,
            device_history,
            lose_at: sorted(lose_at),
            first_pause: FIRST_PAUSE,
            losses: VecDeque::new(),
            #[cfg(not(target_arch = "wasm32"))]
            paused: None,
            told: 0,
            kept: None,
            #[cfg(not(target_arch = "wasm32"))]
            way_back: None,
        }
    }

    /// What was counted and measured on the device that is gone.
    pub(super) fn kept(&self) -> Option<&PlaybackTotals> {
        self.kept.as_ref()
    }

    /// How long the device is left alone now: twice as long as the last time, unless that is long ago.
    #[cfg(not(target_arch = "wasm32"))]
    fn next_pause(&mut self, now: Duration) -> Duration {
        let lately = self.paused.filter(|(_, at)| now.saturating_sub(*at) <= 2 * LONGEST_PAUSE);
        let pause = lately.map_or(self.first_pause, |(last, _)| (2 * last).min(LONGEST_PAUSE));
        self.paused = Some((pause, now));
        pause
    }

    /// Whether the device has been lost so often lately that opening it again would not help.
    fn is_hopeless(&mut self, now: Duration) -> bool {
        self.losses.push_back(now);
        while self.losses.front().is_some_and(|first| now.saturating_sub(*first) > WITHIN) {
            self.losses.pop_front();
        }
        self.losses.len() > MOST_LOSSES
    }
}

fn sorted(mut frames: VecDeque<u64>) -> VecDeque<u64> {
    frames.make_contiguous().sort_unstable();
    frames
}

impl Lane {
    /// Goes on after a failure that is the device's own; hands any other failure back.
    pub(super) fn recover(&mut self, failure: HandlerFailure, now: Duration) -> Stepped {
        let Some(trouble) = failure.error.trouble() else { return Stepped::Failed(failure) };
        let Some(mut recovery) = self.recovery.take() else { return Stepped::Failed(failure) };
        let trouble = recovery.device_history.take_hang().unwrap_or(trouble);
        let stepped = if recovery.rule == OnLoss::Stop {
            Stepped::Failed(failure)
        } else {
            self.go_on(&mut recovery, &trouble, now)
        };
        self.recovery = Some(recovery);
        stepped
    }

    fn go_on(&mut self, recovery: &mut RecoveryState, trouble: &Trouble, now: Duration) -> Stepped {
        let frame = self.nodes().map(Node::taken).max().unwrap_or(0);
        let lost = self.give_up(recovery, matches!(trouble, Trouble::Overdue { .. }));
        let is_lost = matches!(trouble, Trouble::Lost { .. });
        let reopens = recovery.rule == OnLoss::Reopen && is_lost;
        let stays_away = recovery.is_hopeless(now);
        let opened = recovery.reopen.as_ref().filter(|_| reopens && !stays_away).and_then(|open| open().ok());
        let device = opened.filter(|device| self.enter(recovery, device).is_ok());
        let on = if device.is_some() { GoesOn::Device } else { GoesOn::Cpu };
        if device.is_none() {
            self.context.leave();
            if let Err(failure) = self.leave(trouble, frame) {
                return Stepped::Failed(failure);
            }
            #[cfg(not(target_arch = "wasm32"))]
            if reopens && recovery.reopen.is_some() {
                let pause = recovery.next_pause(now);
                recovery.way_back = Some(WayBack { next: now + pause, opening: None });
            }
        }
        let reason = trouble.to_string();
        recovery
            .device_history
            .replace(device, DeviceRecovery { reason: reason.clone(), on, lost, frame, back: false });
        self.context.report(&RunEvent::DeviceLost { reason, on, lost });
        Stepped::Moved
    }

    /// Gives up everything on the device, and says how many frames that were.
    fn give_up(&mut self, recovery: &mut RecoveryState, hangs: bool) -> u64 {
        let mut lost = 0;
        if let Some(player) = self.player.take() {
            recovery.kept = Some(player.lose(&mut self.segments, hangs));
        }
        if let Some(device_context) = self.context.device_context() {
            device_context.recording.clear();
            device_context.requests.clear();
        }
        for node in self.segments.iter_mut().flatten() {
            lost += node.lose_device();
        }
        let own: u64 = self.nodes().map(|node| node.counts().lost).sum();
        lost += own - std::mem::replace(&mut recovery.told, own);
        lost
    }

    /// Lets every handler go on with frames on the host.
    fn leave(&mut self, trouble: &Trouble, frame: u64) -> Result<(), HandlerFailure> {
        let cannot = self.segments.iter_mut().flatten().find_map(|node| (!node.leave_device()).then(|| node.name()));
        match cannot {
            None => Ok(()),
            Some(handler) => {
                let error = HandlerError::NoTwin { trouble: trouble.clone() };
                Err(HandlerFailure { handler, frame, error })
            }
        }
    }

    /// Lets every handler go on on a device.
    fn enter(&mut self, recovery: &mut RecoveryState, device: &Device) -> Result<(), HandlerFailure> {
        for node in self.segments.iter_mut().flatten() {
            node.enter_device(device)?;
        }
        let player = (recovery.player)(device).map_err(|error| HandlerFailure {
            handler: "device".to_owned(),
            frame: 0,
            error: HandlerError::Device(DeviceError::Play(error)),
        })?;
        self.context.enter(device.clone());
        let mut raised = Vec::new();
        for node in self.segments.iter_mut().flatten() {
            raised.push(node.raised(&mut self.context)?);
        }
        // Only now: where one of them finds no room, all stay on the host.
        self.segments.iter_mut().flatten().zip(raised).for_each(|(node, frames)| node.put_supplied(frames));
        self.player = recovery.kept.take().map(|kept| LanePlayer::again(player, kept));
        Ok(())
    }

    /// Destroys the device if that was asked for after as many frames as it has been given.
    pub(super) fn lose_on_purpose(&mut self) {
        let taken: u64 = self.nodes().filter(|node| node.enters_device()).map(Node::taken).sum();
        let Some(recovery) = &mut self.recovery else { return };
        if self.player.is_some() && recovery.lose_at.front().is_some_and(|at| *at <= taken) {
            recovery.lose_at.pop_front();
            if let Some(device_context) = self.context.device_context() {
                device_context.device().destroy();
            }
        }
    }

    /// Looks whether there is a device again, and goes back to it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn look_for_device(&mut self, now: Duration) {
        let Some(mut recovery) = self.recovery.take_if(|recovery| recovery.way_back.is_some()) else { return };
        if let Some(device) = self.found(&mut recovery, now) {
            // What stands in the way now may not do so later: the cpu goes on meanwhile.
            if self.enter(&mut recovery, &device).is_ok() {
                recovery.way_back = None;
                let name = device.adapter().name.clone();
                recovery.device_history.back(device);
                self.context.report(&RunEvent::DeviceBack { device: name });
            } else {
                self.context.leave();
                self.segments.iter_mut().flatten().for_each(|node| {
                    node.leave_device();
                });
            }
        }
        self.recovery = Some(recovery);
    }

    /// The device that another thread has opened meanwhile; starts to open one where it is time for that.
    #[cfg(not(target_arch = "wasm32"))]
    fn found(&self, recovery: &mut RecoveryState, now: Duration) -> Option<Device> {
        use std::sync::mpsc::{TryRecvError, channel};
        let (way_back, reopen) = (recovery.way_back.as_mut()?, recovery.reopen.as_ref()?);
        if let Some(opening) = &way_back.opening {
            let answer = opening.try_recv();
            if let Err(TryRecvError::Empty) = answer {
                return None;
            }
            way_back.opening = None;
            let pause = recovery.next_pause(now);
            if let Some(way_back) = &mut recovery.way_back {
                way_back.next = now + pause;
            }
            return answer.ok().flatten();
        }
        if now >= way_back.next {
            // Opening and compiling take a while: the stream goes on meanwhile.
            let (reopen, signal) = (Arc::clone(reopen), self.signal.clone());
            let shaders: Vec<_> = self.nodes().flat_map(Node::shaders).collect();
            let (send, receive) = channel();
            let open = move || {
                let device = reopen().ok();
                let ready = |device: &Device| shaders.iter().all(|shader| device.prepare(shader).is_ok());
                let _ = send.send(device.filter(ready));
                signal.notify();
            };
            if std::thread::Builder::new().name("vramp opens a device".to_owned()).spawn(open).is_ok() {
                way_back.opening = Some(receive);
            }
        }
        None
    }
}
