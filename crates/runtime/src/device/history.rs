//! Device history: the device that a pipeline uses, and what was asked of the devices that it has lost.
//!
//! Owns the sums over all of them, and the list of losses.
//! Does not open or lose any: the device's lane does.
//!
//! Always: figures never go back when a device goes; what others ask of a shared device is not this pipeline's.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vramp_gpu::{Counters, Device, Statistics};

use crate::handler::Trouble;
use crate::observe::report::DeviceRecovery;

/// The device in use and what is known of those before it.
#[derive(Debug)]
pub(crate) struct DeviceHistory {
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    current: Option<Device>,
    /// What had been asked of the current one when it came.
    before: Counters,
    /// What others hold on it.
    others: Statistics,
    /// What was asked of those before it.
    past: Counters,
    peak_bytes: u64,
    /// What the pool of any of them should need.
    aim_bytes: u64,
    /// API and name of the first.
    named: Option<(String, String)>,
    recoveries: Vec<DeviceRecovery>,
    /// Why the current one was given up from outside, until its lane has heard it.
    hangs: Option<Trouble>,
}

impl DeviceHistory {
    pub(crate) fn new(device: Option<Device>) -> DeviceHistory {
        let named = device.as_ref().map(|d| (d.adapter().backend.to_string(), d.adapter().name.clone()));
        let mut state = HistoryState {
            current: None,
            before: Counters::default(),
            others: Statistics::default(),
            past: Counters::default(),
            peak_bytes: 0,
            aim_bytes: u64::MAX,
            named,
            recoveries: Vec::new(),
            hangs: None,
        };
        state.seat(device);
        DeviceHistory { state: Mutex::new(state) }
    }

    /// API and name of the device that the run began with.
    pub(crate) fn named(&self) -> Option<(String, String)> {
        self.lock().named.clone()
    }

    /// The device in use; none where the cpu does it all.
    pub(crate) fn current(&self) -> Option<Device> {
        self.lock().current.clone()
    }

    /// What this pipeline has asked of all of them.
    pub(crate) fn counters(&self) -> Counters {
        let state = self.lock();
        state.past.and(&state.asked())
    }

    /// What the pool of the current one holds, without what others hold there, and the most that any has held.
    pub(crate) fn memory(&self) -> Statistics {
        let state = self.lock();
        let mut now = state.current.as_ref().map(|device| device.pool().statistics()).unwrap_or_default();
        if state.current.as_ref().is_some_and(|device| device.check().is_err()) {
            // What was lent on a device that is gone is gone too.
            (now.lent, now.lent_bytes, now.pooled_bytes) = (0, 0, 0);
        }
        now.lent_bytes = now.lent_bytes.saturating_sub(state.others.lent_bytes);
        now.lent = now.lent.saturating_sub(state.others.lent);
        now.hits = now.hits.saturating_sub(state.others.hits);
        now.misses = now.misses.saturating_sub(state.others.misses);
        now.trimmed = now.trimmed.saturating_sub(state.others.trimmed);
        now.peak_bytes = now.peak_bytes.max(state.peak_bytes);
        now
    }

    /// Says how much the pool of each should need.
    pub(crate) fn aim(&self, bytes: u64) {
        let mut state = self.lock();
        state.aim_bytes = bytes;
        state.aim();
    }

    /// The current one is given up from outside, for this reason.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn hang(&self, trouble: Option<Trouble>) {
        self.lock().hangs = trouble;
    }

    /// Whether it was, and its lane has not heard it yet.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_hanging(&self) -> bool {
        self.lock().hangs.is_some()
    }

    /// Why it was given up from outside, if it was.
    pub(crate) fn take_hang(&self) -> Option<Trouble> {
        self.lock().hangs.take()
    }

    /// The losses so far.
    pub(crate) fn recoveries(&self) -> Vec<DeviceRecovery> {
        self.lock().recoveries.clone()
    }

    /// The device is gone, and another one, or none, takes its place.
    pub(crate) fn replace(&self, device: Option<Device>, recovered: DeviceRecovery) {
        let mut state = self.lock();
        state.seat(device);
        state.is_new();
        state.recoveries.push(recovered);
    }

    /// There is a device again.
    pub(crate) fn back(&self, device: Device) {
        let mut state = self.lock();
        state.seat(Some(device));
        state.is_new();
        if let Some(last) = state.recoveries.last_mut() {
            last.back = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        // Nothing is half-made while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryState {
    fn asked(&self) -> Counters {
        self.current.as_ref().map(|device| device.counters().since(&self.before)).unwrap_or_default()
    }

    fn seat(&mut self, device: Option<Device>) {
        self.past = self.past.and(&self.asked());
        if let Some(gone) = &self.current {
            self.peak_bytes = self.peak_bytes.max(gone.pool().statistics().peak_bytes);
        }
        self.before = device.as_ref().map(Device::counters).unwrap_or_default();
        self.others = device.as_ref().map(|device| device.pool().statistics()).unwrap_or_default();
        self.current = device;
        self.aim();
    }

    /// The current one was opened for this run: what was compiled for it was compiled while the run went on, and what
    /// is lent there is this run's.
    fn is_new(&mut self) {
        self.before.compiles = 0;
        self.others = Statistics::default();
    }

    fn aim(&self) {
        if let Some(device) = &self.current {
            device.pool().aim(self.aim_bytes.saturating_add(self.others.lent_bytes));
        }
    }
}
