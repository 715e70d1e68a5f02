//! The program's end of an `app` sink.
//!
//! Invariants: frames come in the order in which they reached the sink. Frames are pulled, dropped and counted, or
//! queued. The program holds at most `hold` frames; a pull that waits only for the program itself ends in an error.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use vramp_runtime::observe::EndCounts;
use vramp_runtime::{Driven, Frame, Owner, Setup, Waker};

use super::hand_over::{Gone, HandOver};
use super::{Wait, outlasts_start, until};

/// Frames between the lane and the program. More frames would only wait, in memory that is no longer in the cache.
const QUEUED: usize = 2;

/// How long a pull waits for a frame while the program holds all frames that it may hold.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why no frame was pulled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    #[error("{output} has no frame yet; step the pipeline, or pull again later")]
    WouldBlock { output: Arc<str> },
    #[error("{output} had no frame in time")]
    Timeout { output: Arc<str> },
    #[error("{output} has no frame, because its pipeline does not run; call `spawn`, `run` or `step` first")]
    NotStarted { output: Arc<str> },
    #[error(
        "{output}: the program holds all {hold} frames that it may hold, so no other frame can come; drop a frame \
         before the next pull, or set `hold` to a larger number"
    )]
    AllHeld { output: Arc<str>, hold: usize },
}

/// What happened to the frames of a sink. `arrived = pulled + dropped + queued` always holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputCounts {
    pub arrived: u64,
    pub pulled: u64,
    /// Frames that [`AppOutput::latest`] passed over, and frames that came after [`AppOutput::close`].
    pub dropped: u64,
    pub queued: u64,
}

/// Pulls frames from an `app` sink, from any thread. Clones pull from the same sink.
#[derive(Debug, Clone)]
pub struct AppOutput {
    shared: Arc<OutputShared>,
}

/// The lane's view of an [`AppOutput`].
#[derive(Debug)]
pub(crate) struct OutputEnd(Arc<OutputShared>);

#[derive(Debug)]
struct OutputShared {
    name: Arc<str>,
    queue: HandOver<Frame>,
    waker: OnceLock<Waker>,
    hold: usize,
    /// The program, in the ledger of the pipeline's memory.
    program: Owner,
}

/// A frame in the program's hands. Its memory returns to the pipeline when the last clone of the frame is dropped.
#[derive(Debug)]
pub struct PulledFrame {
    frame: Option<Frame>,
    from: Arc<OutputShared>,
}

impl Deref for PulledFrame {
    type Target = Frame;

    fn deref(&self) -> &Frame {
        self.frame.as_ref().expect("the frame is taken only by `drop`")
    }
}

impl Drop for PulledFrame {
    fn drop(&mut self) {
        // The memory is returned first, so that the woken lane finds it.
        self.frame = None;
        let wakes = self.from.queue.release();
        self.from.wake(wakes);
    }
}

impl AppOutput {
    /// The end of the sink that is being made, published under the name of the sink.
    pub(crate) fn of(setup: &Setup<'_>, hold: usize) -> AppOutput {
        let shared = OutputShared {
            name: setup.name.into(),
            queue: HandOver::new(QUEUED),
            waker: OnceLock::new(),
            hold,
            program: setup.pool.enter_outside(setup.name),
        };
        let output = AppOutput { shared: Arc::new(shared) };
        setup.publish(output.clone());
        let counted = output.clone();
        setup.count_frames(move || {
            let OutputCounts { arrived, pulled, dropped, queued } = counted.counts();
            EndCounts::Out { arrived, pulled, dropped, queued }
        });
        output
    }

    pub(crate) fn end(&self) -> OutputEnd {
        OutputEnd(Arc::clone(&self.shared))
    }

    /// The name of the sink.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The next frame. Waits until a frame comes. `None` at the end of the stream.
    pub fn pull(&self) -> Result<Option<PulledFrame>, PullError> {
        self.receive(false, Wait::Forever)
    }

    /// As [`AppOutput::pull`], but gives up after this time.
    pub fn pull_timeout(&self, timeout: Duration) -> Result<Option<PulledFrame>, PullError> {
        self.receive(false, Wait::For(timeout))
    }

    /// As [`AppOutput::pull`], but returns [`PullError::WouldBlock`] instead of waiting.
    pub fn try_pull(&self) -> Result<Option<PulledFrame>, PullError> {
        self.receive(false, Wait::Never)
    }

    /// The newest frame. Older frames that were not pulled are dropped and counted. Waits until a frame comes. `None` at
    /// the end of the stream.
    pub fn latest(&self) -> Result<Option<PulledFrame>, PullError> {
        self.receive(true, Wait::Forever)
    }

    /// All frames up to the end of the stream.
    pub fn iter(&self) -> Frames<'_> {
        Frames { output: self, failed: false }
    }

    /// Lets the pipeline drop and count all frames from now on.
    pub fn close(&self) {
        let wakes = self.shared.queue.end();
        self.shared.wake(wakes);
    }

    pub fn counts(&self) -> OutputCounts {
        let (counts, queued) = self.shared.queue.counts();
        OutputCounts { arrived: counts.put, pulled: counts.taken, dropped: counts.dropped, queued: queued as u64 }
    }

    fn receive(&self, newest: bool, wait: Wait) -> Result<Option<PulledFrame>, PullError> {
        let shared = &self.shared;
        // The program cannot drop a frame while all of its threads wait here, so every wait looks at that from time to
        // time.
        let mut left = wait;
        loop {
            let turn = match left {
                Wait::Forever => Wait::For(PATIENCE),
                Wait::For(time) => Wait::For(time.min(PATIENCE)),
                Wait::Never => Wait::Never,
            };
            let waits = || match shared.waker.get().map(|waker| until(turn, waker)) {
                Some(Some(until)) => Ok(until),
                _ => Err(Refused::WouldBlock),
            };
            let refused = match shared.queue.receive(newest, waits) {
                Ok((frame, wakes)) => {
                    shared.wake(wakes);
                    let Some(frame) = frame else { return Ok(None) };
                    return Ok(Some(PulledFrame { frame: Some(frame), from: Arc::clone(shared) }));
                }
                Err(refused) => refused,
            };
            let goes_on = matches!(refused, Refused::Late) && shared.is_running() && !self.is_held_up();
            left = match left {
                Wait::Forever if goes_on => Wait::Forever,
                Wait::For(time) if goes_on && time > PATIENCE => Wait::For(time.saturating_sub(PATIENCE)),
                _ => return Err(self.refusal(refused, left)),
            };
        }
    }

    /// Whether the program holds all frames that it may hold and has pulled every frame that came, so that no other frame
    /// can come.
    pub fn is_held_up(&self) -> bool {
        self.shared.queue.is_held_up(self.shared.hold)
    }

    /// The error of a pull that waits only for the program itself, for programs that limit their waits on their own.
    pub fn all_held(&self) -> PullError {
        PullError::AllHeld { output: Arc::clone(&self.shared.name), hold: self.shared.hold }
    }

    fn refusal(&self, refused: Refused, wait: Wait) -> PullError {
        let output = Arc::clone(&self.shared.name);
        let waited_long = match wait {
            Wait::Forever => true,
            Wait::For(time) => time >= PATIENCE,
            Wait::Never => false,
        };
        match refused {
            Refused::WouldBlock => PullError::WouldBlock { output },
            Refused::Late if !self.shared.is_running() && outlasts_start(wait) => PullError::NotStarted { output },
            Refused::Late if waited_long && self.is_held_up() => self.all_held(),
            Refused::Late => PullError::Timeout { output },
        }
    }
}

#[derive(Clone, Copy)]
enum Refused {
    WouldBlock,
    Late,
}

impl From<Gone> for Refused {
    fn from(_: Gone) -> Refused {
        Refused::Late
    }
}

impl OutputShared {
    fn wake(&self, wakes: bool) {
        if let Some(waker) = self.waker.get().filter(|_| wakes) {
            waker.wake();
        }
    }

    fn is_running(&self) -> bool {
        self.waker.get().is_some_and(|waker| waker.driven() == Driven::ByOtherThreads)
    }
}

impl OutputEnd {
    pub(crate) fn keep_waker(&self, waker: &Waker) {
        let _ = self.0.waker.set(waker.clone());
    }

    /// Whether the sink can take a frame while it keeps `pending` frames that the device has not finished.
    pub(crate) fn has_room(&self, pending: usize) -> bool {
        self.0.queue.has_room(self.0.hold, pending)
    }

    pub(crate) fn put(&self, frame: Frame) {
        frame.hand_to(self.0.program);
        self.0.queue.put(frame);
    }

    /// Ends the stream. Queued frames can still be pulled.
    pub(crate) fn close(&self) {
        self.0.queue.close();
    }
}

impl Drop for OutputEnd {
    fn drop(&mut self) {
        self.close();
    }
}

/// The frames of an output, up to the end of the stream. Ends after an error.
#[derive(Debug)]
pub struct Frames<'a> {
    output: &'a AppOutput,
    failed: bool,
}

impl Iterator for Frames<'_> {
    type Item = Result<PulledFrame, PullError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let pulled = self.output.pull().transpose();
        self.failed = matches!(pulled, Some(Err(_)));
        pulled
    }
}

impl<'a> IntoIterator for &'a AppOutput {
    type Item = Result<PulledFrame, PullError>;
    type IntoIter = Frames<'a>;

    fn into_iter(self) -> Frames<'a> {
        self.iter()
    }
}
