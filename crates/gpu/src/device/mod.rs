//! An open device: its adapter, memory, kernels and counters, shared by everything that uses the device.
//!
//! A [`Player`](crate::Player) plays recordings on the device. A device may have several players.
//!
//! Invariant: after a loss, every operation that needs the device returns an error, and none panics.

mod adapters;
mod choice;
mod reading;
mod requirements;

pub use adapters::{Adapter, AdapterKind, Backend, DeviceLimits};
pub use choice::{Choice, Chosen, LimitSet, OpenError};
pub use reading::{AdapterReading, Readout};
pub use requirements::{Prefer, Unmet};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use vramp_plan::Shader;

use crate::buffer::{AdoptError, Buffer, BufferError, DeviceMemory};
use crate::calls::{Calls, Counters, DriverCounters};
use crate::erased::Erased;
use crate::health::{DeviceEvent, Lost};
use crate::kernel::DeviceKernel;
use crate::memory::{LendError, Pool, PoolRules, SIZE_CLASS_BYTES};
use crate::pipelines::{CompileError, Pipelines};
use crate::present::{Blits, PresentError};
use crate::recording::{GpuCommand, HostSource, Recording};
use crate::texture::{TexelFormat, Texture, TextureError, TexturesHeld};
use crate::timing::StampPlaces;
use crate::warm_up;

/// Numbers devices, so that a device can refuse the buffers of other devices.
static LAST_DEVICE: AtomicU64 = AtomicU64::new(0);

/// An open device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    inner: Erased<DeviceInner>,
}

struct DeviceInner {
    id: u64,
    adapter: Adapter,
    why: String,
    limits: DeviceLimits,
    maps_directly: bool,
    /// What surfaces of windows are made from.
    origin: (wgpu::Instance, wgpu::Adapter),
    pool: Pool<DeviceMemory>,
    pipelines: Pipelines,
    /// Made when something is first presented.
    blits: OnceLock<Arc<Blits>>,
    calls: Calls,
    time_limit_ms: AtomicU64,
}

/// The default time limit of one submission, after which the device counts as hung.
const TIME_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("adapter", &self.inner.adapter).finish_non_exhaustive()
    }
}

impl Device {
    /// Starts to choose a device.
    pub fn choose() -> Choice {
        Choice::default()
    }

    fn opened(
        Chosen { adapter, why, .. }: Chosen,
        limits: DeviceLimits,
        maps_directly: bool,
        rules: PoolRules,
        origin: (wgpu::Instance, wgpu::Adapter),
        device: wgpu::Device,
        queue: wgpu::Queue,
    ) -> Self {
        let id = LAST_DEVICE.fetch_add(1, Ordering::Relaxed) + 1;
        let calls = Calls::new(device, queue);
        let pool = Pool::new(rules, calls.progress.clone());
        let pipelines = Pipelines::new(id);
        let time_limit_ms = AtomicU64::new(TIME_LIMIT.as_millis() as u64);
        let blits = OnceLock::new();
        let inner = DeviceInner {
            id,
            adapter,
            why,
            limits,
            maps_directly,
            origin,
            pool,
            pipelines,
            blits,
            calls,
            time_limit_ms,
        };
        Self { inner: Erased::new(inner) }
    }

    // ---- facts

    pub fn adapter(&self) -> &Adapter {
        &self.inner.adapter
    }

    /// Why this adapter was chosen, in words.
    pub fn why(&self) -> &str {
        &self.inner.why
    }

    /// The limits that the device was opened with, which may be lower than the adapter's limits.
    pub fn limits(&self) -> &DeviceLimits {
        &self.inner.limits
    }

    /// Whether a download can map the buffer itself instead of a copy, if no handle outside the recording exists.
    pub fn maps_directly(&self) -> bool {
        self.inner.maps_directly
    }

    /// Counts since the device was opened.
    pub fn counters(&self) -> Counters {
        self.inner.calls.counters()
    }

    /// wgpu's own counters; none on the web.
    pub fn driver_counters(&self) -> Option<DriverCounters> {
        self.inner.calls.driver_counters()
    }

    /// Where the device can write timestamps, which decides how precisely its work is timed.
    pub fn stamps(&self) -> StampPlaces {
        StampPlaces::of(self.inner.calls.device().features())
    }

    /// Nanoseconds since the device was opened, on the host's clock. Device times use this scale.
    pub fn now_ns(&self) -> u64 {
        self.inner.calls.times.now_ns()
    }

    /// Maximum time of one submission, after which the device counts as hung. Defaults to 10 s.
    pub fn time_limit(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.inner.time_limit_ms.load(Ordering::Relaxed))
    }

    /// Sets the time limit of submissions, for kernels that are prepared and players that are built from now on.
    pub fn set_time_limit(&self, limit: std::time::Duration) {
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        self.inner.time_limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    // ---- memory

    /// Lends a buffer of at least this size, with undefined content.
    pub fn lend(&self, bytes: u64, owner: &Arc<str>) -> Result<Buffer, LendError<BufferError>> {
        self.lend_patiently(bytes, owner, true)
    }

    /// As [`Device::lend`], for memory that the plan of a pipeline does not foresee ([`Pool::lend_unplanned`]).
    pub fn lend_unplanned(&self, bytes: u64, owner: &Arc<str>) -> Result<Buffer, LendError<BufferError>> {
        self.lend_patiently(bytes, owner, false)
    }

    fn lend_patiently(&self, bytes: u64, owner: &Arc<str>, is_planned: bool) -> Result<Buffer, LendError<BufferError>> {
        match self.try_lend(bytes, owner, is_planned) {
            Err(LendError::NotMade { problem: BufferError::OutOfMemory, .. }) => {
                // Free the pool's unused buffers and try again.
                self.inner.pool.trim_to(0);
                self.try_lend(bytes, owner, is_planned)
            }
            answer => answer,
        }
    }

    fn try_lend(&self, bytes: u64, owner: &Arc<str>, is_planned: bool) -> Result<Buffer, LendError<BufferError>> {
        let DeviceInner { calls, id, maps_directly, .. } = &*self.inner;
        let most_bytes = self.most_bytes();
        if bytes > most_bytes {
            let (owner, problem) = (Arc::clone(owner), BufferError::TooBig { most_bytes });
            return Err(LendError::NotMade { owner, needed_bytes: bytes, problem });
        }
        let make = |bytes| DeviceMemory::make(calls, *id, bytes, *maps_directly);
        let pool = &self.inner.pool;
        if is_planned { pool.lend(bytes, owner, make) } else { pool.lend_unplanned(bytes, owner, make) }
    }

    /// Adopts a buffer that the caller created on this device (with [`Device::raw`]). The pool's ledger lists the
    /// buffer until the last handle is dropped, but the pool neither counts the buffer against the budget nor destroys
    /// the buffer. The buffer must have the usages `STORAGE | COPY_SRC | COPY_DST`. Adopt a buffer once and clone the
    /// handle: if a buffer is adopted twice, vramp does not know that both handles are the same memory.
    ///
    /// The buffer must belong to this device. A wgpu buffer does not reveal its device, and every device here has its
    /// own wgpu instance, in which the number of a foreign buffer means some other buffer. The mistake is found only if
    /// that other buffer happens to be unsuitable, and only when a recording is played.
    pub fn adopt_buffer(&self, raw: &wgpu::Buffer, owner: &Arc<str>) -> Result<Buffer, AdoptError> {
        self.check()?;
        let memory = DeviceMemory::adopt(self.inner.id, self.most_bytes(), raw)?;
        Ok(self.inner.pool.adopt(memory, raw.size(), owner))
    }

    /// The largest buffer that kernels can bind.
    fn most_bytes(&self) -> u64 {
        let limits = &self.inner.limits;
        limits.buffer_bytes.min(limits.binding_bytes) / SIZE_CLASS_BYTES * SIZE_CLASS_BYTES
    }

    /// Whether both are the same open device.
    pub fn is_same(&self, other: &Device) -> bool {
        self.inner.id == other.inner.id
    }

    pub fn owns(&self, buffer: &Buffer) -> bool {
        buffer.is_of(self.inner.id)
    }

    /// Whether all buffers, kernels and textures of a recording belong to this device.
    pub fn owns_all<H: HostSource>(&self, recording: &Recording<Buffer, H>) -> bool {
        let id = self.inner.id;
        let is_own = |act: &GpuCommand<Buffer, H>| match act {
            GpuCommand::Dispatch { kernel, .. } => kernel.device == id,
            GpuCommand::ToTexture { to: texture, .. } | GpuCommand::FromTexture { from: texture, .. } => {
                texture.is_of(id)
            }
            _ => true,
        };
        recording.handles().all(|buffer| buffer.is_of(id)) && recording.commands().iter().all(is_own)
    }

    /// The pool that [`Device::lend`] uses: its ledger, statistics and trimming.
    pub fn pool(&self) -> &Pool<DeviceMemory> {
        &self.inner.pool
    }

    // ---- textures

    /// Creates a texture of zeros for kernels, draws and copies.
    pub fn make_texture(&self, format: TexelFormat, width: u32, height: u32) -> Result<Texture, TextureError> {
        Texture::make(&self.inner.calls, self.inner.id, self.inner.limits.texture_side, format, [width, height])
    }

    /// Adopts a texture that the caller created on this device. The texture must be two-dimensional, have a format of
    /// [`TexelFormat`], and have the usage `COPY_SRC`. vramp never destroys an adopted texture.
    pub fn adopt_texture(&self, raw: &wgpu::Texture) -> Result<Texture, TextureError> {
        Texture::adopt(self.inner.id, raw)
    }

    pub fn owns_texture(&self, texture: &Texture) -> bool {
        texture.is_of(self.inner.id)
    }

    /// Textures created here that are still held. At the end of a run, such textures are leaks.
    pub fn textures_held(&self) -> TexturesHeld {
        self.inner.calls.textures.held()
    }

    // ---- kernels

    /// Compiles a shader and runs it once on scratch memory, because drivers finish compilation at the first dispatch
    /// (14 to 60 ms on llvmpipe). A shader with the same content as a compiled shader is neither compiled nor run
    /// again. Blocks; call this before the first frame or on another thread.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn prepare(&self, shader: &Shader) -> Result<DeviceKernel, CompileError> {
        crate::calls::now(self.prepare_async(shader))
    }

    /// Like `prepare`, for callers that must not block. On the web, the kernel's first run may not have finished yet.
    pub async fn prepare_async(&self, shader: &Shader) -> Result<DeviceKernel, CompileError> {
        let DeviceInner { calls, limits, pipelines, .. } = &*self.inner;
        let (kernel, is_new) = pipelines.compile(calls, limits, shader).await?;
        if let Some(compiled) = pipelines.find(kernel.id).filter(|_| is_new) {
            warm_up::run_once(self, &kernel, &compiled)?;
        }
        Ok(kernel)
    }

    /// Whether this device compiled the kernel.
    pub fn owns_kernel(&self, kernel: &DeviceKernel) -> bool {
        kernel.device == self.inner.id
    }

    /// Number of compiled kernels.
    pub fn kernels(&self) -> usize {
        self.inner.pipelines.len()
    }

    /// The shaders of the compiled kernels, in the order in which they were compiled. Shaders with the same content are
    /// listed once, under the name of the first.
    pub fn shaders(&self) -> Vec<Shader> {
        self.inner.pipelines.shaders()
    }

    /// Drops the compiled kernels that have no handle outside the cache, and returns the number of dropped kernels.
    pub fn forget_unused_kernels(&self) -> usize {
        self.inner.pipelines.forget_unused()
    }

    // ---- health

    /// Updates the progress of the device, without waiting.
    pub fn poll(&self) -> Result<(), Lost> {
        self.inner.calls.poll()
    }

    /// Fails if the device is lost.
    pub fn check(&self) -> Result<(), Lost> {
        self.inner.calls.health.check()
    }

    /// Fails if a submit call has lasted longer than the time limit. Some drivers run kernels inside the submit call,
    /// so call this from a thread that does not play.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn check_overdue(&self) -> Result<(), crate::PlayError> {
        let Some((waited, kernels, first)) = self.inner.calls.stuck_for() else { return Ok(()) };
        // `warm_up` reports an overdue first run a little earlier.
        let most = self.time_limit() + if first { 2 * warm_up::COMPILING } else { std::time::Duration::ZERO };
        if waited >= most { Err(crate::PlayError::overdue(&kernels, waited)) } else { Ok(()) }
    }

    /// The events that the device reported since the last call, and the number of events that did not fit.
    pub fn take_events(&self) -> (Vec<DeviceEvent>, u64) {
        self.inner.calls.health.take()
    }

    /// Destroys the device. Everything on the device is lost, and later operations fail with [`Lost`].
    pub fn destroy(&self) {
        self.inner.calls.device().destroy();
        // wgpu reports the loss only after the queue is empty, so the loss is recorded here at once.
        self.inner.calls.health.lose("it was destroyed".into());
    }

    /// Declares the device lost and leaks the device: dropping a device that hangs would hang as well.
    pub fn abandon(self) {
        self.inner.calls.abandon_device("it was abandoned".into());
        std::mem::forget(self);
    }

    /// wgpu's own device, for a user's own GPU code. Direct calls are not counted.
    pub fn raw(&self) -> &wgpu::Device {
        self.inner.calls.device()
    }

    /// wgpu's own queue; direct calls are not counted.
    pub fn raw_queue(&self) -> &wgpu::Queue {
        self.inner.calls.queue()
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// The instance and the adapter that the device was opened from.
    pub(crate) fn origin(&self) -> (&wgpu::Instance, &wgpu::Adapter) {
        let (instance, adapter) = &self.inner.origin;
        (instance, adapter)
    }

    pub(crate) fn calls(&self) -> &Calls {
        &self.inner.calls
    }

    /// The pipelines that draw pictures.
    pub(crate) fn blits(&self) -> Result<Arc<Blits>, PresentError> {
        if let Some(blits) = self.inner.blits.get() {
            return Ok(Arc::clone(blits));
        }
        self.check()?;
        let made = Arc::new(Blits::new(&self.inner.calls)?);
        Ok(Arc::clone(self.inner.blits.get_or_init(|| made)))
    }

    pub(crate) fn pipelines(&self) -> &Pipelines {
        &self.inner.pipelines
    }
}
