//! The devices of a run: the device in use, the counters of devices that were lost, and the list of losses.
//!
//! Invariants: the run's counters never decrease when a device is lost. The work and memory of other users of a shared
//! device are not counted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vramp_gpu::{Counters, Device, Statistics};

use crate::handler::Trouble;
use crate::observe::report::DeviceRecovery;

/// The device in use and the counters of the devices before it.
#[derive(Debug)]
pub(crate) struct DeviceHistory {
    state: Mutex<HistoryState>,
}

#[derive(Debug)]
struct HistoryState {
    current: Option<Device>,
    /// Counters of the current device when this run received the device.
    before: Counters,
    /// Pool statistics of the current device when this run received the device, that is, the memory of other users.
    others: Statistics,
    /// Counters of the devices that were lost.
    past: Counters,
    /// Pool requests on the devices that were lost.
    past_requests: PoolRequests,
    peak_bytes: u64,
    /// Target of the pool, for any device.
    aim_bytes: u64,
    /// API and name of the first device.
    named: Option<(String, String)>,
    recoveries: Vec<DeviceRecovery>,
    /// Set if the watching thread abandoned the device and the device lane has not noticed yet.
    hangs: Option<Trouble>,
}

/// What a run has requested of a device's pool.
#[derive(Debug, Clone, Copy, Default)]
struct PoolRequests {
    hits: u64,
    misses: u64,
    trimmed: u64,
}

impl DeviceHistory {
    pub(crate) fn new(device: Option<Device>) -> DeviceHistory {
        let named = device.as_ref().map(|d| (d.adapter().backend.to_string(), d.adapter().name.clone()));
        let mut state = HistoryState {
            current: None,
            before: Counters::default(),
            others: Statistics::default(),
            past: Counters::default(),
            past_requests: PoolRequests::default(),
            peak_bytes: 0,
            aim_bytes: u64::MAX,
            named,
            recoveries: Vec::new(),
            hangs: None,
        };
        state.seat(device);
        DeviceHistory { state: Mutex::new(state) }
    }

    /// API and name of the first device.
    pub(crate) fn named(&self) -> Option<(String, String)> {
        self.lock().named.clone()
    }

    /// The device in use; `None` if the CPU computes everything.
    pub(crate) fn current(&self) -> Option<Device> {
        self.lock().current.clone()
    }

    /// This run's counters over all devices.
    pub(crate) fn counters(&self) -> Counters {
        let state = self.lock();
        state.past.and(&state.requested())
    }

    /// The pool of the current device without other users' memory; requests and the peak over all devices.
    pub(crate) fn memory(&self) -> Statistics {
        let state = self.lock();
        let mut now = state.current.as_ref().map(|device| device.pool().statistics()).unwrap_or_default();
        if state.current.as_ref().is_some_and(|device| device.check().is_err()) {
            // Memory that was lent on a lost device is gone too.
            let Statistics { budget_bytes, peak_bytes, .. } = now;
            now = Statistics { budget_bytes, peak_bytes, ..Statistics::default() };
        }
        now.lent_bytes = now.lent_bytes.saturating_sub(state.others.lent_bytes);
        now.lent = now.lent.saturating_sub(state.others.lent);
        PoolRequests { hits: now.hits, misses: now.misses, trimmed: now.trimmed } = state.all_requests();
        now.peak_bytes = now.peak_bytes.max(state.peak_bytes);
        now
    }

    /// Continues the run of an earlier history. On the same device, memory that the earlier engine has lent is no longer
    /// memory of another user, and the earlier history has counted all requests so far.
    pub(crate) fn continue_from(&self, earlier: &DeviceHistory) {
        let (device, others) = {
            let earlier = earlier.lock();
            (earlier.current.clone(), earlier.others)
        };
        let mut state = self.lock();
        if let (Some(own), Some(device)) = (&state.current, &device)
            && own.is_same(device)
        {
            state.others = Statistics { lent: others.lent, lent_bytes: others.lent_bytes, ..own.pool().statistics() };
            state.aim();
        }
    }

    /// Sets the pool target, for this and any later device.
    pub(crate) fn aim(&self, bytes: u64) {
        let mut state = self.lock();
        state.aim_bytes = bytes;
        state.aim();
    }

    /// Marks the current device as abandoned by the watching thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn hang(&self, trouble: Option<Trouble>) {
        self.lock().hangs = trouble;
    }

    /// Whether the device was abandoned and the device lane has not noticed yet.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_hanging(&self) -> bool {
        self.lock().hangs.is_some()
    }

    /// Takes the reason why the device was abandoned; `None` if it was not abandoned.
    pub(crate) fn take_hang(&self) -> Option<Trouble> {
        self.lock().hangs.take()
    }

    pub(crate) fn recoveries(&self) -> Vec<DeviceRecovery> {
        self.lock().recoveries.clone()
    }

    /// Replaces a lost device by another device or by none.
    pub(crate) fn replace(&self, device: Option<Device>, recovered: DeviceRecovery) {
        let mut state = self.lock();
        state.seat(device);
        state.is_new();
        state.recoveries.push(recovered);
    }

    /// Records that a device is in use again.
    pub(crate) fn back(&self, device: Device) {
        let mut state = self.lock();
        state.seat(Some(device));
        state.is_new();
        if let Some(last) = state.recoveries.last_mut() {
            last.back = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HistoryState> {
        // No invariant is broken if a holder panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryState {
    fn requested(&self) -> Counters {
        self.current.as_ref().map(|device| device.counters().since(&self.before)).unwrap_or_default()
    }

    /// The run's pool requests over all devices.
    fn all_requests(&self) -> PoolRequests {
        let PoolRequests { hits, misses, trimmed } = self.past_requests;
        let now = self.current.as_ref().map(|device| device.pool().statistics()).unwrap_or_default();
        PoolRequests {
            hits: hits + now.hits.saturating_sub(self.others.hits),
            misses: misses + now.misses.saturating_sub(self.others.misses),
            trimmed: trimmed + now.trimmed.saturating_sub(self.others.trimmed),
        }
    }

    fn seat(&mut self, device: Option<Device>) {
        self.past = self.past.and(&self.requested());
        self.past_requests = self.all_requests();
        if let Some(gone) = &self.current {
            self.peak_bytes = self.peak_bytes.max(gone.pool().statistics().peak_bytes);
        }
        self.before = device.as_ref().map(Device::counters).unwrap_or_default();
        self.others = device.as_ref().map(|device| device.pool().statistics()).unwrap_or_default();
        self.current = device;
        self.aim();
    }

    /// Notes that the current device was opened for this run: the device's compilations happened during the run, and
    /// all memory that is lent on the device belongs to this run.
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
