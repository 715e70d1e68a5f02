//! How much there is, counted where it is made and given back.
//!
//! Owns the counts of one context.
//! Does not ask the system or the driver: what they hold on top is theirs, and the report says so.
//!
//! Always: memory that several tensors share is counted once; when everything is disposed of, every count is 0.

use std::sync::atomic::{AtomicU64, Ordering};

/// How much memory the tensors of a context take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryReport {
    /// Tensors that were made and not disposed of, views included.
    pub tensors: u64,
    /// Memories behind them; views and clones share one.
    pub buffers: u64,
    /// Bytes of values on the host.
    pub host_bytes: u64,
    /// Bytes of values on the device.
    pub device_bytes: u64,
    /// The most bytes of values that there were at once, on both sides together.
    pub peak_bytes: u64,
    /// Bytes that lie free on the host for the next tensor.
    pub host_pooled_bytes: u64,
    /// Bytes that lie free on the device; 0 without one.
    pub device_pooled_bytes: u64,
    /// Why these figures are not all that is taken; none where they are.
    pub unreliable: Option<String>,
}

impl MemoryReport {
    /// Bytes of values on both sides.
    pub fn bytes(&self) -> u64 {
        self.host_bytes + self.device_bytes
    }
}

/// The counts of one context.
#[derive(Debug, Default)]
pub(crate) struct MemoryCounts {
    pub(crate) tensors: AtomicU64,
    pub(crate) buffers: AtomicU64,
    host_bytes: AtomicU64,
    device_bytes: AtomicU64,
    /// Both together, so that the peak is one that was there at one time.
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

    /// From now on the peak is that of what comes.
    pub(crate) fn restart_peak(&self) {
        self.peak_bytes.store(self.all_bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The peak is at least this.
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
