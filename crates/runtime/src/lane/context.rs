//! Lane contexts: what a lane has to work with.
//!
//! Owns a lane's hold on the host pool, its share of threads, its context at the device, and where it reports to.
//! Does not fire anything and does not play what is recorded: lanes do.
//!
//! Always: there is one context per lane, so nothing in it is waited for.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

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

/// Who hears what happens while it happens.
pub type Listener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// What a lane has to work with.
pub struct LaneContext {
    pool: FramePool,
    threads: usize,
    times: u32,
    device_context: Option<DeviceContext>,
    listener: Option<Listener>,
    tally: Arc<HeapTally>,
    sink_counter: Option<Arc<SinkCounter>>,
    track: Option<Track>,
    stopper: Option<Stopper>,
    /// A frame that was lent ahead for whoever is called next.
    aside: Cell<Option<Frame>>,
}

/// What a lane has at its device: what it records lies here until it is played.
pub struct DeviceContext {
    device: Device,
    /// What was recorded since the last play.
    pub(crate) recording: Recording<Buffer, UploadSource>,
    /// What the device is to finish before its node goes on, in the order in which it was recorded.
    pub(crate) requests: Vec<LaneRequest>,
}

/// What a node waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LaneRequest {
    /// The bytes of this frame.
    Download(Meta),
    /// That a frame is finished: it ends here.
    Finished,
}

/// Host bytes that are on their way to the device.
pub enum UploadSource {
    /// Those of a frame, which is held until they are gone.
    Frame(Frame),
    /// Others, likewise.
    Bytes(HostBytes),
}

impl LaneContext {
    /// A place with this pool, and one thread.
    pub fn new(pool: FramePool) -> LaneContext {
        LaneContext {
            pool,
            threads: 1,
            times: 1,
            device_context: None,
            listener: None,
            tally: Arc::default(),
            sink_counter: None,
            track: None,
            stopper: None,
            aside: Cell::default(),
        }
    }

    /// Lets bands of rows be spread over this many threads, where the lane runs in a pool that has them.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> LaneContext {
        self.threads = threads.max(1);
        self
    }

    /// Computes every band this many times, which changes nothing but how long it takes: for tests of placement.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, times: u32) -> LaneContext {
        self.times = times.max(1);
        self
    }

    pub(crate) fn times(&self) -> u32 {
        self.times
    }

    /// Puts it at a device.
    #[must_use]
    pub fn at(mut self, device: Device) -> LaneContext {
        self.device_context = Some(DeviceContext { device, recording: Recording::default(), requests: Vec::new() });
        self
    }

    /// Takes it away from a device that is gone.
    pub(crate) fn leave(&mut self) {
        self.device_context = None;
    }

    /// Puts it at another device.
    pub(crate) fn enter(&mut self, device: Device) {
        self.device_context = Some(DeviceContext { device, recording: Recording::default(), requests: Vec::new() });
    }

    /// Lets calls see when the pipeline is asked to end.
    #[must_use]
    pub(crate) fn stopper(mut self, stopper: Stopper) -> LaneContext {
        self.stopper = Some(stopper);
        self
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.stopper.as_ref().is_some_and(Stopper::is_ending)
    }

    /// Tells somebody what happens.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> LaneContext {
        self.listener = Some(listener);
        self
    }

    /// Counts frames that reach a sink here.
    #[must_use]
    pub(crate) fn counting_sinks(mut self, sink_counter: Arc<SinkCounter>) -> LaneContext {
        self.sink_counter = Some(sink_counter);
        self
    }

    /// Draws what is done here on a track.
    #[must_use]
    pub(crate) fn drawing(mut self, track: Option<Track>) -> LaneContext {
        self.track = track;
        self
    }

    /// Whether everything that is done here is drawn.
    pub(crate) fn is_traced(&self) -> bool {
        self.track.is_some()
    }

    /// A node, by its place in the lane, has taken a frame.
    pub(crate) fn span(&self, node: usize, frame: u64, begin: Duration, end: Duration) {
        if let Some(track) = &self.track {
            let (begin_ns, end_ns) = (begin.as_nanos() as u64, end.as_nanos() as u64);
            track.note(TraceSpan { act: SpanKind::Frame { node, frame }, begin_ns, end_ns });
        }
    }

    /// A sink has taken this many frames.
    pub(crate) fn sunk(&self, frames: u64) {
        if let Some(sink_counter) = &self.sink_counter {
            sink_counter.sunk(frames);
        }
    }

    /// Counts heap allocations here.
    #[must_use]
    pub fn counting(mut self, tally: Arc<HeapTally>) -> LaneContext {
        self.tally = tally;
        self
    }

    /// Where heap allocations are counted.
    pub fn tally(&self) -> &Arc<HeapTally> {
        &self.tally
    }

    /// The host's pool.
    pub fn pool(&self) -> &FramePool {
        &self.pool
    }

    /// Lends in this name from now on, for a frame of this number.
    #[inline]
    pub(crate) fn serve(&mut self, owner: Owner, frame: u64) {
        self.pool.serve(owner, frame);
        if let Some(device_context) = &self.device_context {
            device_context.device.pool().frame(frame);
        }
    }

    /// Lends a frame ahead, for whoever is called next, where this many bytes can still be lent to others afterwards.
    pub(crate) fn set_aside(&self, meta: Meta, leave_bytes: u64) -> Result<(), PoolError> {
        self.aside.set(None);
        self.aside.set(Some(self.pool.lend_leaving(meta, leave_bytes)?));
        Ok(())
    }

    /// Gives back what was lent ahead and not taken.
    pub(crate) fn clear_aside(&self) {
        self.aside.set(None);
    }

    /// The frame that was lent ahead, where it is of this size; otherwise it makes room for another.
    pub(crate) fn take_aside(&self, meta: Meta) -> Option<Frame> {
        let bytes = |meta: &Meta| meta.format.frame_bytes(meta.size);
        let mut frame = self.aside.take().filter(|frame| bytes(frame.meta()) == bytes(&meta))?;
        frame.set_meta(meta);
        Some(frame)
    }

    /// Counts a wait for memory.
    pub(crate) fn count_wait(&self) {
        if let Some(sink_counter) = &self.sink_counter {
            sink_counter.waits.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Threads that bands may be spread over.
    pub fn thread_count(&self) -> usize {
        self.threads
    }

    /// The context at the device; none for lanes of the host.
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
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Device memory for a new frame.
    pub fn lend(&self, meta: Meta, owner: &Arc<str>) -> Result<Frame, DeviceError> {
        Ok(Frame::on_device(meta, self.device.lend(meta.format.frame_bytes(meta.size), owner)?))
    }

    /// Brings a frame to the device, unless it is there.
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
