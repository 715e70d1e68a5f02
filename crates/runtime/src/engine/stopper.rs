//! Stops a pipeline from any thread: at once as an interruption, at once as the intended end, or after the frames in
//! flight have arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::link::wake_signal::WakeSignal;

#[derive(Debug, Clone)]
pub struct Stopper {
    pub(super) stopped: Arc<AtomicBool>,
    pub(super) finishing: Arc<AtomicBool>,
    pub(super) intended: Arc<AtomicBool>,
    pub(super) signals: Arc<Vec<WakeSignal>>,
}

impl Stopper {
    /// Interrupts the run: queued frames are dropped and counted. Files contain the frames so far. A file that would
    /// replace an older file is left beside that older file.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Stops at once like [`Stopper::stop`], but as the intended end of the run: files are finished as if their streams
    /// had ended.
    pub fn end(&self) {
        self.intended.store(true, Ordering::Release);
        self.stop();
    }

    /// Ends the sources; frames in flight still arrive.
    pub fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.wake_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether the run was stopped or is finishing.
    pub fn is_ending(&self) -> bool {
        self.is_stopped() || self.finishing.load(Ordering::Acquire)
    }

    pub(super) fn wake_all(&self) {
        self.signals.iter().for_each(WakeSignal::notify);
    }
}
