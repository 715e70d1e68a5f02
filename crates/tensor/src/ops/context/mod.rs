//! Contexts. A context is the host, with or without a device. The tensors of a context share a lane on the device, the
//! host pool, the counts, and the list of living storages.
//!
//! A context has one lane on its device. A lane is a player, and a recording that grows until a value is read, enough
//! work has gathered, or memory is short.
//!
//! Invariants: an op runs on the context's device, or on the host if the context has no device, wherever the inputs of
//! the op are. Two contexts on one device share the device's memory pool and nothing else.

#[cfg(not(target_arch = "wasm32"))]
mod arrivals;
mod builder;
#[cfg(not(target_arch = "wasm32"))]
mod download;
#[cfg(not(target_arch = "wasm32"))]
mod outside;
mod scope;
#[cfg(not(target_arch = "wasm32"))]
mod side;

pub use builder::ContextBuilder;
pub use scope::{Escape, TensorScope};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use download::PendingDownload;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use scope::leave_scopes;
pub(crate) use scope::note_made;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use side::{DeviceSide, OWNER};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[cfg(not(target_arch = "wasm32"))]
use vramp_gpu::Device;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::error::TensorError;
use crate::ops::memory::{BlockPool, HostPoolStatistics, MemoryCounts, MemoryReport};
use crate::ops::storage::Storage;

/// The place where tensors live and ops run. Clones are the same context.
#[derive(Clone)]
pub struct Context {
    inner: Arc<dyn ContextParts>,
}

/// The contents of a context. A trait object, because a proof that a context is `Send` would otherwise go through all
/// of wgpu's types, deeper than the compiler's default recursion limit.
trait ContextParts: Send + Sync {
    fn all(&self) -> &ContextInner;
}

impl ContextParts for ContextInner {
    fn all(&self) -> &ContextInner {
        self
    }
}

struct ContextInner {
    #[cfg(not(target_arch = "wasm32"))]
    side: Mutex<Option<Arc<DeviceSide>>>,
    threads: usize,
    pool: BlockPool,
    counts: MemoryCounts,
    living: Mutex<BTreeMap<u64, Weak<Storage>>>,
    #[cfg(not(target_arch = "wasm32"))]
    outside: outside::ExternalMemory,
    #[cfg(not(target_arch = "wasm32"))]
    profiler: crate::ops::profile::Profiler,
    /// Receives debug lines; set by [`ContextBuilder::debug`].
    debug: Option<Box<Debug>>,
}

pub(crate) type Debug = dyn Fn(&str) + Send + Sync;

/// Counters of transfers and copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Blocking reads of values on the host or on the device. Reads of values on the device are also downloads.
    pub host_reads: u64,
    /// Reads through futures.
    pub async_reads: u64,
    pub uploads: u64,
    /// Copies made because memory could not be shared.
    pub copies: u64,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("memory", &self.memory()).finish_non_exhaustive()
    }
}

impl Context {
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// A context without a device.
    pub fn on_host() -> Context {
        ContextBuilder::default().on_host()
    }

    /// A context on a device.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn on(device: &Device) -> Result<Context, TensorError> {
        ContextBuilder::default().on(device)
    }

    /// A context on the best device, or on the host if there is none. The string says why this device or the host was
    /// chosen.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open() -> (Context, String) {
        ContextBuilder::default().open()
    }

    // ---- facts

    /// The device that ops run on; `None` if ops run on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn device(&self) -> Option<Device> {
        self.side().map(|side| side.device().clone())
    }

    /// Threads for ops on the host.
    pub fn threads(&self) -> usize {
        self.inner().threads
    }

    pub fn memory(&self) -> MemoryReport {
        let host = self.inner().pool.statistics();
        let mut report = MemoryReport { host_pooled_bytes: host.pooled_bytes, ..self.inner().counts.report() };
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            let pool = side.device().pool().statistics();
            report.device_pooled_bytes = pool.pooled_bytes;
            if let Some(reason) = side.lost() {
                report.unreliable = Some(format!("the device was lost ({reason}); values that only it had are gone"));
            }
        }
        report
    }

    /// Restarts the peak from the current bytes.
    pub fn restart_peak(&self) {
        self.inner().counts.restart_peak();
    }

    pub fn host_pool(&self) -> HostPoolStatistics {
        self.inner().pool.statistics()
    }

    pub fn transfers(&self) -> Transfers {
        let MemoryCounts { host_reads, async_reads, uploads, copies, .. } = &self.inner().counts;
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        Transfers {
            host_reads: read(host_reads),
            async_reads: read(async_reads),
            uploads: read(uploads),
            copies: read(copies),
        }
    }

    /// Releases free pool memory on both sides.
    pub fn trim(&self) {
        self.inner().pool.trim();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            side.device().pool().trim_to(0);
        }
    }

    // ---- the device

    /// Submits pending ops. Reads do this on their own; call this method before your own GPU code uses a tensor's
    /// memory.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn flush(&self) -> Result<(), TensorError> {
        self.side().map_or(Ok(()), |side| side.flush("flush"))
    }

    /// Waits until all pending ops are computed.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn finish(&self) -> Result<(), TensorError> {
        self.side().map_or(Ok(()), |side| side.finish("finish"))
    }

    /// Lets ops record into the recording of another player on the same device, for example a pipeline's player.
    /// Meanwhile nothing can be read, and no other thread may use this context.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn record_into<T>(
        &self,
        recording: &mut vramp_gpu::Recording,
        act: impl FnOnce() -> Result<T, TensorError>,
    ) -> Result<T, TensorError> {
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op: "record_into" }) };
        side.record_into("record_into", recording, act)
    }

    /// Moves all tensors to another device, or to the host. Their values are kept, and ops run on the new side from now
    /// on. If the old device was lost, values that only that device had are lost, and using them is an error. Returns
    /// how many memories kept their values, and how many lost them.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn move_to(&self, device: Option<&Device>) -> Result<Moved, TensorError> {
        let new = device.map(DeviceSide::on).transpose()?.map(Arc::new);
        let old = self.side();
        let mut moved = Moved::default();
        if let Some(old) = &old {
            let lost = old.lost();
            for storage in self.living() {
                match &lost {
                    Some(reason) if storage.lose(old, reason) => moved.kept += 1,
                    Some(_) => moved.gone += 1,
                    None => {
                        storage.leave_device(crate::ops::storage::OpRequest::anonymous("move_to"))?;
                        moved.kept += 1;
                    }
                }
            }
        } else {
            moved.kept = self.living().len();
        }
        *lock(&self.inner().side) = new;
        self.say(|| format!("moved: {moved:?}"));
        Ok(moved)
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn side(&self) -> Option<Arc<DeviceSide>> {
        lock(&self.inner().side).clone()
    }

    // ---- for tensors

    pub(crate) fn counts(&self) -> &MemoryCounts {
        &self.inner().counts
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn profiler(&self) -> &crate::ops::profile::Profiler {
        &self.inner().profiler
    }

    pub(crate) fn pool(&self) -> &BlockPool {
        &self.inner().pool
    }

    fn inner(&self) -> &ContextInner {
        self.inner.all()
    }

    /// True for clones of one context.
    pub fn is(&self, other: &Context) -> bool {
        std::ptr::eq(self.inner(), other.inner())
    }

    pub(crate) fn remember(&self, id: u64, storage: &Arc<Storage>) {
        lock(&self.inner().living).insert(id, Arc::downgrade(storage));
    }

    pub(crate) fn forget(&self, id: u64) {
        lock(&self.inner().living).remove(&id);
    }

    /// Reports a debug line. The text is built only if debugging is on.
    pub(crate) fn say(&self, words: impl FnOnce() -> String) {
        if let Some(debug) = &self.inner().debug {
            debug(&words());
        }
    }

    fn living(&self) -> Vec<Arc<Storage>> {
        lock(&self.inner().living).values().filter_map(Weak::upgrade).collect()
    }
}

/// The result of [`Context::move_to`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Memories whose values are kept.
    pub kept: usize,
    /// Memories whose values are lost.
    pub gone: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
