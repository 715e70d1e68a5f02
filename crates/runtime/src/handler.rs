//! Handlers: what people write to bring frames in, change them and take them out.
//!
//! Owns the two kinds of handler and what each is given. A frame handler sees whole frames. A pixel handler only says
//! which kernels it is and with which parameters; the runtime owns the loop, so neighbours can be fused.
//! Does not fire anything: the node around a handler knows when its inputs allow it.
//!
//! Always: a handler never waits for vramp; it is called when everything it needs is there, and sends at most one frame
//! per output and call.

use std::error::Error;
use std::sync::Arc;

use vramp_kernels::head::Head;
use vramp_kernels::own::{OwnFunction, OwnKernel};
use vramp_kernels::stored::StoredFormat;
use vramp_kernels::{FrameParams, PixelFn};
use vramp_plan::{Format, Rate, Size};

use crate::frame::pool::{FramePool, PoolError};
use crate::frame::{Birth, EditError, Frame, Meta, Yuv};
use crate::lane::context::LaneContext;
use crate::memory::no_memory::NoMemory;
use crate::memory::shortage::OutOfMemory;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// What is in the outputs goes on.
    Produced,
    /// The frame ends here on purpose.
    Filtered,
    /// There will be no more.
    Ended,
}

/// Why a handler failed on a frame.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// There was no memory for a frame.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The system has no memory for it.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// There was no memory for editing a frame.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The device would not do it.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no memory, and there will be none.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemory>),
    /// It panicked.
    #[error("it panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
    /// The device is gone, and it can only run there.
    #[error("it runs on the device only, and {trouble}")]
    NoTwin {
        /// What happened to the device.
        trouble: Trouble,
    },
    /// A picture beside the lead's went with the device, and its source has ended.
    #[error(
        "its input {input} was on the device that was lost, and will bring no other frame; feed it from a source that \
         goes on (`loop=true`), or keep it on the cpu (`--place`)"
    )]
    SideLost {
        /// Which input, counted from 0.
        input: usize,
    },
    /// What was asked for can be planned only.
    #[error("`{what}` can be planned, but it cannot run yet; {instead}")]
    NotBuilt {
        /// The kind with the setting that asks for it.
        what: String,
        /// What does run.
        instead: String,
    },
    /// It can make no further frame, so the run ends with an error whatever `on-error` says.
    #[error("{0}")]
    Hopeless(Box<dyn Error + Send + Sync>),
    /// Something of its own.
    #[error("{0}")]
    Failed(Box<dyn Error + Send + Sync>),
}

impl HandlerError {
    /// An error of the handler's own.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> HandlerError {
        HandlerError::Failed(error.into())
    }

    /// An error of the handler's own after which trying again or leaving out a frame cannot help.
    pub fn hopeless(error: impl Into<Box<dyn Error + Send + Sync>>) -> HandlerError {
        HandlerError::Hopeless(error.into())
    }

    /// What is wrong with the device, where that is the reason.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        match self {
            HandlerError::Device(error) => error.trouble(),
            _ => None,
        }
    }
}

/// Why the device would not do it.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// It had no memory for a frame.
    #[error(transparent)]
    Lend(#[from] vramp_gpu::LendError<vramp_gpu::BufferError>),
    /// It would not record a step.
    #[error(transparent)]
    Record(#[from] vramp_gpu::RecordError),
    /// It would not play what was recorded.
    #[error(transparent)]
    Play(#[from] vramp_gpu::PlayError),
    /// What was asked for did not come down.
    #[error(transparent)]
    Read(#[from] vramp_gpu::ReadbackError),
    /// It would not compile a kernel.
    #[error(transparent)]
    Prepare(#[from] vramp_gpu::CompileError),
}

impl DeviceError {
    /// What is wrong with the device itself; none where it is as it was.
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

/// What is wrong with a device, so that nothing more can be asked of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// It is gone.
    #[error("the device was lost ({reason})")]
    Lost {
        /// As far as the driver says.
        reason: String,
    },
    /// A kernel does not end.
    #[error("{kernel} did not end within {waited_ms} ms: the device hangs")]
    Overdue {
        /// The first kernel of the submission.
        kernel: String,
        /// How long was waited.
        waited_ms: u64,
    },
    /// It has no memory left.
    #[error("the device has no memory left")]
    OutOfMemory,
}

/// When a call happens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// Number of the lead frame.
    pub number: u64,
    /// Its time.
    pub pts_ns: i64,
    /// Stream time since the frame before; a period for the first.
    pub delta_ns: i64,
    /// What was measured when its source sent it.
    pub birth: Birth,
}

/// A file that a sink did not finish, beside an older one that it did not replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialFile {
    /// The unfinished file.
    pub path: String,
    /// The older file, which is as it was.
    pub instead_of: String,
}

/// Works on whole frames.
pub trait FrameHandler: Send {
    /// Called once before the first frame.
    fn start(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Called for every frame of the lead input; for sources, whenever a frame is due.
    ///
    /// Where memory is short and it hands that error back without having taken its frame, it is called again with the
    /// same frame once there is some. So ask for memory first; a source's is set aside before it is called.
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError>;

    /// Called once after the last frame, also after an error or when the run is stopped: the place to finish files.
    fn stop(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Called instead of `stop` if the run failed or was interrupted before this handler had its last frame. Does what
    /// `stop` does unless a handler overrides it: a sink of files keeps an older file and leaves its own beside it, and
    /// says so in what it returns, which [`Report::partial_files`](crate::Report::partial_files) lists.
    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        self.stop().map(|()| None)
    }

    /// The device was lost: from the next frame on it is given frames on the host. True where it goes on with them;
    /// otherwise the run ends here. Only asked of handlers that offer the gpu.
    fn leave_device(&mut self) -> bool {
        false
    }

    /// Goes on on this device, which is another than before; what it kept on the old one is gone.
    fn enter_device(&mut self, device: &vramp_gpu::Device) -> Result<(), HandlerError> {
        let _ = device;
        Ok(())
    }

    /// The kernels that `enter_device` will want, so that they can be compiled beforehand.
    #[doc(hidden)]
    fn shaders(&self) -> Vec<vramp_plan::Shader> {
        Vec::new()
    }

    /// Whether it goes through all pixels, so that rows can be spread over threads.
    #[doc(hidden)]
    fn computes(&self) -> bool {
        false
    }

    /// Whether a call that was handed back for lack of memory can be repeated though it takes no frame.
    #[doc(hidden)]
    fn can_repeat(&self) -> bool {
        false
    }

    /// Which member failed or filtered its frame out in the last call, for handlers that are several in one.
    #[doc(hidden)]
    fn failed_member(&self) -> usize {
        0
    }

    /// Forgets which member failed, before something else fails in its name.
    #[doc(hidden)]
    fn forget_failure(&mut self) {}

    /// Whether a call at this time would say that there will be no more. Asked of sources with inputs before that call, at
    /// most as often as they wait; the call then goes on with what was found out.
    #[doc(hidden)]
    fn has_ended(&mut self, now: &Now) -> bool {
        let _ = now;
        false
    }
}

/// One call of a frame handler: what it is given and where it sends.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) now: Now,
    pub(crate) inputs: &'a mut [Option<Frame>],
    pub(crate) outputs: &'a mut [Option<Frame>],
    pub(crate) context: &'a mut LaneContext,
    /// Which input leads.
    pub(crate) lead: usize,
    /// Host memory that is left to those behind it, as long as it can be called again.
    pub(crate) leave_bytes: u64,
    /// Whether what it makes comes later, in order.
    pub(crate) later: bool,
}

impl Call<'_> {
    /// When this is.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Whether the pipeline was asked to end. A source that waits for something outside, such as a pipe, looks here from
    /// time to time and ends where it is so: a run waits a second for it, and then leaves it behind.
    pub fn is_ending(&self) -> bool {
        self.context.is_ending()
    }

    /// The frame at an input: the lead's own, the newest up to its time at any other; none where none has come.
    pub fn input(&self, port: usize) -> Option<&Frame> {
        self.inputs.get(port)?.as_ref()
    }

    /// Takes the lead's frame over, to pass it on or edit it where it is.
    #[inline]
    pub fn take(&mut self, port: usize) -> Option<Frame> {
        self.inputs.get_mut(port)?.take()
    }

    /// Host memory for a new frame. Its bytes are whatever was there before; its number and time will be those of the
    /// lead.
    pub fn lend(&self, format: Format, size: Size) -> Result<Frame, PoolError> {
        let meta = Meta::new(format, size);
        if let Some(frame) = self.context.take_aside(meta) {
            return Ok(frame);
        }
        let taken = self.inputs.get(self.lead).is_some_and(Option::is_none);
        self.context.pool().lend_leaving(meta, if taken { 0 } else { self.leave_bytes })
    }

    /// The host's pool, for editing frames that others may hold.
    pub fn pool(&self) -> &FramePool {
        self.context.pool()
    }

    /// The device that this call is at; none where frames are on the host.
    pub fn device(&mut self) -> Option<&vramp_gpu::Device> {
        self.context.device_context().map(|device_context| device_context.device())
    }

    /// Does what was recorded, in the same submit as everything else of this frame. At the device only; downloads are not
    /// taken, since nobody would be there to receive them.
    pub fn record(&mut self, recording: &mut vramp_gpu::Recording) -> Result<(), HandlerError> {
        let Some(device_context) = self.context.device_context() else {
            return Err(HandlerError::failed("there is no device to record for; frames are on the host"));
        };
        if recording.downloads() > 0 {
            return Err(HandlerError::failed("a recording with downloads; leave them to the pipeline (`download`)"));
        }
        device_context.recording.append(recording, crate::lane::context::UploadSource::Bytes);
        Ok(())
    }

    /// Sends a frame. It travels under the number and time of this call.
    #[inline]
    pub fn send(&mut self, port: usize, frame: Frame) {
        self.outputs[port] = Some(frame);
    }
}

/// Which kernel a pixel handler is.
#[derive(Debug, Clone)]
pub enum Part {
    /// Where pixels come from.
    Head(&'static Head),
    /// Where pixels come from: a head that reads so many pictures beside its source.
    HeadOf(&'static Head, usize),
    /// What changes them.
    Function(&'static PixelFn),
    /// The source is stored in this format; in front of everything else.
    From(&'static StoredFormat),
    /// What is made is stored in this format; behind everything else.
    Into(&'static StoredFormat),
    /// What a user's own text does to them, on the device only.
    Own(Arc<OwnFunction>),
    /// A user's kernel for the whole frame, which is a part by itself.
    Whole(Arc<OwnKernel>),
}

/// What a pixel handler's parameters may depend on.
#[derive(Debug, Clone, Copy)]
pub struct PixelInfo {
    /// When this is.
    pub now: Now,
    /// The size of what the handler makes.
    pub size: Size,
    /// The size of what it is given; its own where it is given nothing.
    pub source: Size,
    /// Frames per second by the plan, where known.
    pub rate: Option<Rate>,
    /// How luma and chroma of what it is given are to be read, where that has any.
    pub yuv: Yuv,
}

/// Kernels with parameters that may change from frame to frame.
pub trait PixelHandler: Send {
    /// Which kernels it is, in order: at most one head, and that before any function. Asked once.
    fn parts(&self) -> Vec<Part>;

    /// Told before each frame where its head reads several pictures: their sizes, its source's first, and which of them
    /// leads. One that has brought nothing yet is a single transparent pixel.
    fn pictures(&mut self, sizes: &[Size], lead: usize) {
        let _ = (sizes, lead);
    }

    /// The size of what it makes from a frame of this size; a generator is given its own.
    fn size(&self, source: Size) -> Size {
        source
    }

    /// How luma and chroma of what it makes are tagged, from how those of what it is given are.
    fn yuv(&self, given: Yuv) -> Yuv {
        Yuv { siting: given.siting, ..Yuv::default() }
    }

    /// Called once before the first frame.
    fn start(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Who takes its place, where what it was made from has changed: asked before every frame, answered once for each
    /// change. Until the new one's kernels are compiled, the old one goes on. What is wrong with the change comes in
    /// words instead.
    fn successor(&mut self) -> Option<Result<Box<dyn PixelHandler>, String>> {
        None
    }

    /// Gives every part its parameters for a frame, in order. Other flows than `Produced` make no frame.
    fn frame(&mut self, info: &PixelInfo, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError>;
}

/// Where a pixel handler puts its parameters.
#[derive(Debug)]
pub struct ParamWriter<'a> {
    pub(crate) params: &'a mut FrameParams,
    pub(crate) places: &'a [ParamPlace],
    pub(crate) next: usize,
}

/// Where one part's parameters go: its own place, or folded behind a neighbour's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParamPlace {
    pub(crate) part: vramp_kernels::ParamPart,
    pub(crate) folds: bool,
}

impl ParamWriter<'_> {
    /// The parameter words and small data of the next part.
    ///
    /// # Panics
    /// If there are more parts than were declared, or other words than the part takes.
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
