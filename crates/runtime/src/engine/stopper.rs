//! Stops a pipeline from any thread: at once as an interruption, at once as the intended end, or after the frames in
//! flight have arrived.
//!
//! A stopper outlives an engine that is replaced by another ([`super::succession`]): it then stops the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::link::wake_signal::WakeSignal;

#[derive(Debug, Clone, Default)]
pub struct Stopper {
    stopped: Arc<AtomicBool>,
    finishing: Arc<AtomicBool>,
    intended: Arc<AtomicBool>,
    handing_over: Arc<AtomicBool>,
    /// Whether sources pause: the run is finishing, or another engine continues it. One flag, because every source reads
    /// it for every frame.
    sources_pause: Arc<AtomicBool>,
    /// The signals of the lanes of the current engine.
    signals: Arc<Mutex<Arc<[WakeSignal]>>>,
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
        // Under the lock, so that a succeeding engine cannot clear the pause in between.
        let signals = self.signals();
        self.finishing.store(true, Ordering::Release);
        self.sources_pause.store(true, Ordering::Release);
        drop(signals);
        self.wake_all();
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether the run was stopped or is finishing.
    pub fn is_ending(&self) -> bool {
        self.is_stopped() || self.finishing.load(Ordering::Acquire)
    }

    /// Pauses the sources, so that the engine ends between two frames and another engine can continue the run.
    pub(super) fn begin_hand_over(&self) {
        self.handing_over.store(true, Ordering::Release);
        self.sources_pause.store(true, Ordering::Release);
        self.wake_all();
    }

    /// Whether sources pause because another engine continues the run.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire)
    }

    /// The flag that makes sources pause.
    pub(super) fn sources_pause(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.sources_pause)
    }

    /// From now on, wakes these lanes.
    pub(super) fn serve(&self, own: Arc<[WakeSignal]>) {
        let mut signals = self.signals();
        *signals = own;
        self.handing_over.store(false, Ordering::Release);
        self.sources_pause.store(self.finishing.load(Ordering::Acquire), Ordering::Release);
        drop(signals);
        if self.is_ending() {
            self.wake_all();
        }
    }

    fn signals(&self) -> MutexGuard<'_, Arc<[WakeSignal]>> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_intended(&self) -> bool {
        self.intended.load(Ordering::Acquire)
    }

    pub(super) fn wake_all(&self) {
        let signals = Arc::clone(&self.signals());
        signals.iter().for_each(WakeSignal::notify);
    }
}
