//! An open device: its facts, its memory, its kernels and its counters.
//!
//! Owns what everybody who works with the device shares.
//! Does not play recordings: a [`Player`](crate::Player) does, one per lane.
//!
//! Always: once the device is lost, everything that needs it says so and nothing panics.

mod adapters;
mod choice;
mod reading;
mod wish;

pub use adapters::{Adapter, AdapterKind, Backend, DeviceLimits};
pub use choice::{Choice, Chosen, LimitSet, OpenError};
pub use reading::{AdapterReading, Readout};
pub use wish::{Prefer, Unmet};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use vramp_plan::Shader;

use crate::buffer::{AdoptError, Buffer, BufferError, DeviceMemory};
use crate::calls::{Calls, Counters, DriverCounters};
use crate::health::{DeviceEvent, Lost};
use crate::kernel::DeviceKernel;
use crate::memory::{LendError, Pool, PoolRules, SIZE_CLASS_BYTES};
use crate::pipelines::{CompileError, Pipelines};
use crate::texture::{TexelFormat, Texture, TextureError, TexturesHeld};
use crate::timing::StampPlaces;
use crate::warm_up;

/// Tells devices apart, so that a buffer of one is refused by another.
static LAST_DEVICE: AtomicU64 = AtomicU64::new(0);

/// An open device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    inner: Arc<DeviceInner>,
}

struct DeviceInner {
    id: u64,
    adapter: Adapter,
    why: String,
    limits: DeviceLimits,
    maps_directly: bool,
    pool: Pool<DeviceMemory>,
    pipelines: Pipelines,
    calls: Calls,
    /// Milliseconds that one submission may take.
    time_limit_ms: AtomicU64,
}

/// How long one submission may take before the device counts as hung, unless told.
const TIME_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("adapter", &self.inner.adapter).finish_non_exhaustive()
    }
}

impl Device {
    /// Starts to choose a device; `open` ends it.
    pub fn choose() -> Choice {
        Choice::default()
    }

    fn opened(
        Chosen { adapter, why, .. }: Chosen,
        limits: DeviceLimits,
        maps_directly: bool,
        rules: PoolRules,
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Self {
        let id = LAST_DEVICE.fetch_add(1, Ordering::Relaxed) + 1;
        let calls = Calls::new(device, queue);
        let pool = Pool::new(rules, calls.progress.clone());
        let pipelines = Pipelines::new(id);
        let time_limit_ms = AtomicU64::new(TIME_LIMIT.as_millis() as u64);
        let inner = DeviceInner { id, adapter, why, limits, maps_directly, pool, pipelines, calls, time_limit_ms };
        Self { inner: Arc::new(inner) }
    }

    // ---- facts

    /// Which adapter it is.
    pub fn adapter(&self) -> &Adapter {
        &self.inner.adapter
    }

    /// Why it was taken and no other, in words.
    pub fn why(&self) -> &str {
        &self.inner.why
    }

    /// What it was opened with, which may be less than the adapter could.
    pub fn limits(&self) -> &DeviceLimits {
        &self.inner.limits
    }

    /// Whether a download of a buffer that nobody else holds maps the buffer itself, without a copy.
    pub fn maps_directly(&self) -> bool {
        self.inner.maps_directly
    }

    /// What was asked of it since it was opened.
    pub fn counters(&self) -> Counters {
        self.inner.calls.counters()
    }

    /// What wgpu counts by itself; none where it does not.
    pub fn driver_counters(&self) -> Option<DriverCounters> {
        self.inner.calls.driver_counters()
    }

    /// Where its clock can be stamped, and so how exactly its work can be timed.
    pub fn stamps(&self) -> StampPlaces {
        StampPlaces::of(self.inner.calls.device().features())
    }

    /// Nanoseconds since it was opened, on the host's clock: what device times are given in.
    pub fn now_ns(&self) -> u64 {
        self.inner.calls.times.now_ns()
    }

    /// How long one submission may take before the device counts as hung; 10 s unless told.
    pub fn time_limit(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.inner.time_limit_ms.load(Ordering::Relaxed))
    }

    /// Says how long one submission may take. It holds for kernels that are prepared and players that are made from now
    /// on.
    pub fn set_time_limit(&self, limit: std::time::Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        self.inner.time_limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    // ---- memory

    /// Lends a buffer of at least this size. Its content is whatever its last holder left there.
    pub fn lend(&self, bytes: u64, owner: &Arc<str>) -> Result<Buffer, LendError<BufferError>> {
        match self.try_lend(bytes, owner) {
            Err(LendError::NotMade { problem: BufferError::OutOfMemory, .. }) => {
                // What lies free may be what is missing.
                self.inner.pool.trim_to(0);
                self.try_lend(bytes, owner)
            }
            answer => answer,
        }
    }

    fn try_lend(&self, bytes: u64, owner: &Arc<str>) -> Result<Buffer, LendError<BufferError>> {
        let DeviceInner { calls, id, maps_directly, .. } = &*self.inner;
        let most_bytes = self.most_bytes();
        if bytes > most_bytes {
            let (owner, problem) = (Arc::clone(owner), BufferError::TooBig { most_bytes });
            return Err(LendError::NotMade { owner, needed_bytes: bytes, problem });
        }
        self.inner.pool.lend(bytes, owner, |bytes| DeviceMemory::make(calls, *id, bytes, *maps_directly))
    }

    /// Takes in a buffer that somebody else made on this device (with [`Device::raw`]), which stays theirs: it is neither
    /// in the budget nor destroyed, only let go with its last handle, and until then a row of the pool's ledger. It must
    /// allow what memory here is used for (`STORAGE | COPY_SRC | COPY_DST`), and is to be taken in once and cloned,
    /// since a second taking is not known here to be the same memory.
    ///
    /// It must be of this device. Buffers do not tell whose they are, and every device here has a wgpu instance of its own,
    /// for which the number of a buffer of another instance is that of some other buffer: such a mistake is refused when
    /// it is played, if that buffer happens not to fit, and not found otherwise.
    pub fn adopt_buffer(&self, raw: &wgpu::Buffer, owner: &Arc<str>) -> Result<Buffer, AdoptError> {
        self.check()?;
        let memory = DeviceMemory::adopt(self.inner.id, self.most_bytes(), raw)?;
        Ok(self.inner.pool.adopt(memory, raw.size(), owner))
    }

    /// The largest buffer that kernels can see.
    fn most_bytes(&self) -> u64 {
        let limits = &self.inner.limits;
        limits.buffer_bytes.min(limits.binding_bytes) / SIZE_CLASS_BYTES * SIZE_CLASS_BYTES
    }

    /// Whether a buffer is of this device.
    pub fn owns(&self, buffer: &Buffer) -> bool {
        buffer.is_of(self.inner.id)
    }

    /// The pool behind [`Device::lend`]: its ledger, statistics and trimming.
    pub fn pool(&self) -> &Pool<DeviceMemory> {
        &self.inner.pool
    }

    // ---- textures

    /// Makes a texture of zeros, for kernels, draws and copies alike.
    pub fn make_texture(&self, format: TexelFormat, width: u32, height: u32) -> Result<Texture, TextureError> {
        Texture::make(&self.inner.calls, self.inner.id, self.inner.limits.texture_side, format, [width, height])
    }

    /// Takes in a texture that somebody else made on this device, which stays theirs. It must be flat, of a format that
    /// is known here, and allow being copied from.
    pub fn adopt_texture(&self, raw: &wgpu::Texture) -> Result<Texture, TextureError> {
        Texture::adopt(self.inner.id, raw)
    }

    /// Whether a texture is of this device.
    pub fn owns_texture(&self, texture: &Texture) -> bool {
        texture.is_of(self.inner.id)
    }

    /// The textures made here that somebody holds: at the end of a run, what was forgotten.
    pub fn textures_held(&self) -> TexturesHeld {
        self.inner.calls.textures.held()
    }

    // ---- kernels

    /// Compiles a shader, unless one of the same content was, and runs it once on scratch memory, since drivers
    /// compile for real at the first dispatch (14 to 60 ms on llvmpipe). Blocks; meant for before the first frame, or
    /// for another thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn prepare(&self, shader: &Shader) -> Result<DeviceKernel, CompileError> {
        crate::calls::now(self.prepare_async(shader))
    }

    /// As `prepare`, for places that may not block: the kernel is ready, its first run is under way.
    pub async fn prepare_async(&self, shader: &Shader) -> Result<DeviceKernel, CompileError> {
        let DeviceInner { calls, limits, pipelines, .. } = &*self.inner;
        let (kernel, is_new) = pipelines.compile(calls, limits, shader).await?;
        if let Some(compiled) = pipelines.find(kernel.id).filter(|_| is_new) {
            warm_up::run_once(self, &kernel, &compiled)?;
        }
        Ok(kernel)
    }

    /// Kernels that are compiled.
    pub fn kernels(&self) -> usize {
        self.inner.pipelines.len()
    }

    /// Gives up the kernels of which nobody holds a handle, and says how many.
    pub fn forget_unused_kernels(&self) -> usize {
        self.inner.pipelines.forget_unused()
    }

    // ---- health

    /// Hears what the device has finished, without waiting.
    pub fn poll(&self) -> Result<(), Lost> {
        self.inner.calls.poll()
    }

    /// An error unless the device is there.
    pub fn check(&self) -> Result<(), Lost> {
        self.inner.calls.health.check()
    }

    /// Complains where the driver has not come back from a submission for longer than one may take. For a thread that does
    /// not play: some drivers run kernels in the very call that submits them.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn check_overdue(&self) -> Result<(), crate::PlayError> {
        let Some((waited, kernels, first)) = self.inner.calls.stuck_for() else { return Ok(()) };
        // Whoever waits for a first run is told by it, a little earlier.
        let most = self.time_limit() + if first { 2 * warm_up::COMPILING } else { std::time::Duration::ZERO };
        if waited >= most { Err(crate::PlayError::overdue(&kernels, waited)) } else { Ok(()) }
    }

    /// What the device reported by itself since the last call, and how many events more than are kept.
    pub fn take_events(&self) -> (Vec<DeviceEvent>, u64) {
        self.inner.calls.health.take()
    }

    /// Ends the device: everything on it is lost, and whoever uses it hears that.
    pub fn destroy(&self) {
        self.inner.calls.device().destroy();
        // wgpu tells of the loss once the queue is empty, which nobody waits for here.
        self.inner.calls.health.lose("it was destroyed".into());
    }

    /// Leaves the device behind without freeing it: dropping one that hangs would hang as well.
    pub fn abandon(self) {
        self.inner.calls.leave_behind("it was abandoned".into());
        std::mem::forget(self);
    }

    /// wgpu's own device, for a user's own GPU code. What is asked of it directly is not counted.
    pub fn raw(&self) -> &wgpu::Device {
        self.inner.calls.device()
    }

    /// wgpu's own queue, likewise.
    pub fn raw_queue(&self) -> &wgpu::Queue {
        self.inner.calls.queue()
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.inner.calls
    }

    pub(crate) fn pipelines(&self) -> &Pipelines {
        &self.inner.pipelines
    }
}
