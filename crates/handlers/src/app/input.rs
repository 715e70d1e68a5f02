//! The program's end of an `app` source.
//!
//! Invariants: frames enter the pipeline in the order in which `send` returned. Pushed frames are taken by the pipeline,
//! dropped and counted, or queued. Times grow: a frame whose own time is not later than that of its predecessor is
//! refused. A skipped frame is a slot in the stream: it has a number and a time, and consumers do not wait for it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLockWriteGuard};
use std::time::Duration;

use vramp_gpu::{Buffer, BufferError, Device, LendError};
use vramp_plan::{Format, Size, Space};
use vramp_runtime::observe::EndCounts;
use vramp_runtime::{Driven, Frame, FrameContent, FramePool, Meta, Note, NoteError, PoolError, Setup, Waker, Yuv};

use super::hand_over::{Gone, HandOver};
use super::{outlasts_start, until};

/// Frames between the program and the lane.
const QUEUED: usize = 4;

/// How long a full pipeline may make a push wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until there is room, or the pipeline ends.
    Forever,
    For(Duration),
    Never,
}

/// Why a frame was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The pipeline has no room for a frame now. The frame was not taken.
    #[error("{input} has no room for another frame; step the pipeline, or push again later")]
    WouldBlock { input: Arc<str> },
    #[error("{input} had no room for another frame in time; its consumers are slower than the pushes")]
    Timeout { input: Arc<str> },
    #[error("{input} is full and its pipeline does not run; call `spawn`, `run` or `step` first")]
    NotStarted { input: Arc<str> },
    #[error("{input} was closed by the program")]
    Closed { input: Arc<str> },
    #[error("{input}: its pipeline has ended; the report tells why")]
    Ended { input: Arc<str> },
    #[error("{input}: {given} bytes were given, but a frame of {size} in {format} has {needed} bytes")]
    NotAFrame { input: Arc<str>, size: Size, format: Format, needed: u64, given: u64 },
    #[error("{input}: the time {pts_ns} ns is not later than {before_ns} ns of the previous frame")]
    Backwards { input: Arc<str>, pts_ns: i64, before_ns: i64 },
    #[error("{input}: the time {pts_ns} ns is more than 146 years from the start of the run")]
    TooFar { input: Arc<str>, pts_ns: i64 },
    #[error("{input}: either all frames have times of their own, or none")]
    MixedTimes { input: Arc<str> },
    #[error("{input} takes frames on the {expected}; set `space={given}` to push frames on the {given}")]
    WrongSpace { input: Arc<str>, expected: Space, given: Space },
    #[error(
        "{input} takes frames in {expected}, but the forwarded frame is in {given}; add `convert {expected}` before it"
    )]
    WrongFormat { input: Arc<str>, expected: Format, given: Format },
    #[error("{input}: the buffer belongs to another device; lend it with `lend_buffer`, or from `Pipeline::device`")]
    WrongDevice { input: Arc<str> },
    #[error("{input}: {error}")]
    Pool { input: Arc<str>, error: PoolError },
    #[error("{input}: {error}")]
    Note { input: Arc<str>, error: NoteError },
    #[error("{input}: {error}")]
    Lend { input: Arc<str>, error: LendError<BufferError> },
}

/// What happened to the pushed frames, among which skipped frames count. `pushed = taken + dropped + queued` always
/// holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCounts {
    pub pushed: u64,
    /// Frames that the pipeline has taken.
    pub taken: u64,
    /// Frames that a live input has replaced by newer frames, and frames that were queued when the pipeline ended.
    pub dropped: u64,
    pub queued: u64,
}

/// Pushes frames into an `app` source, from any thread. Clones push into the same source.
#[derive(Debug, Clone)]
pub struct AppInput {
    shared: Arc<InputShared>,
}

/// The lane's view of an [`AppInput`].
#[derive(Debug)]
pub(crate) struct InputEnd(Arc<InputShared>);

#[derive(Debug)]
struct InputShared {
    name: Arc<str>,
    queue: HandOver<Pushed>,
    waker: OnceLock<Waker>,
    meta: Meta,
    live: bool,
    space: Space,
    pool: FramePool,
    /// The device in use now, if the source is on the device and the device is not lost.
    device: Mutex<Option<Device>>,
    /// The own time of the last frame. Changed in the order of the queue.
    last_ns: AtomicI64,
}

/// The largest own time of a frame, about 146 years.
const MOST_NS: i64 = i64::MAX / 2;
/// No frame has been pushed.
const NO_FRAME: i64 = i64::MIN;
/// The frames have the clock's times.
const OF_CLOCK: i64 = i64::MIN + 1;

/// What the program has pushed: a frame, or `None` for a skipped frame, and its own time.
#[derive(Debug)]
struct Pushed {
    frame: Option<Frame>,
    pts_ns: Option<i64>,
}

/// A frame in the pipeline's memory that the program fills in and then sends.
#[derive(Debug)]
pub struct LentFrame {
    frame: Frame,
    pts_ns: Option<i64>,
}

impl LentFrame {
    /// The bytes, with rows and planes as in [`Format::planes`]. They are undefined until they are written.
    ///
    /// # Panics
    ///
    /// If the frame is on the device.
    pub fn bytes_mut(&mut self) -> RwLockWriteGuard<'_, impl std::ops::DerefMut<Target = [u8]> + use<>> {
        self.frame.fill().expect("a frame that was not sent has one holder")
    }

    /// The memory of a frame on the device.
    pub fn buffer(&self) -> Option<&Buffer> {
        self.frame.buffer()
    }

    /// Gives the frame this presentation time instead of the clock's.
    #[must_use]
    pub fn at(mut self, pts_ns: i64) -> LentFrame {
        self.pts_ns = Some(pts_ns);
        self
    }

    /// Sets how luma and chroma are interpreted.
    #[must_use]
    pub fn yuv(mut self, yuv: Yuv) -> LentFrame {
        let mut own = *self.frame.meta();
        own.picture_mut().yuv = yuv;
        self.frame.set_meta(own);
        self
    }
}

/// Gives up writing the frame, so that it can be kept and forwarded many times ([`AppInput::forward`]).
impl From<LentFrame> for Frame {
    fn from(lent: LentFrame) -> Frame {
        lent.frame
    }
}

impl AppInput {
    /// The end of the source that is being made, published under the name of the source.
    pub(crate) fn of(setup: &Setup<'_>, meta: Meta, live: bool) -> AppInput {
        let mut pool = setup.pool.clone();
        let owner = pool.enter_outside(setup.name);
        pool.serve(owner, 0);
        let shared = InputShared {
            name: setup.name.into(),
            queue: HandOver::new(QUEUED),
            waker: OnceLock::new(),
            meta,
            live,
            space: setup.space,
            pool,
            device: Mutex::new(setup.device.clone()),
            last_ns: AtomicI64::new(NO_FRAME),
        };
        let input = AppInput { shared: Arc::new(shared) };
        setup.publish(input.clone());
        let counted = input.clone();
        setup.count_frames(move || {
            let InputCounts { pushed, taken, dropped, queued } = counted.counts();
            EndCounts::In { pushed, taken, dropped, queued }
        });
        input
    }

    pub(crate) fn end(&self) -> InputEnd {
        InputEnd(Arc::clone(&self.shared))
    }

    /// The name of the source.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The declared size.
    pub fn size(&self) -> Size {
        self.shared.meta.picture().size
    }

    pub fn format(&self) -> Format {
        self.shared.meta.picture().format
    }

    /// The device on which frames can be pushed now. `None` if the source is on the CPU, or if its device is lost.
    pub fn device(&self) -> Option<Device> {
        self.shared.device().filter(|_| self.shared.space == Space::Gpu)
    }

    /// Copies the bytes of a frame into the pipeline's memory and sends the frame under the clock's time. Waits while
    /// the pipeline is full. A live input drops its oldest frame instead of waiting.
    pub fn push(&self, bytes: &[u8]) -> Result<(), PushError> {
        self.send(self.copied(bytes)?, Wait::Forever)
    }

    /// As [`AppInput::push`], under this time.
    pub fn push_at(&self, bytes: &[u8], pts_ns: i64) -> Result<(), PushError> {
        self.send(self.copied(bytes)?.at(pts_ns), Wait::Forever)
    }

    /// As [`AppInput::push`], but gives up after this time.
    pub fn push_timeout(&self, bytes: &[u8], timeout: Duration) -> Result<(), PushError> {
        self.send(self.copied(bytes)?, Wait::For(timeout))
    }

    /// As [`AppInput::push`], but returns [`PushError::WouldBlock`] instead of waiting.
    pub fn try_push(&self, bytes: &[u8]) -> Result<(), PushError> {
        self.send(self.copied(bytes)?, Wait::Never)
    }

    /// Sends a frame that is in a buffer of the pipeline's device. Work that writes the buffer must have been submitted.
    /// The source must have `space=gpu`.
    pub fn push_buffer(&self, buffer: Buffer) -> Result<(), PushError> {
        self.send(self.over_buffer(buffer)?, Wait::Forever)
    }

    /// Sends a frame that is a tensor of u8 on the pipeline's device, of the shape [height, width, 4] for rgba8. Nothing
    /// is transferred or copied. The source must have `space=gpu`.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn push_tensor(&self, tensor: &vramp_tensor::Tensor) -> Result<(), PushError> {
        match tensor.as_buffer() {
            Ok(buffer) => self.push_buffer(buffer),
            Err(_) => Err(PushError::WrongSpace {
                input: self.shared.name(),
                expected: self.shared.space,
                given: self.shared.space.other(),
            }),
        }
    }

    /// Sends a frame that already exists, such as a frame that was pulled from another pipeline, without a copy. The
    /// pipeline shares the memory and does not change it while the program or another pipeline also holds the frame. A
    /// frame of another size is taken as a change of the size.
    pub fn forward(&self, frame: &Frame) -> Result<(), PushError> {
        self.put(self.shared(frame, None)?, Wait::Forever)
    }

    /// As [`AppInput::forward`], under this time.
    pub fn forward_at(&self, frame: &Frame, pts_ns: i64) -> Result<(), PushError> {
        self.put(self.shared(frame, Some(pts_ns))?, Wait::Forever)
    }

    /// As [`AppInput::forward`] or, with a time, [`AppInput::forward_at`], but waits no longer than this. A frame that was
    /// not taken can be forwarded again.
    pub fn forward_within(&self, frame: &Frame, pts_ns: Option<i64>, wait: Wait) -> Result<(), PushError> {
        self.put(self.shared(frame, pts_ns)?, wait)
    }

    /// Announces that the next frame does not come, as a camera that drops a frame. The stream has an empty slot in the
    /// frame's place, under the clock's time, so that handlers with several inputs do not wait for the frame. Waits as
    /// [`AppInput::push`] does.
    pub fn skip(&self) -> Result<(), PushError> {
        self.put(Pushed { frame: None, pts_ns: None }, Wait::Forever)
    }

    /// As [`AppInput::skip`], for the frame at this time.
    pub fn skip_at(&self, pts_ns: i64) -> Result<(), PushError> {
        self.put(Pushed { frame: None, pts_ns: Some(pts_ns) }, Wait::Forever)
    }

    /// Lends the pipeline's memory for a frame of the declared size, to be filled in and sent without a copy.
    pub fn lend(&self) -> Result<LentFrame, PushError> {
        self.lend_as(self.shared.meta)
    }

    /// As [`AppInput::lend`], for a frame of another size. The pipeline then plans again for that size.
    pub fn lend_sized(&self, size: Size) -> Result<LentFrame, PushError> {
        let mut meta = self.shared.meta;
        if let FrameContent::Video(picture) = &mut meta.content {
            picture.size = size;
        }
        self.lend_as(meta)
    }

    fn lend_as(&self, meta: Meta) -> Result<LentFrame, PushError> {
        let lent = self.shared.pool.lend(meta);
        let frame = lent.map_err(|error| PushError::Pool { input: self.shared.name(), error })?;
        Ok(LentFrame { frame, pts_ns: None })
    }

    /// Lends memory of the pipeline's device for a frame of the declared size.
    pub fn lend_buffer(&self) -> Result<LentFrame, PushError> {
        let device = self.shared.device().ok_or_else(|| self.shared.wrong_space(Space::Gpu))?;
        let meta = self.shared.meta;
        let lent = device.lend(meta.bytes(), &self.shared.name);
        let buffer = lent.map_err(|error| PushError::Lend { input: self.shared.name(), error })?;
        Ok(LentFrame { frame: Frame::on_device(meta, buffer), pts_ns: None })
    }

    /// Attaches a named value to a frame. The frames that are made from it have the value too.
    pub fn note<'n>(&self, frame: &mut LentFrame, key: &str, note: impl Into<Note<'n>>) -> Result<(), PushError> {
        let noted = frame.frame.note(key, note.into(), &self.shared.pool);
        noted.map_err(|error| PushError::Note { input: self.shared.name(), error })
    }

    /// Sends a frame.
    pub fn send(&self, LentFrame { frame, pts_ns }: LentFrame, wait: Wait) -> Result<(), PushError> {
        self.put(Pushed { frame: Some(frame), pts_ns }, wait)
    }

    fn put(&self, pushed: Pushed, wait: Wait) -> Result<(), PushError> {
        let shared = &self.shared;
        if let Some(space) = pushed.frame.as_ref().map(Frame::space).filter(|space| *space != shared.space_now()) {
            return Err(shared.wrong_space(space));
        }
        let waits = || match shared.waker.get().map(|waker| until(wait, waker)) {
            Some(Some(until)) => Ok(until),
            _ => Err(PushError::WouldBlock { input: shared.name() }),
        };
        let sent =
            shared.queue.send(pushed, shared.live, || waits().map_err(Refused::Error), |pushed| shared.admit(pushed));
        match sent {
            Ok(wakes) => {
                shared.wake(wakes);
                Ok(())
            }
            Err(Refused::Error(error)) => Err(error),
            Err(Refused::Gone(gone)) => Err(shared.gone(gone, wait)),
        }
    }

    /// Ends the stream. Frames that were pushed still arrive.
    pub fn close(&self) {
        let wakes = self.shared.queue.close();
        self.shared.wake(wakes);
    }

    /// Whether no further frame can be pushed.
    pub fn is_closed(&self) -> bool {
        self.shared.queue.is_shut()
    }

    pub fn counts(&self) -> InputCounts {
        let (counts, queued) = self.shared.queue.counts();
        InputCounts { pushed: counts.put, taken: counts.taken, dropped: counts.dropped, queued: queued as u64 }
    }

    fn copied(&self, bytes: &[u8]) -> Result<LentFrame, PushError> {
        self.shared.fits(self.shared.meta.picture().size, bytes.len() as u64)?;
        let mut frame = self.lend()?;
        frame.bytes_mut().copy_from_slice(bytes);
        Ok(frame)
    }

    fn shared(&self, frame: &Frame, pts_ns: Option<i64>) -> Result<Pushed, PushError> {
        let (input, expected, given) =
            (self.shared.name(), self.shared.meta.picture().format, frame.meta().picture().format);
        if expected != given {
            return Err(PushError::WrongFormat { input, expected, given });
        }
        if let (Some(buffer), Some(device)) = (frame.buffer(), self.shared.device())
            && !device.owns(buffer)
        {
            return Err(PushError::WrongDevice { input });
        }
        Ok(Pushed { frame: Some(frame.clone()), pts_ns })
    }

    fn over_buffer(&self, buffer: Buffer) -> Result<LentFrame, PushError> {
        let device = self.shared.device().ok_or_else(|| self.shared.wrong_space(Space::Gpu))?;
        if !device.owns(&buffer) {
            return Err(PushError::WrongDevice { input: self.shared.name() });
        }
        self.shared.fits(self.shared.meta.picture().size, buffer.bytes())?;
        Ok(LentFrame { frame: Frame::on_device(self.shared.meta, buffer), pts_ns: None })
    }
}

/// The outcome of a send that did not succeed.
enum Refused {
    Gone(Gone),
    Error(PushError),
}

impl From<Gone> for Refused {
    fn from(gone: Gone) -> Refused {
        Refused::Gone(gone)
    }
}

impl InputShared {
    fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn device(&self) -> Option<Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The space of the frames that can be pushed now. After a device loss, frames are pushed on the host.
    fn space_now(&self) -> Space {
        if self.space == Space::Gpu && self.device().is_some() { Space::Gpu } else { Space::Cpu }
    }

    fn wrong_space(&self, given: Space) -> PushError {
        PushError::WrongSpace { input: self.name(), expected: self.space_now(), given }
    }

    fn fits(&self, size: Size, given: u64) -> Result<(), PushError> {
        let format = self.meta.picture().format;
        let needed = format.frame_bytes(size);
        if given == needed {
            return Ok(());
        }
        Err(PushError::NotAFrame { input: self.name(), size, format, needed, given })
    }

    /// Checks the time of a frame, in the order of the queue.
    fn admit(&self, pushed: &Pushed) -> Result<(), Refused> {
        let before_ns = self.last_ns.load(Ordering::Relaxed);
        let last_ns = match pushed.pts_ns {
            None if before_ns > OF_CLOCK => Err(PushError::MixedTimes { input: self.name() }),
            Some(_) if before_ns == OF_CLOCK => Err(PushError::MixedTimes { input: self.name() }),
            Some(pts_ns) if pts_ns.unsigned_abs() > MOST_NS.unsigned_abs() => {
                Err(PushError::TooFar { input: self.name(), pts_ns })
            }
            Some(pts_ns) if pts_ns <= before_ns => Err(PushError::Backwards { input: self.name(), pts_ns, before_ns }),
            time => Ok(time.unwrap_or(OF_CLOCK)),
        };
        self.last_ns.store(last_ns.map_err(Refused::Error)?, Ordering::Relaxed);
        Ok(())
    }

    fn gone(&self, gone: Gone, wait: Wait) -> PushError {
        let input = self.name();
        match gone {
            Gone::Closed => PushError::Closed { input },
            Gone::Ended => PushError::Ended { input },
            Gone::Late => match self.waker.get().map(Waker::driven) {
                Some(Driven::NotYet | Driven::ByThisThread) | None if outlasts_start(wait) => {
                    PushError::NotStarted { input }
                }
                _ => PushError::Timeout { input },
            },
        }
    }

    fn wake(&self, wakes: bool) {
        if let Some(waker) = self.waker.get().filter(|_| wakes) {
            waker.wake();
        }
    }
}

/// A slot of the stream as the lane takes it.
pub(crate) struct Taken {
    /// `None` if the program has skipped the frame, or if the frame was on a device that is lost.
    pub(crate) frame: Option<Frame>,
    /// The slot's own time.
    pub(crate) pts_ns: Option<i64>,
}

impl InputEnd {
    pub(crate) fn keep_waker(&self, waker: &Waker) {
        let _ = self.0.waker.set(waker.clone());
    }

    pub(crate) fn has_news(&self) -> bool {
        self.0.queue.has_news()
    }

    /// The oldest slot; `None` at the end of the stream.
    pub(crate) fn take(&self) -> Option<Taken> {
        let Pushed { frame, pts_ns } = self.0.queue.take().ok()?;
        if let Some(frame) = &frame {
            frame.leave_program();
        }
        let is_lost = |buffer: &Buffer| !self.0.device().is_some_and(|device| device.owns(buffer));
        Some(Taken { frame: frame.filter(|frame| !frame.buffer().is_some_and(is_lost)), pts_ns })
    }

    pub(crate) fn enter_device(&self, device: Option<&Device>) {
        *self.0.device.lock().unwrap_or_else(PoisonError::into_inner) = device.cloned();
    }

    pub(crate) fn end(&self) {
        self.0.queue.end();
    }
}

impl Drop for InputEnd {
    fn drop(&mut self) {
        self.end();
    }
}
