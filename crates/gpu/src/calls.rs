//! Every call into wgpu that costs time or memory, and the counters of these calls.
//!
//! This module holds wgpu's device and queue, and turns wgpu's errors into values. Other modules decide what to create
//! and submit.
//!
//! Invariant: `create_buffer`, `create_texture`, `create_bind_group`, `create_compute_pipeline`,
//! `create_render_pipeline`, `begin_compute_pass`, `dispatch_workgroups`, `submit` and `map_async` are called in this
//! file only (`tests/one_place.rs`).
//!
//! A kernel without an end shows in one of two ways. Most drivers run kernels while the host continues, so the player
//! sees that its oldest submission is overdue. Mesa 25's software driver runs kernels inside the submit call, so
//! [`Calls::stuck_for`] tells another thread how long that call has lasted. A device that hangs counts as lost, and its
//! handles are leaked on purpose: freeing the handles would wait for the device.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::health::{DeviceEvent, Health, Lost};
use crate::memory::{SubmissionProgress, SubmissionTimes};

/// Counts since the device was opened. The difference between two readings gives the counts of the time between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    pub uploads: u64,
    pub downloads: u64,
    /// Bytes of uploads and downloads, without parameters.
    pub transfer_bytes: u64,
    pub dispatches: u64,
    pub passes: u64,
    pub submits: u64,
    /// Bind groups created.
    pub bind_groups: u64,
    /// Buffers and textures created.
    pub gpu_allocs: u64,
    /// Pipelines compiled.
    pub compiles: u64,
    /// Mappings of buffers requested.
    pub maps: u64,
    /// Drawings onto a window or a user's texture, each a submission of its own.
    pub presents: u64,
    /// Maximum number of unfinished submissions of one player.
    pub max_in_flight: u64,
}

impl Counters {
    /// Counts since an earlier reading of the same device.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        self.with(before, u64::saturating_sub, |now, _| now)
    }

    /// The counts of two devices together.
    #[must_use]
    pub fn and(&self, other: &Counters) -> Counters {
        self.with(other, |one, two| one + two, u64::max)
    }

    fn with(&self, other: &Counters, count: fn(u64, u64) -> u64, most: fn(u64, u64) -> u64) -> Counters {
        Counters {
            uploads: count(self.uploads, other.uploads),
            downloads: count(self.downloads, other.downloads),
            transfer_bytes: count(self.transfer_bytes, other.transfer_bytes),
            dispatches: count(self.dispatches, other.dispatches),
            passes: count(self.passes, other.passes),
            submits: count(self.submits, other.submits),
            bind_groups: count(self.bind_groups, other.bind_groups),
            gpu_allocs: count(self.gpu_allocs, other.gpu_allocs),
            compiles: count(self.compiles, other.compiles),
            maps: count(self.maps, other.maps),
            presents: count(self.presents, other.presents),
            max_in_flight: most(self.max_in_flight, other.max_in_flight),
        }
    }
}

/// wgpu's own counters, which count the objects that exist now, not all objects that were created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriverCounters {
    pub buffers: i64,
    /// Total size of the buffers that exist.
    pub buffer_bytes: i64,
    pub bind_groups: i64,
    pub compute_pipelines: i64,
    /// Allocations of device memory; several buffers may share one allocation.
    pub memory_allocations: i64,
}

/// The first kernels of a submission. If the submission does not end, the error names these kernels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kernels(pub(crate) [Option<Arc<str>>; 4]);

impl std::fmt::Display for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().flatten().map(|name| &**name).collect();
        f.write_str(&if names.is_empty() { "a transfer".to_owned() } else { names.join(", ") })
    }
}

/// Why wgpu refused an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    OutOfMemory,
    Refused(String),
}

/// Progress of the mappings of a slot.
#[derive(Debug, Default)]
pub(crate) struct Mapping {
    pending: AtomicUsize,
    failed: AtomicBool,
}

impl Mapping {
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.load(Ordering::Acquire) == 0
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

#[derive(Debug, Default)]
struct CallTally {
    uploads: AtomicU64,
    downloads: AtomicU64,
    transfer_bytes: AtomicU64,
    dispatches: AtomicU64,
    passes: AtomicU64,
    submits: AtomicU64,
    bind_groups: AtomicU64,
    gpu_allocs: AtomicU64,
    compiles: AtomicU64,
    maps: AtomicU64,
    presents: AtomicU64,
    max_in_flight: AtomicU64,
}

/// A submit call that a thread is executing.
#[cfg(not(target_arch = "wasm32"))]
struct Inside {
    since: std::time::Instant,
    kernels: Kernels,
    first: bool,
}

pub(crate) struct Calls {
    device: wgpu::Device,
    queue: wgpu::Queue,
    tally: CallTally,
    submitting: Mutex<()>,
    /// The submit call in progress, if any, and the time at which the call began. Some drivers run kernels inside that
    /// call.
    #[cfg(not(target_arch = "wasm32"))]
    inside: Mutex<Option<Inside>>,
    pub(crate) progress: SubmissionProgress,
    pub(crate) times: Arc<SubmissionTimes>,
    pub(crate) health: Arc<Health>,
    pub(crate) textures: Arc<crate::texture::TextureTally>,
}

impl Calls {
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let health = Arc::new(Health::default());
        let events = Arc::clone(&health);
        device.on_uncaptured_error(Arc::new(move |error| {
            events.note(match refusal(&error) {
                Refusal::OutOfMemory => DeviceEvent::OutOfMemory,
                Refusal::Refused(problem) => DeviceEvent::Refused { problem },
            });
        }));
        let events = Arc::clone(&health);
        device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Destroyed => "it was destroyed".to_owned(),
                wgpu::DeviceLostReason::Unknown if message.is_empty() => "the driver gives no reason".to_owned(),
                wgpu::DeviceLostReason::Unknown => message,
            };
            events.lose(reason);
        });
        Self {
            device,
            queue,
            tally: CallTally::default(),
            submitting: Mutex::new(()),
            #[cfg(not(target_arch = "wasm32"))]
            inside: Mutex::new(None),
            progress: SubmissionProgress::default(),
            times: Arc::default(),
            health,
            textures: Arc::default(),
        }
    }

    // ---- counted

    pub(crate) fn create_buffer(
        &self,
        label: &str,
        bytes: u64,
        usage: wgpu::BufferUsages,
        mapped: bool,
    ) -> Result<wgpu::Buffer, Refusal> {
        add(&self.tally.gpu_allocs, 1);
        let wanted = wgpu::BufferDescriptor { label: Some(label), size: bytes, usage, mapped_at_creation: mapped };
        self.scoped(|| self.device.create_buffer(&wanted))
    }

    pub(crate) fn create_texture(&self, wanted: &wgpu::TextureDescriptor<'_>) -> Result<wgpu::Texture, Refusal> {
        add(&self.tally.gpu_allocs, 1);
        self.scoped(|| self.device.create_texture(wanted))
    }

    pub(crate) fn create_bind_group(
        &self,
        layout: &wgpu::BindGroupLayout,
        entries: &[wgpu::BindGroupEntry<'_>],
    ) -> Result<wgpu::BindGroup, Refusal> {
        add(&self.tally.bind_groups, 1);
        let wanted = wgpu::BindGroupDescriptor { label: None, layout, entries };
        self.scoped(|| self.device.create_bind_group(&wanted))
    }

    pub(crate) fn create_pipeline(
        &self,
        label: &str,
        layout: &wgpu::PipelineLayout,
        module: &wgpu::ShaderModule,
    ) -> wgpu::ComputePipeline {
        add(&self.tally.compiles, 1);
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(layout),
            module,
            // A kernel's text has exactly one entry point, so the name of the entry point is not needed.
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
    }

    pub(crate) fn create_render_pipeline(&self, wanted: &wgpu::RenderPipelineDescriptor<'_>) -> wgpu::RenderPipeline {
        add(&self.tally.compiles, 1);
        self.device.create_render_pipeline(wanted)
    }

    pub(crate) fn begin_pass<'a>(
        &self,
        encoder: &'a mut wgpu::CommandEncoder,
        timestamp_writes: Option<wgpu::ComputePassTimestampWrites<'_>>,
    ) -> wgpu::ComputePass<'a> {
        add(&self.tally.passes, 1);
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes })
    }

    pub(crate) fn dispatch(&self, pass: &mut wgpu::ComputePass<'_>, [x, y, z]: [u32; 3]) {
        add(&self.tally.dispatches, 1);
        pass.dispatch_workgroups(x, y, z);
    }

    /// Submits, and returns the submission's number. When the submission has finished, [`SubmissionProgress`] has
    /// reached this number. If the driver does not return, the error names `kernels`. `first` means that the kernels
    /// run for the first time, which may take a little longer.
    pub(crate) fn submit(
        &self,
        encoder: wgpu::CommandEncoder,
        kernels: Kernels,
        first: bool,
    ) -> (u64, wgpu::SubmissionIndex) {
        self.submit_as(&self.tally.submits, encoder, kernels, first)
    }

    /// Submits a drawing onto a window or a user's texture, and returns the submission's number.
    pub(crate) fn submit_present(&self, encoder: wgpu::CommandEncoder, kernels: Kernels) -> u64 {
        self.submit_as(&self.tally.presents, encoder, kernels, false).0
    }

    fn submit_as(
        &self,
        counter: &AtomicU64,
        encoder: wgpu::CommandEncoder,
        kernels: Kernels,
        first: bool,
    ) -> (u64, wgpu::SubmissionIndex) {
        let commands = encoder.finish();
        // Only one thread submits at a time, so that numbers increase in the queue's order.
        let _order = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        add(counter, 1);
        let number = self.progress.submit();
        #[cfg(not(target_arch = "wasm32"))]
        {
            *self.inside() = Some(Inside { since: std::time::Instant::now(), kernels, first });
        }
        #[cfg(target_arch = "wasm32")]
        let _ = (kernels, first);
        self.times.submit(number);
        let index = self.queue.submit([commands]);
        #[cfg(not(target_arch = "wasm32"))]
        {
            *self.inside() = None;
        }
        let (progress, times) = (self.progress.clone(), Arc::clone(&self.times));
        self.queue.on_submitted_work_done(move || {
            times.finish(number);
            progress.finish(number);
        });
        (number, index)
    }

    /// Runs `act` while no thread submits.
    pub(crate) fn between_submits<R>(&self, act: impl FnOnce() -> R) -> R {
        let _order = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        act()
    }

    /// If a thread is inside the submit call: the time since the call began, the submitted kernels, and whether these
    /// kernels run for the first time.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn stuck_for(&self) -> Option<(std::time::Duration, Kernels, bool)> {
        self.inside().as_ref().map(|inside| (inside.since.elapsed(), inside.kernels.clone(), inside.first))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn inside(&self) -> std::sync::MutexGuard<'_, Option<Inside>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a mapping. `mapping` is updated during a later submit, poll or wait.
    pub(crate) fn map(&self, buffer: &wgpu::Buffer, mode: wgpu::MapMode, bytes: u64, mapping: &Arc<Mapping>) {
        add(&self.tally.maps, 1);
        mapping.pending.fetch_add(1, Ordering::AcqRel);
        let mapping = Arc::clone(mapping);
        buffer.map_async(mode, ..bytes, move |answer| {
            if answer.is_err() {
                mapping.failed.store(true, Ordering::Release);
            }
            mapping.pending.fetch_sub(1, Ordering::AcqRel);
        });
    }

    pub(crate) fn count_upload(&self, bytes: u64) {
        add(&self.tally.uploads, 1);
        add(&self.tally.transfer_bytes, bytes);
    }

    pub(crate) fn count_download(&self, bytes: u64) {
        add(&self.tally.downloads, 1);
        add(&self.tally.transfer_bytes, bytes);
    }

    pub(crate) fn count_in_flight(&self, now: u64) {
        self.tally.max_in_flight.fetch_max(now, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> Counters {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let tally = &self.tally;
        Counters {
            uploads: read(&tally.uploads),
            downloads: read(&tally.downloads),
            transfer_bytes: read(&tally.transfer_bytes),
            dispatches: read(&tally.dispatches),
            passes: read(&tally.passes),
            submits: read(&tally.submits),
            bind_groups: read(&tally.bind_groups),
            gpu_allocs: read(&tally.gpu_allocs),
            compiles: read(&tally.compiles),
            maps: read(&tally.maps),
            presents: read(&tally.presents),
            max_in_flight: read(&tally.max_in_flight),
        }
    }

    /// wgpu's own counters; none on the web.
    pub(crate) fn driver_counters(&self) -> Option<DriverCounters> {
        if cfg!(target_arch = "wasm32") {
            return None;
        }
        let hal = self.device.get_internal_counters().hal;
        let wide = |count: isize| i64::try_from(count).unwrap_or(i64::MAX);
        Some(DriverCounters {
            buffers: wide(hal.buffers.read()),
            buffer_bytes: wide(hal.buffer_memory.read()),
            bind_groups: wide(hal.bind_groups.read()),
            compute_pipelines: wide(hal.compute_pipelines.read()),
            memory_allocations: wide(hal.memory_allocations.read()),
        })
    }

    // ---- not counted: these calls create nothing that lasts, or are made only during preparation

    pub(crate) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    pub(crate) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// A set of `count` timestamp queries.
    pub(crate) fn query_set(&self, count: u32) -> Result<wgpu::QuerySet, Refusal> {
        let wanted = wgpu::QuerySetDescriptor { label: Some("vramp"), ty: wgpu::QueryType::Timestamp, count };
        self.scoped(|| self.device.create_query_set(&wanted))
    }

    /// Runs the callbacks of finished work, without waiting.
    pub(crate) fn poll(&self) -> Result<(), Lost> {
        self.health.check()?;
        // On the web the browser runs the callbacks.
        #[cfg(not(target_arch = "wasm32"))]
        self.poll_as(wgpu::PollType::Poll)?;
        Ok(())
    }

    /// Waits for a submission, at most for `timeout`. Returns whether the submission has finished.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn wait(&self, index: wgpu::SubmissionIndex, timeout: std::time::Duration) -> Result<bool, Lost> {
        self.health.check()?;
        self.poll_as(wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(timeout) })
    }

    /// Waits until everything that was submitted has ended, at most for `timeout`, also on a lost device: what a
    /// submission uses can be freed only then.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn settle(&self, timeout: std::time::Duration) {
        // A failure is a loss, which is recorded.
        let _ = self.poll_as(wgpu::PollType::Wait { submission_index: None, timeout: Some(timeout) });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn poll_as(&self, how: wgpu::PollType) -> Result<bool, Lost> {
        // wgpu panics if the driver reports a device loss during a poll. vramp records the loss and does not use the
        // device again.
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.device.poll(how)));
        match polled {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(_)) => Ok(false),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
                self.health.lose(format!("the driver failed during a poll: {words}"));
                self.health.check().map(|()| false)
            }
        }
    }

    /// Declares the device lost and leaks its handles, because freeing a device that hangs would never return.
    pub(crate) fn abandon_device(&self, reason: String) {
        self.health.lose(reason);
        crate::health::note_abandoned();
        std::mem::forget((self.device.clone(), self.queue.clone()));
    }

    /// Runs `act` and returns wgpu's error, if any.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn scoped<R>(&self, act: impl FnOnce() -> R) -> Result<R, Refusal> {
        // The innermost scope receives errors first; each scope receives only its own kind of error.
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = act();
        let errors = [now(validation.pop()), now(internal.pop()), now(memory.pop())];
        match errors.iter().flatten().next() {
            Some(error) => Err(refusal(error)),
            None => Ok(made),
        }
    }

    /// On the web errors arrive later, as [`DeviceEvent`]s.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn scoped<R>(&self, act: impl FnOnce() -> R) -> Result<R, Refusal> {
        Ok(act())
    }
}

/// Polls a future to its end. wgpu's native futures are ready at once.
#[cfg(not(target_arch = "wasm32"))]
pub fn now<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::yield_now();
    }
}

pub(crate) fn refusal(error: &wgpu::Error) -> Refusal {
    match error {
        wgpu::Error::OutOfMemory { .. } => Refusal::OutOfMemory,
        wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
            // wgpu formats the error as a tree, one line per level.
            let lines = description.lines().map(str::trim).filter(|line| !line.is_empty());
            Refusal::Refused(lines.collect::<Vec<_>>().join(" "))
        }
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
