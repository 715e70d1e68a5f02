//! Recovery: how the device lane continues when its device is lost.
//!
//! Only the device lane uses a device, so only that lane has to continue without the device. The lane's nodes, rings
//! and handlers stay: files stay open, sources continue, frames on the host stay queued. What was on the device is
//! dropped: frames in rings, frames that `delay` holds, and requested downloads that have not arrived. Each dropped
//! frame leaves an empty slot, because nodes count slots, and is counted as `device_lost`. Then the lane continues in
//! one of two ways.
//!
//! - **On another device**, opened as the first device was. Handlers receive the new device
//!   ([`FrameHandler::enter_device`](crate::FrameHandler::enter_device)), fused units compile their kernels again,
//!   small data are sent again.
//! - **On the CPU.** A fused unit has its host implementation from the start, so there is nothing to prepare:
//!   `leave_device` drops the kernels, transfers pass frames on, and the same nodes fire in the same order. Because the
//!   device lane may have to compute on the host, it runs on a thread of the row pool. A second plan with its own lanes
//!   and groups is not made: it would fuse a little differently, and would have to take over frames and states. The
//!   same nodes can switch between two frames.
//!
//! The lane also continues on the CPU after several losses in quick succession, or if no device can be opened. Then,
//! after a pause of a second, another thread opens a device and compiles the kernels on it; if that fails, the next
//! pause is twice as long. Once the device is ready, the lane returns to it, and each node uploads the frames it needs
//! that are still on the host. A device that has run out of memory counts as lost as well, and so does a device whose
//! kernel exceeds its time limit; but after such a loss the lane does not return to a device, because the same frame
//! would fail in the same way. A device that hangs is leaked, because dropping it can hang.
//!
//! A handler that cannot leave the device ends the run with [`HandlerError::NoTwin`]. Verification, the harness,
//! calibration and the demo's table stop at a loss, because they would otherwise measure the CPU instead of the device.
//!
//! Invariant: only frames that were on the device are lost, and each is counted.

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

/// Opens a device in place of the lost device.
pub type Reopen = Arc<dyn Fn() -> Result<Device, OpenError> + Send + Sync>;

pub(crate) type MakePlayer = Arc<dyn Fn(&Device) -> Result<Player, PlayError> + Send + Sync>;

/// More than this many losses within [`WITHIN`] are too many: the device stays unused for a pause.
const MOST_LOSSES: usize = 3;
const WITHIN: Duration = Duration::from_secs(10);

/// The first pause; each further pause is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What the device lane needs to continue without its device.
pub(crate) struct RecoveryState {
    pub(crate) rule: OnLoss,
    pub(crate) reopen: Option<Reopen>,
    pub(crate) player: MakePlayer,
    pub(crate) device_history: Arc<DeviceHistory>,
    /// For tests: frame counts at which the device is destroyed, in ascending order.
    pub(crate) lose_at: VecDeque<u64>,
    pub(crate) first_pause: Duration,
    losses: VecDeque<Duration>,
    /// The last pause, and when it began.
    #[cfg(not(target_arch = "wasm32"))]
    paused: Option<(Duration, Duration)>,
    /// How many of the frames lost by nodes have been reported so far.
    reported: u64,
    /// Playback totals of the lost device.
    kept: Option<PlaybackTotals>,
    #[cfg(not(target_arch = "wasm32"))]
    way_back: Option<WayBack>,
}

/// A pause after which the device is tried again.
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
            reported: 0,
            kept: None,
            #[cfg(not(target_arch = "wasm32"))]
            way_back: None,
        }
    }

    /// Playback totals of the lost device.
    pub(super) fn kept(&self) -> Option<&PlaybackTotals> {
        self.kept.as_ref()
    }

    /// The length of the next pause: twice the last pause, or the first pause again if the last pause was long ago.
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
    /// Continues after a device failure; returns any other failure.
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

    /// Drops everything on the device and returns the number of lost frames.
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
        lost += own - std::mem::replace(&mut recovery.reported, own);
        lost
    }

    /// Switches every handler to frames on the host.
    fn leave(&mut self, trouble: &Trouble, frame: u64) -> Result<(), HandlerFailure> {
        let Lane { segments, context, .. } = self;
        let mut nodes = segments.iter_mut().flatten();
        let cannot = nodes.find_map(|node| (!node.leave_device(context)).then(|| node.name()));
        match cannot {
            None => Ok(()),
            Some(handler) => {
                let error = HandlerError::NoTwin { trouble: trouble.clone() };
                Err(HandlerFailure { handler, frame, error })
            }
        }
    }

    /// Switches every handler to a device.
    fn enter(&mut self, recovery: &mut RecoveryState, device: &Device) -> Result<(), HandlerFailure> {
        let player = (recovery.player)(device).map_err(|error| HandlerFailure {
            handler: "device".to_owned(),
            frame: 0,
            error: HandlerError::Device(DeviceError::Play(error)),
        })?;
        self.context.enter(device.clone());
        for node in self.segments.iter_mut().flatten() {
            node.enter_device(&mut self.context)?;
        }
        let mut raised = Vec::new();
        for node in self.segments.iter_mut().flatten() {
            raised.push(node.raised(&mut self.context)?);
        }
        // The frames are replaced only after all uploads have succeeded: if an upload finds no memory, all nodes stay
        // on the host.
        self.segments.iter_mut().flatten().zip(raised).for_each(|(node, frames)| node.put_supplied(frames));
        self.player = recovery.kept.take().map(|kept| LanePlayer::again(player, kept));
        Ok(())
    }

    /// Destroys the device if a test requested that at this number of frames.
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

    /// Returns to a device if a device is available again.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn look_for_device(&mut self, now: Duration) {
        let Some(mut recovery) = self.recovery.take_if(|recovery| recovery.way_back.is_some()) else { return };
        if let Some(device) = self.found(&mut recovery, now) {
            // If the device cannot be used, the obstacle may be temporary: the CPU continues, and a device is tried
            // again later.
            if self.enter(&mut recovery, &device).is_ok() {
                recovery.way_back = None;
                let name = device.adapter().name.clone();
                recovery.device_history.back(device);
                self.context.report(&RunEvent::DeviceBack { device: name });
            } else {
                self.context.leave();
                let Lane { segments, context, .. } = self;
                segments.iter_mut().flatten().for_each(|node| {
                    node.leave_device(context);
                });
            }
        }
        self.recovery = Some(recovery);
    }

    /// The device that another thread has opened. Starts that thread when the pause is over.
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
            // Opening and compiling take a while; the stream continues meanwhile.
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
