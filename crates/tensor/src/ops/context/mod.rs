//! Where tensors live: the host, with a device or without one.
//!
//! Owns what all of its tensors share: the device's lane, the host's pool, the counts, and the list of what is alive.
//! Does not compute.
//!
//! Always: an op runs on the context's side, wherever its inputs are; two contexts on one device share its pool of memory
//! and nothing else.

#[cfg(not(target_arch = "wasm32"))]
mod arrivals;
#[cfg(not(target_arch = "wasm32"))]
mod asked;
mod builder;
#[cfg(not(target_arch = "wasm32"))]
mod outside;
mod scope;
#[cfg(not(target_arch = "wasm32"))]
mod side;

pub use builder::ContextBuilder;
pub use scope::{Escape, TensorScope};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use asked::PendingDownload;
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

/// Where tensors live. Clones are the same context.
#[derive(Clone)]
pub struct Context {
    inner: Arc<dyn ContextParts>,
}

/// What a context has. A trait, so that nobody who asks whether a context may be sent to a thread is led through all types
/// of wgpu, which is deeper than compilers go unless told.
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
    /// Told what is done, in words, where somebody wants to know.
    debug: Option<Box<Debug>>,
}

/// Somebody who is told what is done.
pub(crate) type Debug = dyn Fn(&str) + Send + Sync;

/// What a context has moved so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Reads to the host that somebody waited for, of both sides: those from the device are transfers.
    pub host_reads: u64,
    /// Reads that were awaited.
    pub async_reads: u64,
    /// Values that were sent up.
    pub uploads: u64,
    /// Copies that were made because memory could not be shared.
    pub copies: u64,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("memory", &self.memory()).finish_non_exhaustive()
    }
}

impl Context {
    /// Says how tensors are to live; `on`, `on_host` or `open` ends it.
    pub fn builder() -> ContextBuilder {
        ContextBuilder::default()
    }

    /// Tensors on the host.
    pub fn on_host() -> Context {
        ContextBuilder::default().on_host()
    }

    /// Tensors on a device.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn on(device: &Device) -> Result<Context, TensorError> {
        ContextBuilder::default().on(device)
    }

    /// Tensors on the best device there is, or on the host where there is none; and why, in words.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open() -> (Context, String) {
        ContextBuilder::default().open()
    }

    // ---- facts

    /// The device that ops run on; none where that is the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn device(&self) -> Option<Device> {
        self.side().map(|side| side.device().clone())
    }

    /// Threads that ops on the host use.
    pub fn threads(&self) -> usize {
        self.inner().threads
    }

    /// How much memory its tensors take.
    pub fn memory(&self) -> MemoryReport {
        let host = self.inner().pool.statistics();
        let mut report = MemoryReport { host_pooled_bytes: host.pooled_bytes, ..self.inner().counts.report() };
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            let pool = side.device().pool().statistics();
            report.device_pooled_bytes = pool.pooled_bytes;
            if let Some(reason) = side.lost() {
                report.unreliable = Some(format!("the device was lost ({reason}); what it held is gone"));
            }
        }
        report
    }

    /// From now on the peak is that of what comes.
    pub fn restart_peak(&self) {
        self.inner().counts.restart_peak();
    }

    /// What the pool of host memory has done.
    pub fn host_pool(&self) -> HostPoolStatistics {
        self.inner().pool.statistics()
    }

    /// What was moved so far.
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

    /// Gives up memory that lies free, on both sides.
    pub fn trim(&self) {
        self.inner().pool.trim();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            side.device().pool().trim_to(0);
        }
    }

    // ---- the device

    /// Begins to compute what was asked for. Nobody has to call this before reading; somebody who uses a tensor's memory
    /// in GPU code of his own does.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn flush(&self) -> Result<(), TensorError> {
        self.side().map_or(Ok(()), |side| side.flush("flush"))
    }

    /// Waits until everything that was asked for is computed.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn finish(&self) -> Result<(), TensorError> {
        self.side().map_or(Ok(()), |side| side.finish("finish"))
    }

    /// Lets ops record into a recording that somebody else plays on the same device, as a pipeline does. Nothing can be
    /// read meanwhile, and no other thread may use this context.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn record_into<T>(
        &self,
        recording: &mut vramp_gpu::Recording,
        act: impl FnOnce() -> Result<T, TensorError>,
    ) -> Result<T, TensorError> {
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op: "record_into" }) };
        side.record_into("record_into", recording, act)
    }

    /// Moves all tensors to another device, or to the host: their values are kept, and ops run there from now on. Where
    /// the old device was lost, values that were nowhere else are gone, and every use of them says so. Says what became
    /// of them.
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

    pub(crate) fn is(&self, other: &Context) -> bool {
        std::ptr::eq(self.inner(), other.inner())
    }

    pub(crate) fn remember(&self, id: u64, storage: &Arc<Storage>) {
        lock(&self.inner().living).insert(id, Arc::downgrade(storage));
    }

    pub(crate) fn forget(&self, id: u64) {
        lock(&self.inner().living).remove(&id);
    }

    /// Says what is done to whoever wants to know; the words are only made for him.
    pub(crate) fn say(&self, words: impl FnOnce() -> String) {
        if let Some(debug) = &self.inner().debug {
            debug(&words());
        }
    }

    fn living(&self) -> Vec<Arc<Storage>> {
        lock(&self.inner().living).values().filter_map(Weak::upgrade).collect()
    }
}

/// What became of tensors that were moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    /// Memories whose values are kept.
    pub kept: usize,
    /// Memories whose values are gone.
    pub gone: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
