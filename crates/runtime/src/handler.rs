//! Handlers: what people write to bring frames in, change them and take them out.
//!
//! Owns the two kinds of handler and what each is given. A frame handler sees whole frames. A pixel handler only says
//! which kernel it is and with which parameters; the runtime owns the loop, so neighbours can be fused.
//! Does not fire anything: the node around a handler knows when its inputs allow it.
//!
//! Always: a handler never waits for vramp; it is called when everything it needs is there, and sends at most one frame
//! per output and call.

use vramp_kernels::PixelFn;
use vramp_kernels::head::Head;
use vramp_plan::{Rate, Size};

use crate::frame::{Frame, Meta};
use crate::pool::{HostPool, PoolError};

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
    /// Something of its own.
    #[error("{0}")]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// When a call happens, in stream time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Number of the lead frame.
    pub number: u64,
    /// Its time.
    pub pts_ns: i64,
    /// Time since the frame before; a period for the first.
    pub delta_ns: i64,
}

/// Works on whole frames.
pub trait FrameHandler: Send {
    /// Called once before the first frame.
    fn start(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }

    /// Called for every frame of the lead input; for sources, whenever a frame is due.
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError>;

    /// Called once after the last frame.
    fn stop(&mut self) -> Result<(), HandlerError> {
        Ok(())
    }
}

/// One call of a frame handler: what it is given and where it sends.
#[derive(Debug)]
pub struct Call<'a> {
    pub(crate) now: Now,
    pub(crate) inputs: &'a mut [Option<Frame>],
    pub(crate) outputs: &'a mut [Option<Frame>],
    pub(crate) pool: &'a HostPool,
}

impl Call<'_> {
    /// When this is.
    pub fn now(&self) -> Now {
        self.now
    }

    /// The frame at an input: the lead's own, the newest up to its time at any other; none where none has come.
    pub fn input(&self, port: usize) -> Option<&Frame> {
        self.inputs.get(port)?.as_ref()
    }

    /// Takes the lead's frame over, to pass it on or edit it where it is.
    pub fn take(&mut self, port: usize) -> Option<Frame> {
        self.inputs.get_mut(port)?.take()
    }

    /// Memory for a new frame. Its bytes are whatever was there before.
    pub fn lend(&self, meta: Meta) -> Result<Frame, PoolError> {
        self.pool.lend(meta)
    }

    /// The pool, for editing frames that others may hold.
    pub fn pool(&self) -> &HostPool {
        self.pool
    }

    /// Sends a frame.
    pub fn send(&mut self, port: usize, frame: Frame) {
        self.outputs[port] = Some(frame);
    }
}

/// Which kernel a pixel handler is.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// Where pixels come from.
    Head(&'static Head),
    /// What changes them.
    Function(&'static PixelFn),
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
    /// Frames per second, where known.
    pub rate: Option<Rate>,
}

/// A kernel with parameters that may change from frame to frame.
pub trait PixelHandler: Send {
    /// Which kernel it is; asked once.
    fn part(&self) -> Part;

    /// Its parameter words and small data for a frame, written behind what is there.
    fn frame(&mut self, info: &PixelInfo, words: &mut Vec<u32>, small: &mut Vec<u32>) -> Result<(), HandlerError>;
}
