//! Lane contexts: the host pool, the number of threads, the device, the event listener and the trace track that a lane
//! works with.
//!
//! Each lane has its own context, so that a lane needs no lock to access its context.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
#[cfg(not(target_arch = "wasm32"))]
use std::time::Instant;

use vramp_gpu::{Buffer, Device, HostBytes, Recording};
use vramp_plan::Space;

use crate::engine::Stopper;
use crate::frame::pool::{FramePool, Owner, PoolError};
use crate::frame::{Frame, Meta};
use crate::handler::DeviceError;
use crate::memory::heap::HeapTally;
use crate::observe::monitor::RunEvent;
use crate::observe::sink_counter::SinkCounter;
use crate::observe::trace::{SpanKind, TraceSpan, Track};
use crate::services::SharedValues;

/// Receives events while the run continues.
pub type Listener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// What a lane works with.
pub struct LaneContext {
    pool: FramePool,
    threads: usize,
    times: u32,
    device_context: Option<DeviceContext>,
    /// Whether the lane had a device and lost it.
    left_device: bool,
    listener: Option<Listener>,
    tally: Arc<HeapTally>,
    sink_counter: Option<Arc<SinkCounter>>,
    track: Option<Track>,
    stopper: Option<Stopper>,
    /// Grows while a handler makes progress in a long call.
    alive: Arc<AtomicU64>,
    /// A frame reserved for the next call.
    aside: Cell<Option<Frame>>,
    shared_values: SharedValues,
    /// When the run began; `None` if the caller steps the lanes.
    #[cfg(not(target_arch = "wasm32"))]
    began: Option<Instant>,
}

/// A lane's device, with the recording that has not been played (submitted) yet.
pub struct DeviceContext {
    device: Device,
    /// Everything recorded since the last play.
    pub(crate) recording: Recording<Buffer, UploadSource>,
    /// What the device must finish before a node can continue, in recording order.
    pub(crate) requests: Vec<LaneRequest>,
}

/// A result that a node waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LaneRequest {
    /// The bytes of a frame with this metadata.
    Download(Meta),
    /// The completion of a frame that ends on the device.
    Finished,
}

/// Host bytes in transfer to the device; held until they are sent.
pub enum UploadSource {
    Frame(Frame),
    Bytes(HostBytes),
}

impl LaneContext {
    /// A context with this pool, on one thread.
    pub fn new(pool: FramePool) -> LaneContext {
        LaneContext {
            pool,
            threads: 1,
            times: 1,
            device_context: None,
            left_device: false,
            listener: None,
            tally: Arc::default(),
            sink_counter: None,
            track: None,
            stopper: None,
            alive: Arc::default(),
            aside: Cell::default(),
            shared_values: SharedValues::default(),
            #[cfg(not(target_arch = "wasm32"))]
            began: None,
        }
    }

    /// Lets the lane tell the time of the run during calls.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn begin(&mut self, began: Instant) {
        self.began = Some(began);
    }

    /// The time since the run began, if threads step the lanes.
    pub(crate) fn since_began(&self) -> Option<Duration> {
        #[cfg(not(target_arch = "wasm32"))]
        return self.began.map(|began| began.elapsed());
        #[cfg(target_arch = "wasm32")]
        None
    }

    /// Lets bands of rows be spread over this many threads, if the lane runs in a pool of that many threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> LaneContext {
        self.threads = threads.max(1);
        self
    }

    /// Computes every band this many times, which takes longer and has the same result. For tests of placement.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, times: u32) -> LaneContext {
        self.times = times.max(1);
        self
    }

    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// Attaches a device.
    #[must_use]
    pub fn at(mut self, device: Device) -> LaneContext {
        self.device_context = Some(DeviceContext { device, recording: Recording::default(), requests: Vec::new() });
        self
    }

    /// Detaches a lost device.
    pub(crate) fn leave(&mut self) {
        self.device_context = None;
        self.left_device = true;
    }

    pub(crate) fn has_left_device(&self) -> bool {
        self.left_device
    }

    /// Attaches another device.
    pub(crate) fn enter(&mut self, device: Device) {
        self.left_device = false;
        self.device_context = Some(DeviceContext { device, recording: Recording::default(), requests: Vec::new() });
    }

    /// Lets calls see that the pipeline is ending.
    #[must_use]
    pub(crate) fn stopper(mut self, stopper: Stopper) -> LaneContext {
        self.stopper = Some(stopper);
        self
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.stopper.as_ref().is_some_and(Stopper::is_ending)
    }

    /// Sets the values that the handlers of all lanes share.
    #[must_use]
    pub(crate) fn sharing(mut self, shared_values: SharedValues) -> LaneContext {
        self.shared_values = shared_values;
        self
    }

    pub(crate) fn shared_values(&self) -> &SharedValues {
        &self.shared_values
    }

    #[must_use]
    pub fn listener(mut self, listener: Listener) -> LaneContext {
        self.listener = Some(listener);
        self
    }

    pub(crate) fn listener_of_run(&self) -> Option<Listener> {
        self.listener.clone()
    }

    /// Grows while a handler makes progress in a long call.
    pub(crate) fn alive(&self) -> &Arc<AtomicU64> {
        &self.alive
    }

    /// Sets the counter of the frames that reach a sink in this lane.
    #[must_use]
    pub(crate) fn counting_sinks(mut self, sink_counter: Arc<SinkCounter>) -> LaneContext {
        self.sink_counter = Some(sink_counter);
        self
    }

    /// Records the lane's calls on a track of the timeline.
    #[must_use]
    pub(crate) fn drawing(mut self, track: Option<Track>) -> LaneContext {
        self.track = track;
        self
    }

    /// Whether every call is recorded on a timeline.
    pub(crate) fn is_traced(&self) -> bool {
        self.track.is_some()
    }

    /// Records a call; `node` is the position in the lane.
    pub(crate) fn span(&self, node: usize, frame: u64, begin: Duration, end: Duration) {
        if let Some(track) = &self.track {
            let (begin_ns, end_ns) = (begin.as_nanos() as u64, end.as_nanos() as u64);
            track.note(TraceSpan { act: SpanKind::Frame { node, frame }, begin_ns, end_ns });
        }
    }

    /// Reports that a sink has taken this many frames so far.
    pub(crate) fn sunk(&self, frames: u64) {
        if let Some(sink_counter) = &self.sink_counter {
            sink_counter.sunk(frames);
        }
    }

    /// Sets the tally of heap allocations.
    #[must_use]
    pub fn counting(mut self, tally: Arc<HeapTally>) -> LaneContext {
        self.tally = tally;
        self
    }

    pub fn tally(&self) -> &Arc<HeapTally> {
        &self.tally
    }

    pub fn pool(&self) -> &FramePool {
        &self.pool
    }

    /// Sets the owner and the frame number under which the following loans are recorded.
    #[inline]
    pub(crate) fn serve(&mut self, owner: Owner, frame: u64) {
        self.pool.serve(owner, frame);
        if let Some(device_context) = &self.device_context {
            device_context.device.pool().frame(frame);
        }
    }

    /// Reserves a frame for the next call, if this many bytes can still be lent afterwards.
    pub(crate) fn set_aside(&self, meta: Meta, leave_bytes: u64) -> Result<(), PoolError> {
        self.aside.set(None);
        self.aside.set(Some(self.pool.lend_leaving(meta, leave_bytes)?));
        Ok(())
    }

    /// Returns a reserved frame that was not used.
    pub(crate) fn clear_aside(&self) {
        self.aside.set(None);
    }

    /// Takes the reserved frame if it has as many bytes as a frame with this metadata. Otherwise returns the reserved
    /// frame to the pool.
    pub(crate) fn take_aside(&self, meta: Meta) -> Option<Frame> {
        let bytes = |meta: &Meta| meta.bytes();
        let mut frame = self.aside.take().filter(|frame| bytes(frame.meta()) == bytes(&meta))?;
        frame.set_meta(meta);
        Some(frame)
    }

    pub(crate) fn count_wait(&self) {
        if let Some(sink_counter) = &self.sink_counter {
            sink_counter.waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Counts a change of settings that was applied, and whether kernels were replaced.
    pub(crate) fn count_change(&self, swapped: bool) {
        if let Some(sink_counter) = &self.sink_counter {
            sink_counter.changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            sink_counter.swaps.fetch_add(u64::from(swapped), std::sync::atomic::Ordering::Relaxed);
        }
    }

    pub fn thread_count(&self) -> usize {
        self.threads
    }

    /// The lane's device; `None` on host lanes.
    pub fn device_context(&mut self) -> Option<&mut DeviceContext> {
        self.device_context.as_mut()
    }

    pub(crate) fn report(&self, event: &RunEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }
}

impl DeviceContext {
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Lends device memory for a new frame.
    pub fn lend(&self, meta: Meta, owner: &Arc<str>) -> Result<Frame, DeviceError> {
        Ok(Frame::on_device(meta, self.device.lend(meta.bytes(), owner)?))
    }

    /// Uploads a frame, unless it is on the device already.
    pub fn raise(&mut self, frame: Frame, owner: &Arc<str>) -> Result<Frame, DeviceError> {
        if frame.space() == Space::Gpu {
            return Ok(frame);
        }
        let there = self.lend(*frame.meta(), owner)?;
        if let Some(buffer) = there.buffer() {
            self.recording.upload(buffer, UploadSource::Frame(frame))?;
        }
        Ok(there)
    }
}

impl vramp_gpu::HostSource for UploadSource {
    fn len(&self) -> usize {
        match self {
            UploadSource::Frame(frame) => frame.bytes().len(),
            UploadSource::Bytes(bytes) => bytes.as_ref().len(),
        }
    }

    fn read(&self, take: &mut dyn FnMut(&[u8])) {
        match self {
            UploadSource::Frame(frame) => take(&frame.bytes()),
            UploadSource::Bytes(bytes) => take(bytes.as_ref()),
        }
    }
}

impl std::fmt::Debug for LaneContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let device = self.device_context.is_some();
        f.debug_struct("LaneContext").field("threads", &self.threads).field("device", &device).finish_non_exhaustive()
    }
}
