//! Counters of the tensors of one context and their memory, updated on allocation and release. Neither the operating
//! system nor the driver is queried; [`MemoryReport::unreliable`] names what the counters miss.
//!
//! Invariants: memory that several tensors share is counted once. All counts are 0 after everything is disposed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Memory held by the tensors of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// Tensors that are alive, views included.
    pub tensors: u64,
    /// The number of separate memories. Views and clones share the memory of their tensor.
    pub buffers: u64,
    pub host_bytes: u64,
    pub device_bytes: u64,
    /// The maximum so far of host and device bytes together.
    pub peak_bytes: u64,
    /// Free bytes that the host pool keeps.
    pub host_pooled_bytes: u64,
    /// Free bytes that the device pool keeps; 0 without a device.
    pub device_pooled_bytes: u64,
    /// Why the figures are incomplete; `None` if they are complete.
    pub unreliable: Option<String>,
}

impl MemoryReport {
    /// Bytes on both sides.
    pub fn bytes(&self) -> u64 {
        self.host_bytes + self.device_bytes
    }
}

#[derive(Debug, Default)]
pub(crate) struct MemoryCounts {
    pub(crate) tensors: AtomicU64,
    pub(crate) buffers: AtomicU64,
    host_bytes: AtomicU64,
    device_bytes: AtomicU64,
    /// Bytes of both sides together, so that the peak is a sum that was in use at a single moment.
    all_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    pub(crate) host_reads: AtomicU64,
    pub(crate) async_reads: AtomicU64,
    pub(crate) uploads: AtomicU64,
    pub(crate) copies: AtomicU64,
}

impl MemoryCounts {
    pub(crate) fn add_host(&self, bytes: u64) {
        self.host_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.grow(bytes);
    }

    pub(crate) fn add_device(&self, bytes: u64) {
        self.device_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.grow(bytes);
    }

    pub(crate) fn sub_host(&self, bytes: u64) {
        self.host_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sub_device(&self, bytes: u64) {
        self.device_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.all_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Restarts the peak from the current bytes.
    pub(crate) fn restart_peak(&self) {
        self.peak_bytes.store(self.all_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Raises the peak to at least `bytes`.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn raise_peak(&self, bytes: u64) {
        self.peak_bytes.fetch_max(bytes, Ordering::Relaxed);
    }

    pub(crate) fn report(&self) -> MemoryReport {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        MemoryReport {
            tensors: read(&self.tensors),
            buffers: read(&self.buffers),
            host_bytes: read(&self.host_bytes),
            device_bytes: read(&self.device_bytes),
            peak_bytes: read(&self.peak_bytes),
            host_pooled_bytes: 0,
            device_pooled_bytes: 0,
            unreliable: None,
        }
    }

    fn grow(&self, bytes: u64) {
        let all = self.all_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(all, Ordering::Relaxed);
    }
}
