//! Stops a pipeline from any thread: at once as an interruption, at once as the intended end, or after the frames in
//! flight have arrived.
//!
//! A stopper outlives an engine that is replaced by another ([`super::succession`]): it then stops the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::link::wake_signal::WakeSignal;

use super::barrier::{Barrier, Unrest};

#[derive(Debug, Clone, Default)]
pub struct Stopper {
    stopped: Arc<AtomicBool>,
    finishing: Arc<AtomicBool>,
    intended: Arc<AtomicBool>,
    handing_over: Arc<AtomicBool>,
    /// The engine has come to a rest, and its lanes return.
    switching: Arc<AtomicBool>,
    /// Why the engine did not come to a rest.
    gave_up: Arc<Mutex<Option<Unrest>>>,
    barrier: Arc<Barrier>,
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
        self.barrier.lower();
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

    /// Asks the engine to come to a rest between two frames, so that another engine can continue the run.
    pub(super) fn begin_hand_over(&self) {
        *self.gave_up.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.handing_over.store(true, Ordering::Release);
    }

    /// Whether another engine is to continue the run.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.handing_over.load(Ordering::Acquire)
    }

    pub(super) fn barrier(&self) -> &Arc<Barrier> {
        &self.barrier
    }

    /// Makes sources pause at their marks.
    pub(super) fn raise_barrier(&self) {
        // Under the lock, so that a run that finishes meanwhile ends its sources.
        let signals = self.signals();
        if !self.is_ending() {
            self.barrier.raise();
            self.sources_pause.store(true, Ordering::Release);
        }
        drop(signals);
        self.wake_all();
    }

    /// Lets the engine continue instead of a successor.
    pub(super) fn resume(&self, why: Option<Unrest>) {
        let signals = self.signals();
        self.barrier.lower();
        *self.gave_up.lock().unwrap_or_else(PoisonError::into_inner) = why;
        self.handing_over.store(false, Ordering::Release);
        self.sources_pause.store(self.finishing.load(Ordering::Acquire), Ordering::Release);
        drop(signals);
        self.wake_all();
    }

    /// Lets the lanes return, because nothing moves any more.
    pub(super) fn switch(&self) {
        self.switching.store(true, Ordering::Release);
        self.wake_all();
    }

    pub(super) fn is_switching(&self) -> bool {
        self.switching.load(Ordering::Acquire)
    }

    /// Why the engine continued after it was asked to hand over.
    #[doc(hidden)]
    pub fn gave_up(&self) -> Option<Unrest> {
        self.gave_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        self.switching.store(false, Ordering::Release);
        self.barrier.lower();
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
