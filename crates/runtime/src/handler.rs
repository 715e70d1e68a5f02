//! The two handler traits and what each call receives.
//!
//! A [`FrameHandler`] sees whole frames. A [`PixelHandler`] only names its kernels and their parameters; the runtime
//! owns the loop over pixels, so that neighbouring handlers can be fused. The node around a handler decides when the
//! handler is called.
//!
//! Invariants: a handler never waits for vramp; it is called when all its inputs are there. A call sends at most one
//! frame per output.

use std::any::Any;
use std::error::Error;
use std::sync::Arc;

use vramp_kernels::head::Head;
use vramp_kernels::own::{OwnFunction, OwnKernel};
use vramp_kernels::stored::StoredFormat;
use vramp_kernels::{FrameParams, PixelFn};
use vramp_plan::{Format, Rate, Size};

use crate::frame::notes::{NewNotes, Note, Notes};
use crate::frame::pool::{FramePool, PoolError};
use crate::frame::{Birth, EditError, Frame, Meta, Yuv};
use crate::fused::DataFrames;
#[cfg(not(target_arch = "wasm32"))]
use crate::fused::UnitSwap;
use crate::lane::context::LaneContext;
use crate::memory::no_memory::NoMemory;
use crate::memory::shortage::OutOfMemory;
use crate::registry::Setup;
use crate::services::{Services, StartContext};
use crate::waker::Waker;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The frames in the outputs are sent.
    Produced,
    /// The handler discards this frame on purpose.
    Filtered,
    /// The stream ends: no further frame will come.
    Ended,
}

/// Why a handler failed on a frame.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Waiting cannot help: no lane will return memory.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemory>),
    #[error("it panicked: {message}")]
    Panicked { message: String },
    /// The device is lost and the handler cannot run on the host.
    #[error("it runs on the GPU only, and {trouble}")]
    NoTwin { trouble: Trouble },
    /// The frame of a non-lead input was lost with the device, and the source of that input has ended.
    #[error(
        "the frame of input {input} was lost with the device, and no other frame will come on this input; feed the \
         input from a source that continues (`loop=true`), or keep its frames on the CPU (`--place`)"
    )]
    SideLost {
        /// Counted from 0.
        input: usize,
    },
    /// The settings can be planned but not run.
    #[error("`{what}` can be planned, but it cannot run yet; {instead}")]
    NotBuilt {
        /// The kind, with the setting that is not implemented.
        what: String,
        /// An alternative that does run.
        instead: String,
    },
    /// The handler can produce no further frame: the run ends with this error whatever `on-error` says.
    #[error("{0}")]
    Hopeless(Box<dyn Error + Send + Sync>),
    #[error("{0}")]
    Failed(Box<dyn Error + Send + Sync>),
}

impl HandlerError {
    /// An error of the handler's own.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> HandlerError {
        HandlerError::Failed(error.into())
    }

    /// An error for which it is useless to retry the call or to skip the frame.
    pub fn hopeless(error: impl Into<Box<dyn Error + Send + Sync>>) -> HandlerError {
        HandlerError::Hopeless(error.into())
    }

    /// The device failure behind this error, if there is one.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self {
            HandlerError::Device(error) => error.trouble(),
            _ => None,
        }
    }
}

/// A device operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(transparent)]
    Lend(#[from] vramp_gpu::LendError<vramp_gpu::BufferError>),
    #[error(transparent)]
    Record(#[from] vramp_gpu::RecordError),
    #[error(transparent)]
    Play(#[from] vramp_gpu::PlayError),
    #[error(transparent)]
    Read(#[from] vramp_gpu::ReadbackError),
    #[error(transparent)]
    Prepare(#[from] vramp_gpu::CompileError),
}

impl DeviceError {
    /// The failure of the device itself; `None` if the device is still usable.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        use vramp_gpu::{BufferError, CompileError, LendError, PlayError, ReadbackError};
        let lost = |lost: &vramp_gpu::Lost| Trouble::Lost { reason: lost.reason.clone() };
        match self {
            DeviceError::Play(PlayError::Lost(why))
            | DeviceError::Read(ReadbackError::Lost(why))
            | DeviceError::Prepare(CompileError::Lost(why))
            | DeviceError::Lend(LendError::NotMade { problem: BufferError::Lost(why), .. }) => Some(lost(why)),
            DeviceError::Play(PlayError::Overdue { kernel, waited_ms }) => {
                Some(Trouble::Overdue { kernel: kernel.to_string(), waited_ms: *waited_ms })
            }
            DeviceError::Play(PlayError::OutOfMemory)
            | DeviceError::Lend(LendError::NotMade { problem: BufferError::OutOfMemory, .. }) => {
                Some(Trouble::OutOfMemory)
            }
            _ => None,
        }
    }
}

/// A failure after which a device cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("the device was lost ({reason})")]
    Lost {
        /// As reported by the driver.
        reason: String,
    },
    #[error("{kernel} did not end within {waited_ms} ms: the device hangs")]
    Overdue {
        /// The first kernel of the submission.
        kernel: String,
        waited_ms: u64,
    },
    #[error("the device has no memory left")]
    OutOfMemory,
}

/// Number, time and measurements of the frame that a call is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// Number of the lead frame.
    pub number: u64,
    pub pts_ns: i64,
    /// Stream time since the previous frame; one period for the first frame.
    pub delta_ns: i64,
    /// Measured once, when the source sent the frame.
    pub birth: Birth,
}

/// A file that a sink did not finish. It is kept beside the older file, which was not replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialFile {
    pub path: String,
    /// The older file, unchanged.
    pub instead_of: String,
}

/// A handler of whole frames.
pub trait FrameHandler: Send {
    /// Called once before the first frame, on the handler's lane. `context` tells where the handler runs and what was
    /// negotiated for its ports, and offers services that the handler may keep.
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let _ = context;
        Ok(())
    }

    /// Called for every frame of the lead input; for sources, whenever a frame is due.
    ///
    /// If a call returns a memory error without having taken its frame, the call is repeated with the same frame once
    /// memory is available. So request memory before taking the frame. A source cannot be called twice for one frame,
    /// so the runtime reserves the source's memory before the call.
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError>;

    /// Called once after the last frame, unless `stop_early` is called instead. Files are finished here. The runtime
    /// then drops the handler, and with it all memory that the handler holds.
    fn stop(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Called instead of `stop` if the run failed or was interrupted before this handler had its last frame. Defaults
    /// to `stop`. A file sink keeps the older file, leaves its own file beside the older file and returns both names
    /// for [`Report::partial_files`](crate::Report::partial_files).
    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        self.stop().map(|()| None)
    }

    /// Receives the handler's waker, before the start. A source that may have nothing to send, or a sink that may have no
    /// room for a frame, keeps the waker and returns true. The runtime then calls [`FrameHandler::is_ready`] before each
    /// frame.
    fn keep_waker(&mut self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }

    /// Whether `process` can be called now. After this method has returned false, it is called again when the waker has
    /// been used. A source whose stream has ended is ready, and its `process` returns [`Flow::Ended`].
    fn is_ready(&mut self) -> bool {
        true
    }

    /// Called once when no further frame will come or can be sent, before `stop`. Other handlers may still run.
    fn ended(&mut self) {}

    /// Called on a sink on the device when the device has finished the oldest frame that the sink has taken. Frames
    /// that are lost with the device are not finished; `leave_device` or `enter_device` is called instead.
    fn finished(&mut self) {}

    /// Changes settings between two frames. `setup` has all settings, the changed ones among them, and is otherwise as
    /// it was when the handler was made. The handler keeps its state and its open files. After an error, the handler
    /// continues as before and the error is reported.
    ///
    /// Called only if the entry declares a setting as [`Liveness::Live`](vramp_plan::catalog::Liveness::Live) or
    /// [`Liveness::Rebuild`](vramp_plan::catalog::Liveness::Rebuild); such a handler must implement this method.
    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        let _ = setup;
        Err(HandlerError::failed("its entry declares a setting that can change, but it does not implement `change`"))
    }

    /// Replaces members, if the handler is a fused unit. Returns whether the kernels were replaced too.
    #[doc(hidden)]
    #[cfg(not(target_arch = "wasm32"))]
    fn swap(&mut self, swap: &mut UnitSwap, context: &StartContext<'_>) -> Result<bool, HandlerError> {
        let _ = (swap, context);
        Err(HandlerError::failed("it has no members to replace"))
    }

    /// The parts of each member, if the handler is a fused unit.
    #[doc(hidden)]
    fn parts(&self) -> Option<Vec<Vec<Part>>> {
        None
    }

    /// Called when the device is lost: later frames are on the host. Returns true if the handler can continue with
    /// frames on the host; otherwise the run ends. Called only on handlers that offer the GPU. Services that the handler
    /// keeps have moved to the host.
    fn leave_device(&mut self, context: &mut StartContext<'_>) -> bool {
        let _ = context;
        false
    }

    /// Switches to another device. Everything the handler has allocated on the old device is gone; services that the
    /// handler keeps have moved to the new device. A handler that only prepares resources in `start` calls `start` again.
    fn enter_device(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let _ = context;
        Ok(())
    }

    /// The kernels that `enter_device` needs, so that they can be compiled beforehand.
    #[doc(hidden)]
    fn shaders(&self) -> Vec<vramp_plan::Shader> {
        Vec::new()
    }

    /// Whether the handler visits all pixels, so that its rows can be spread over threads.
    #[doc(hidden)]
    fn computes(&self) -> bool {
        false
    }

    /// Whether a call that failed for lack of memory can be repeated even if the call takes no frame.
    #[doc(hidden)]
    fn can_repeat(&self) -> bool {
        false
    }

    /// The member that failed or filtered the frame in the last call, if the handler is a fused unit.
    #[doc(hidden)]
    fn failed_member(&self) -> usize {
        0
    }

    /// Clears [`FrameHandler::failed_member`], before another failure is attributed.
    #[doc(hidden)]
    fn forget_failure(&mut self) {}

    /// Whether a call of `process` at this time would return [`Flow::Ended`]. Called only on sources with inputs,
    /// before `process`, at most once per wait. The next call of `process` continues with what this method has found.
    #[doc(hidden)]
    fn has_ended(&mut self, now: &Now) -> bool {
        let _ = now;
        false
    }
}

/// The largest time of a frame, about 146 years.
pub(crate) const MOST_NS: i64 = i64::MAX / 2;

/// One call of a frame handler: its inputs, its outputs and the lane it runs on.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) now: Now,
    pub(crate) inputs: &'a mut [Option<Frame>],
    pub(crate) outputs: &'a mut [Option<Frame>],
    pub(crate) context: &'a mut LaneContext,
    /// Index of the lead input.
    pub(crate) lead: usize,
    /// Bytes of host memory that [`Call::lend`] leaves to downstream units while the call can still be repeated.
    pub(crate) leave_bytes: u64,
    /// True if the output arrives after the call, in order (a download).
    pub(crate) later: bool,
    /// The time that a source has given its frame.
    pub(crate) stamped_ns: Option<i64>,
    pub(crate) notes: &'a mut NewNotes,
    /// The services that the handler has kept.
    pub(crate) services: Option<&'a Services>,
}

impl Call<'_> {
    pub fn now(&self) -> Now {
        self.now
    }

    /// Gives the frame of a source this presentation time instead of the clock's. Times must grow from frame to frame.
    /// Has no effect in other handlers: their frames have the time of the lead's frame.
    pub fn stamp(&mut self, pts_ns: i64) {
        // Limited, so that differences of times cannot overflow.
        self.stamped_ns = Some(pts_ns.clamp(-MOST_NS, MOST_NS));
    }

    /// Whether the pipeline is ending. A source that waits for something outside, such as a pipe, polls this method
    /// (the built-in readers do so every 50 ms). A run waits one second for such a source and then abandons its thread.
    pub fn is_ending(&self) -> bool {
        self.context.is_ending()
    }

    /// The index of the lead input, whose frame gives the output its number and time.
    pub fn lead_port(&self) -> usize {
        self.lead
    }

    /// The frame at an input. At the lead it is the frame of this call; at any other input, the newest frame up to the
    /// lead's time. `None` if no frame has come.
    pub fn input(&self, port: usize) -> Option<&Frame> {
        self.inputs.get(port)?.as_ref()
    }

    pub(crate) fn lead_notes(&self) -> Option<&Notes> {
        self.input(self.lead)?.notes()
    }

    /// Takes ownership of an input's frame, to pass it on or to edit it in place.
    #[inline]
    pub fn take(&mut self, port: usize) -> Option<Frame> {
        self.inputs.get_mut(port)?.take()
    }

    /// Lends host memory for a new frame. The bytes are undefined. When the frame is sent, it gets the lead's number
    /// and time.
    pub fn lend(&self, format: Format, size: Size) -> Result<Frame, PoolError> {
        self.lend_frame(Meta::new(format, size))
    }

    /// As [`Call::lend`], for a picture, a tensor or data ([`Meta::of`] the content of a port).
    pub fn lend_frame(&self, meta: Meta) -> Result<Frame, PoolError> {
        if let Some(frame) = self.context.take_aside(meta) {
            return Ok(frame);
        }
        let taken = self.inputs.get(self.lead).is_some_and(Option::is_none);
        self.context.pool().lend_leaving(meta, if taken { 0 } else { self.leave_bytes })
    }

    /// The host frame pool, for editing frames that other holders share.
    pub fn pool(&self) -> &FramePool {
        self.context.pool()
    }

    /// The device of this call; `None` if frames are on the host.
    pub fn device(&mut self) -> Option<&vramp_gpu::Device> {
        self.context.device_context().map(|device_context| device_context.device())
    }

    /// Appends a recording to the submit of this frame. Fails if frames are on the host, and if the recording contains
    /// downloads, because no node would receive the downloaded bytes.
    pub fn record(&mut self, recording: &mut vramp_gpu::Recording) -> Result<(), HandlerError> {
        check_recording(recording)?;
        // Values that this call has requested are uploaded before the work that reads them.
        if let Some(services) = self.services {
            services.play_queued(self.context);
        }
        let Some(device_context) = self.context.device_context() else { return Err(no_device()) };
        device_context.recording.append(recording, crate::lane::context::UploadSource::Bytes);
        Ok(())
    }

    /// Attaches a named value to every frame that this call sends. The frames also have the notes of the lead's frame; a
    /// note of the same key is replaced.
    pub fn note<'n>(&mut self, key: &str, note: impl Into<Note<'n>>) -> Result<(), HandlerError> {
        self.notes.add(key, note.into()).map_err(HandlerError::failed)
    }

    /// Sends a frame under the number and time of this call.
    #[inline]
    pub fn send(&mut self, port: usize, frame: Frame) {
        self.outputs[port] = Some(frame);
    }
}

/// Refuses a recording whose results no node would receive.
pub(crate) fn check_recording(recording: &vramp_gpu::Recording) -> Result<(), HandlerError> {
    match recording.downloads() {
        0 => Ok(()),
        _ => Err(HandlerError::failed("the recording contains downloads; leave them to the pipeline (`download`)")),
    }
}

pub(crate) fn no_device() -> HandlerError {
    HandlerError::failed("there is no device to record for: frames are on the host")
}

/// A kernel of a pixel handler.
#[derive(Debug, Clone)]
pub enum Part {
    /// Produces pixels.
    Head(&'static Head),
    /// Produces pixels from a source and this many further images.
    HeadOf(&'static Head, usize),
    /// Changes pixels.
    Function(&'static PixelFn),
    /// Decodes the source from this stored format; before all other parts.
    From(&'static StoredFormat),
    /// Encodes the result into this stored format; after all other parts.
    Into(&'static StoredFormat),
    /// A pixel function in the user's WGSL, on the device only.
    Own(Arc<OwnFunction>),
    /// A kernel for the whole frame in the user's WGSL. It cannot be fused with other parts.
    Whole(Arc<OwnKernel>),
}

/// What a pixel handler's parameters may depend on.
#[derive(Debug, Clone, Copy)]
pub struct PixelInfo<'a> {
    pub now: Now,
    /// Size of the frame that the handler produces.
    pub size: Size,
    /// Size of the source frame; `size` if there is no source.
    pub source: Size,
    /// Planned frames per second, if known.
    pub rate: Option<Rate>,
    /// How luma and chroma of the source are interpreted.
    pub yuv: Yuv,
    /// The notes of the lead's frame; `None` if the frame has no notes, or if the handler is a source. The pixel
    /// handlers that run as one kernel all receive the same notes.
    pub notes: Option<&'a Notes>,
    pub(crate) data: DataFrames<'a>,
}

impl<'a> PixelInfo<'a> {
    /// The data at an input that carries data ([`Input::DATA`](vramp_plan::catalog::Input::DATA)): the newest frame up to
    /// the lead's time, on the host. `None` if no frame has come.
    pub fn data(&self, port: usize) -> Option<&'a Frame> {
        self.data.get(port)
    }
}

/// A handler that consists of kernels with parameters that may change from frame to frame.
///
/// The kernels read and write pictures. The handler may also have data inputs, which it reads in
/// [`PixelHandler::frame`]; its first input and its lead carry pictures. A handler with a data input is not fused.
pub trait PixelHandler: Send {
    /// The kernels in order: at most one head, before any function. The kernels of a handler never change; a change of
    /// a setting makes a new handler.
    fn parts(&self) -> Vec<Part>;

    /// Called before each frame if the head reads several images, with the sizes of these images (the size of the
    /// source first) and the index of the lead. An input on which no frame has come yet counts as one transparent
    /// pixel.
    fn pictures(&mut self, sizes: &[Size], lead: usize) {
        let _ = (sizes, lead);
    }

    /// The output size for a source of this size; a generator receives its own size.
    fn size(&self, source: Size) -> Size {
        source
    }

    /// How luma and chroma of the output are tagged, given the tags of the source.
    fn yuv(&self, given: Yuv) -> Yuv {
        Yuv { siting: given.siting, ..Yuv::default() }
    }

    /// Called once before the first frame, as [`FrameHandler::start`].
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let _ = context;
        Ok(())
    }

    /// The state that the handler has collected over frames, for its successor. If a setting changes, a new handler is
    /// made from the changed settings and replaces this handler between two frames. `None` if each frame depends only
    /// on the settings and on the frame.
    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        None
    }

    /// Takes the state that the predecessor has handed over; called after `start`.
    fn take_over(&mut self, state: Box<dyn Any + Send>) {
        drop(state);
    }

    /// Writes the parameters of every part, in order. A frame is produced only if this method returns
    /// [`Flow::Produced`].
    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError>;
}

/// Receives the parameters of a pixel handler's parts.
#[derive(Debug)]
pub struct ParamWriter<'a> {
    pub(crate) params: &'a mut FrameParams,
    pub(crate) places: &'a [ParamPlace],
    pub(crate) next: usize,
}

/// The destination of one part's parameters: the part's own range, or the range of a neighbouring part into which the
/// parameters are folded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParamPlace {
    pub(crate) part: vramp_kernels::ParamPart,
    pub(crate) folds: bool,
}

impl ParamWriter<'_> {
    /// Sets parameter words and small data of the next part.
    ///
    /// # Panics
    ///
    /// If called more often than there are parts, or with another number of words than the part takes.
    pub fn part(&mut self, words: &[u32], small: &[u32]) {
        let place = self.places[self.next];
        self.next += 1;
        if place.folds {
            self.params.fold(place.part, words);
        } else {
            self.params.set(place.part, words, small);
        }
    }
}
