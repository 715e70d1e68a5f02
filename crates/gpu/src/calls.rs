//! Every call into the device that costs something, each in one place, each counted.
//!
//! Owns wgpu's device and queue, the counters, and the turning of wgpu's errors into values.
//! Does not decide what to make or submit.
//!
//! Always: `create_buffer`, `create_texture`, `create_bind_group`, `create_compute_pipeline`, `begin_compute_pass`,
//! `dispatch_workgroups`, `submit` and `map_async` stand in this file only (`tests/one_place.rs`), beside their counter.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::health::{DeviceEvent, Health, Lost};
use crate::memory::{SubmissionProgress, SubmissionTimes};

/// What was asked of a device since it was opened. Differences between two readings are per-frame figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transfers to the device.
    pub uploads: u64,
    /// Transfers from the device.
    pub downloads: u64,
    /// Bytes of both, without parameters.
    pub transfer_bytes: u64,
    /// Kernels that were run.
    pub dispatches: u64,
    /// Compute passes.
    pub passes: u64,
    /// Submits.
    pub submits: u64,
    /// Bind groups that were made.
    pub bind_groups: u64,
    /// Buffers and textures that were made.
    pub gpu_allocs: u64,
    /// Pipelines that were compiled.
    pub compiles: u64,
    /// Buffers that were mapped.
    pub maps: u64,
    /// The most submissions of one player that were unfinished at once.
    pub max_in_flight: u64,
}

impl Counters {
    /// What was asked since an earlier reading of the same device.
    #[must_use]
    pub fn since(&self, before: &Counters) -> Counters {
        self.with(before, u64::saturating_sub, |now, _| now)
    }

    /// What was asked of two devices together.
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
            max_in_flight: most(self.max_in_flight, other.max_in_flight),
        }
    }
}

/// What wgpu itself counts: things that exist now, not things that were made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DriverCounters {
    /// Buffers that exist.
    pub buffers: i64,
    /// Bytes they take.
    pub buffer_bytes: i64,
    /// Bind groups that exist.
    pub bind_groups: i64,
    /// Compute pipelines that exist.
    pub compute_pipelines: i64,
    /// Allocations of device memory that exist; several buffers may share one.
    pub memory_allocations: i64,
}

/// The first kernels of a submission, to be named if it does not end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kernels(pub(crate) [Option<Arc<str>>; 4]);

impl std::fmt::Display for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().flatten().map(|name| &**name).collect();
        f.write_str(&if names.is_empty() { "a transfer".to_owned() } else { names.join(", ") })
    }
}

/// Why wgpu did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    OutOfMemory,
    Refused(String),
}

/// How far the mappings of a slot have come.
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
    max_in_flight: AtomicU64,
}

/// A submission that a thread is in.
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
    /// The submission that a thread is in right now, and since when: some drivers run kernels in that very call.
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
        let heard = Arc::clone(&health);
        device.on_uncaptured_error(Arc::new(move |error| {
            heard.note(match refusal(&error) {
                Refusal::OutOfMemory => DeviceEvent::OutOfMemory,
                Refusal::Refused(problem) => DeviceEvent::Refused { problem },
            });
        }));
        let heard = Arc::clone(&health);
        device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Destroyed => "it was destroyed".to_owned(),
                wgpu::DeviceLostReason::Unknown if message.is_empty() => "the driver gives no reason".to_owned(),
                wgpu::DeviceLostReason::Unknown => message,
            };
            heard.lose(reason);
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
            // Its only one, whatever it is called.
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        })
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

    /// Submits and gives the submission's number, which [`SubmissionProgress`] hears of once it has finished. `kernels` are whom
    /// to name if the driver does not come back; where this is their `first` run, it may take a little longer.
    pub(crate) fn submit(
        &self,
        encoder: wgpu::CommandEncoder,
        kernels: Kernels,
        first: bool,
    ) -> (u64, wgpu::SubmissionIndex) {
        let commands = encoder.finish();
        // One at a time, so that numbers grow in the queue's order.
        let _order = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        add(&self.tally.submits, 1);
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

    /// How long a thread has been inside a submission, of which kernels, and whether it is their first run.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn stuck_for(&self) -> Option<(std::time::Duration, Kernels, bool)> {
        self.inside().as_ref().map(|inside| (inside.since.elapsed(), inside.kernels.clone(), inside.first))
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn inside(&self) -> std::sync::MutexGuard<'_, Option<Inside>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a mapping; `mapping` hears of it during a later submit, poll or wait.
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
            max_in_flight: read(&tally.max_in_flight),
        }
    }

    /// What wgpu counts, or none where it does not.
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

    // ---- not counted: they make nothing that lasts, or only while preparing

    pub(crate) fn device(&self) -> &wgpu::Device {
        &self.device
    }

    pub(crate) fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Room for this many stamps of the device's clock.
    pub(crate) fn query_set(&self, count: u32) -> Result<wgpu::QuerySet, Refusal> {
        let wanted = wgpu::QuerySetDescriptor { label: Some("vramp"), ty: wgpu::QueryType::Timestamp, count };
        self.scoped(|| self.device.create_query_set(&wanted))
    }

    /// Hears what has finished, without waiting.
    pub(crate) fn poll(&self) -> Result<(), Lost> {
        self.health.check()?;
        // On the web the browser calls back by itself.
        #[cfg(not(target_arch = "wasm32"))]
        self.poll_as(wgpu::PollType::Poll)?;
        Ok(())
    }

    /// Waits until a submission has finished or the time is over; says whether it has finished.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn wait(&self, index: wgpu::SubmissionIndex, timeout: std::time::Duration) -> Result<bool, Lost> {
        self.health.check()?;
        self.poll_as(wgpu::PollType::Wait { submission_index: Some(index), timeout: Some(timeout) })
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn poll_as(&self, how: wgpu::PollType) -> Result<bool, Lost> {
        // wgpu panics where the driver says, in the middle of a poll, that the device is gone. For vramp that is an
        // event, and the device is not touched again.
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.device.poll(how)));
        match polled {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(_)) => Ok(false),
            Err(_) => {
                self.health.lose("the driver failed while it was asked for progress".into());
                self.health.check().map(|()| false)
            }
        }
    }

    /// Leaves the device behind: from now on it counts as lost, and it is never freed, since freeing one that hangs
    /// would wait for it.
    pub(crate) fn leave_behind(&self, reason: String) {
        self.health.lose(reason);
        std::mem::forget((self.device.clone(), self.queue.clone()));
    }

    /// Runs `act` and gives what wgpu has to say against it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn scoped<R>(&self, act: impl FnOnce() -> R) -> Result<R, Refusal> {
        // The innermost scope hears first, each hears its own kind only.
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = act();
        let heard = [now(validation.pop()), now(internal.pop()), now(memory.pop())];
        match heard.iter().flatten().next() {
            Some(error) => Err(refusal(error)),
            None => Ok(made),
        }
    }

    /// On the web errors come later, as [`DeviceEvent`]s.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn scoped<R>(&self, act: impl FnOnce() -> R) -> Result<R, Refusal> {
        Ok(act())
    }
}

/// The answer of a future that wgpu has ready at once, as all of its native ones.
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
            // wgpu tells it as a tree, one line per level.
            let lines = description.lines().map(str::trim).filter(|line| !line.is_empty());
            Refusal::Refused(lines.collect::<Vec<_>>().join(" "))
        }
    }
}

fn add(count: &AtomicU64, by: u64) {
    count.fetch_add(by, Ordering::Relaxed);
}
