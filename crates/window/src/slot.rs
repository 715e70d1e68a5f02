//! The hand-over of frames from a sink's lane to the event loop: one frame that waits to be drawn, and whether the
//! window takes frames at all.
//!
//! Invariants: at most one frame waits. A closed or failed window takes frames and drops them, so that a window that
//! does not show anything never holds up the run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vramp_gpu::Device;
use vramp_runtime::{Frame, Reporter, Waker};

use crate::error::WindowError;
use crate::intervals::Intervals;

#[derive(Default)]
pub(crate) struct Slot {
    state: Mutex<WindowSlotState>,
}

#[derive(Default)]
struct WindowSlotState {
    /// Wakes the sink's lane. Another one if another graph continues the run.
    waker: Option<Waker>,
    waiting: Option<Frame>,
    is_paused: bool,
    /// Frames that a paused window still takes.
    steps: u32,
    is_closed: bool,
    failure: Option<WindowError>,
    /// The device on which the sink's frames are; `None` if they are on the host.
    device: Option<Device>,
    reporter: Option<Reporter>,
    intervals: Intervals,
}

impl Slot {
    // ---- the lane

    pub(crate) fn keep_waker(&self, waker: &Waker) {
        self.state().waker = Some(waker.clone());
    }

    pub(crate) fn begin(&self, device: Option<Device>, reporter: Reporter) {
        let mut state = self.state();
        (state.device, state.reporter) = (device, Some(reporter));
    }

    /// Whether the window takes a frame now, while the device works on `unfinished` frames for it.
    pub(crate) fn has_room(&self, unfinished: usize) -> bool {
        let state = self.state();
        if state.is_closed || state.failure.is_some() {
            return true;
        }
        let is_taking = !state.is_paused || state.steps > 0;
        is_taking && state.waiting.is_none() && unfinished == 0
    }

    /// Counts a frame that the sink has taken against the steps of a paused window.
    pub(crate) fn take_step(&self) {
        let mut state = self.state();
        state.steps = state.steps.saturating_sub(1);
    }

    /// Hands a frame to the event loop. Returns whether the event loop should draw it.
    pub(crate) fn put(&self, frame: Frame) -> bool {
        let mut state = self.state();
        if state.is_closed || state.failure.is_some() {
            return false;
        }
        state.waiting = Some(frame);
        true
    }

    /// Follows the frames to another device, or to the host. Frames of the lost device are dropped.
    pub(crate) fn move_to(&self, device: Option<Device>) {
        let mut state = self.state();
        (state.device, state.waiting) = (device, None);
    }

    /// The failure of the event loop, once.
    pub(crate) fn take_failure(&self) -> Option<WindowError> {
        let mut state = self.state();
        let failure = state.failure.take();
        state.is_closed |= failure.is_some();
        failure
    }

    pub(crate) fn words(&self) -> String {
        self.state().intervals.words()
    }

    // ---- the event loop

    /// The frame that waits, if there is one. The lane may then send the next one.
    pub(crate) fn take(&self) -> Option<Frame> {
        let frame = self.state().waiting.take();
        if frame.is_some() {
            self.wake();
        }
        frame
    }

    /// The stream time of the frame that waits.
    pub(crate) fn waiting_pts_ns(&self) -> Option<i64> {
        self.state().waiting.as_ref().map(|frame| frame.meta().pts_ns)
    }

    pub(crate) fn device(&self) -> Option<Device> {
        self.state().device.clone()
    }

    /// Whether the window is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.state().is_paused
    }

    pub(crate) fn pause(&self, is_paused: bool) {
        {
            let mut state = self.state();
            (state.is_paused, state.steps) = (is_paused, 0);
            state.intervals.pause();
        }
        self.wake();
    }

    /// Lets a paused window take one more frame.
    pub(crate) fn step(&self) {
        {
            let mut state = self.state();
            state.is_paused = true;
            // A held key leaves no steps behind.
            state.steps = (state.steps + 1).min(2);
            state.intervals.pause();
        }
        self.wake();
    }

    pub(crate) fn close(&self) {
        {
            let mut state = self.state();
            (state.is_closed, state.waiting) = (true, None);
        }
        self.wake();
    }

    pub(crate) fn fail(&self, failure: WindowError) {
        {
            let mut state = self.state();
            if state.is_closed || state.failure.is_some() {
                return;
            }
            (state.failure, state.waiting) = (Some(failure), None);
        }
        self.wake();
    }

    pub(crate) fn count_shown(&self) {
        self.state().intervals.shown(std::time::Instant::now());
    }

    pub(crate) fn reporter(&self) -> Option<Reporter> {
        self.state().reporter.clone()
    }

    fn wake(&self) {
        let waker = self.state().waker.clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, WindowSlotState> {
        // No holder panics halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
