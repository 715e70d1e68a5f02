//! Pushing and pulling: the program's ends of a pipeline.
//!
//! Every wait is without the GIL and ends at an interrupt.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use vramp::handlers::app::{AppInput, AppOutput, PullError, PulledFrame, PushError, Wait};
use vramp::plan::Size;
use vramp::runtime::{Frame, FrameContent, Meta};

use crate::buffer::{Given, Layout, fill_frame};
use crate::errors::{detached, of_pull, of_push, raise};
use crate::frame::{Held, PyFrame};
use crate::live::{Live, TURN, stopped};

/// How long a pull waits while the program holds all frames that it may hold, before it reports that.
const PATIENCE: Duration = Duration::from_secs(2);

/// Frames of more bytes are copied without the GIL.
const LARGE: usize = 1 << 16;

/// A timeout in seconds.
pub(crate) fn timeout_of(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let wrong = || pyo3::exceptions::PyValueError::new_err("a timeout is a number of seconds, 0 or more");
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).map_err(|_| wrong())).transpose()
}

/// Pulls a frame. `None` at the end of the stream of a run that has not failed.
pub(crate) fn pull(
    py: Python<'_>,
    live: &Live,
    output: &AppOutput,
    newest: bool,
    timeout: Option<Duration>,
) -> PyResult<Option<PyFrame>> {
    // A frame that is there needs no release of the GIL.
    let mut pulled = if newest { Err(PullError::WouldBlock { output: "".into() }) } else { output.try_pull() };
    let begun = Instant::now();
    let mut held_up = None;
    loop {
        match pulled {
            Ok(Some(frame)) => return Ok(Some(PyFrame::pulled(frame))),
            Ok(None) => return end(py, live).map(|()| None),
            Err(PullError::WouldBlock { .. } | PullError::Timeout { .. }) => {}
            Err(error) => return Err(of_pull(py, &error)),
        }
        if let Err(interrupt) = py.check_signals() {
            live.stop(py)?;
            return Err(interrupt);
        }
        let waited = begun.elapsed();
        if timeout.is_some_and(|timeout| waited >= timeout) {
            return Err(of_pull(py, &PullError::Timeout { output: output.name().into() }));
        }
        held_up = output.is_held_up().then(|| held_up.unwrap_or_else(Instant::now));
        if held_up.is_some_and(|since: Instant| since.elapsed() >= PATIENCE) {
            return Err(of_pull(py, &output.all_held()));
        }
        let turn = timeout.map_or(TURN, |timeout| timeout.saturating_sub(waited).min(TURN));
        pulled = detached(py, || pull_once(output, newest, turn))?;
    }
}

fn pull_once(output: &AppOutput, newest: bool, turn: Duration) -> Result<Option<PulledFrame>, PullError> {
    if !newest {
        return output.pull_timeout(turn);
    }
    // The newest frame, once there is one.
    match output.pull_timeout(turn)? {
        Some(frame) if output.counts().queued > 0 => {
            drop(frame);
            output.latest()
        }
        frame => Ok(frame),
    }
}

/// After the last frame: waits for the end of the run, and fails if the run failed.
pub(crate) fn end(py: Python<'_>, live: &Live) -> PyResult<()> {
    if !live.is_stepped() {
        live.wait(py, None, |_| Ok(()))?;
    }
    live.check(py)?;
    if live.is_closed() { Err(stopped(py)) } else { Ok(()) }
}

/// Pushes a frame without a copy, or an array with one copy.
pub(crate) fn push(
    py: Python<'_>,
    live: &Live,
    input: &AppInput,
    frame: &Bound<'_, PyAny>,
    pts_ns: Option<i64>,
    timeout: Option<Duration>,
) -> PyResult<()> {
    let frame = if let Ok(own) = frame.cast::<PyFrame>() {
        if own.get().is_writable() {
            return Err(PyTypeError::new_err("a lent frame is sent by the end of its `with` block, not by `push`"));
        }
        own.get().shared().ok_or_else(|| raise(py, "StateError", "the frame was sent"))?
    } else {
        copied(py, input, frame)?
    };
    send(py, live, input, &frame, pts_ns, timeout)
}

/// A frame of the pipeline's memory with the values of an array.
fn copied(py: Python<'_>, input: &AppInput, array: &Bound<'_, PyAny>) -> PyResult<Frame> {
    let given = Given::of(array, "an array or a frame")?;
    let declared = input.size();
    // A picture of another size is a change of the size.
    let size = match *given.shape() {
        [height, width] | [height, width, _] => Size::new(width as u32, height as u32).unwrap_or(declared),
        _ => declared,
    };
    let meta = Meta::new(input.format(), size);
    let layout = Layout::of(&meta);
    let lent = if size == declared { input.lend() } else { input.lend_sized(size) };
    let mut lent = lent.map_err(|error| of_push(py, &error))?;
    let name = input.name();
    if layout.dense_bytes() < LARGE {
        fill_frame(&mut lent.bytes_mut(), &layout, &given, name)?;
    } else {
        detached(py, || fill_frame(&mut lent.bytes_mut(), &layout, &given, name))??;
    }
    drop(given);
    Ok(lent.into())
}

/// Sends a frame, with waits that end at an interrupt.
pub(crate) fn send(
    py: Python<'_>,
    live: &Live,
    input: &AppInput,
    frame: &Frame,
    pts_ns: Option<i64>,
    timeout: Option<Duration>,
) -> PyResult<()> {
    let begun = Instant::now();
    let mut sent = input.forward_within(frame, pts_ns, Wait::Never);
    loop {
        match sent {
            Ok(()) => return Ok(()),
            Err(PushError::WouldBlock { .. } | PushError::Timeout { .. }) => {}
            Err(PushError::Ended { .. }) => {
                // The run tells why it ended.
                live.wait(py, Some(PATIENCE), |_| Ok(()))?;
                live.check(py)?;
                return Err(raise(py, "StateError", &format!("{}: the pipeline has ended", input.name())));
            }
            Err(error) => return Err(of_push(py, &error)),
        }
        if let Err(interrupt) = py.check_signals() {
            live.stop(py)?;
            return Err(interrupt);
        }
        let waited = begun.elapsed();
        if timeout.is_some_and(|timeout| waited >= timeout) {
            return Err(of_push(py, &PushError::Timeout { input: input.name().into() }));
        }
        let turn = timeout.map_or(TURN, |timeout| timeout.saturating_sub(waited).min(TURN));
        sent = detached(py, || input.forward_within(frame, pts_ns, Wait::For(turn)))?;
    }
}

/// The `with` block around a frame in the pipeline's memory: the frame is sent at the end of the block, or dropped if the
/// block raises.
#[pyclass(frozen, module = "vramp", name = "Lend")]
pub(crate) struct PyLend {
    live: std::sync::Arc<Live>,
    input: AppInput,
    frame: Py<PyFrame>,
    pts_ns: Option<i64>,
    timeout: Option<Duration>,
}

impl PyLend {
    pub(crate) fn new(
        py: Python<'_>,
        live: &std::sync::Arc<Live>,
        input: AppInput,
        size: Option<Size>,
        pts_ns: Option<i64>,
        timeout: Option<Duration>,
    ) -> PyResult<PyLend> {
        let size = size.unwrap_or_else(|| input.size());
        let lent = if size == input.size() { input.lend() } else { input.lend_sized(size) };
        let lent = lent.map_err(|error| of_push(py, &error))?;
        let meta = Meta::with(FrameContent::Video(*Meta::new(input.format(), size).picture()));
        let frame = Py::new(py, PyFrame::lent(lent, meta))?;
        Ok(PyLend { live: std::sync::Arc::clone(live), input, frame, pts_ns, timeout })
    }
}

#[pymethods]
impl PyLend {
    fn __enter__(&self, py: Python<'_>) -> Py<PyFrame> {
        self.frame.clone_ref(py)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        let own = self.frame.get();
        // The block may have kept an array of the frame, with which it could write to memory of the pipeline.
        let kept = own.is_viewed();
        let copy = if kept { own.with_bytes(<[u8]>::to_vec) } else { None };
        if kept && !kind.is_none() {
            return Ok(());
        }
        let frame: Frame = if let Some(bytes) = copy {
            let size = own.meta().picture().size;
            let mut lent = self.input.lend_sized(size).map_err(|error| of_push(py, &error))?;
            lent.bytes_mut().copy_from_slice(&bytes);
            lent.into()
        } else {
            match std::mem::replace(&mut *own.held(), Held::Sent) {
                Held::Lent(lent) if kind.is_none() => lent.into(),
                Held::Lent(_) => return Ok(()),
                _ => return Err(raise(py, "StateError", "the lent frame was sent already")),
            }
        };
        send(py, &self.live, &self.input, &frame, self.pts_ns, self.timeout)
    }
}
