//! `Frames`: the iterator over the frames of a pipeline.
//!
//! If the pipeline has one thread, the iterator steps the pipeline on the caller's thread; otherwise it pulls from the
//! threads of the run. The iteration ends with an exception if the run fails, never early.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use vramp::Step;
use vramp::handlers::app::{AppOutput, PullError};

use crate::ends;
use crate::errors::{detached, of_pull, raise};
use crate::frame::PyFrame;
use crate::live::{Live, TURN};

/// How long a stepped pipeline may be stuck because the program holds every frame.
const PATIENCE: Duration = Duration::from_secs(2);

#[pyclass(frozen, module = "vramp", name = "Frames")]
pub(crate) struct PyFrames {
    live: Arc<Live>,
    output: AppOutput,
}

impl PyFrames {
    pub(crate) fn new(live: &Arc<Live>, output: AppOutput) -> PyFrames {
        PyFrames { live: Arc::clone(live), output }
    }

    /// The next frame; `None` at the end.
    pub(crate) fn next_frame(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<PyFrame>> {
        crate::fork::check(py)?;
        if self.live.is_stepped() {
            return self.step(py, timeout);
        }
        ends::pull(py, &self.live, &self.output, false, timeout)
    }

    fn step(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<PyFrame>> {
        let live = &self.live;
        let mut stuck = None::<Instant>;
        // A loop without a timeout reads no clock.
        let until = timeout.map(|timeout| (Instant::now(), timeout));
        loop {
            // A frame in the queue does not release the GIL. After the last frame, other sinks may still have frames.
            match self.output.try_pull() {
                Ok(Some(frame)) => return Ok(Some(PyFrame::pulled(frame))),
                Ok(None) | Err(PullError::WouldBlock { .. }) => {}
                Err(error) => return Err(of_pull(py, &error)),
            }
            match detached(py, || live.stepping(vramp::Pipeline::step))? {
                Some(Ok(Step::Moved)) => stuck = None,
                Some(Ok(Step::Wait(time))) => detached(py, || std::thread::sleep(time.min(TURN)))?,
                Some(Ok(Step::Stuck)) => {
                    let since = *stuck.get_or_insert_with(Instant::now);
                    if self.output.is_held_up() && since.elapsed() >= PATIENCE {
                        return Err(of_pull(py, &self.output.all_held()));
                    }
                    detached(py, || {
                        live.stepping(vramp::Pipeline::wait_for_device);
                        if since.elapsed() > Duration::from_millis(1) {
                            std::thread::sleep(Duration::from_micros(200));
                        }
                    })?;
                }
                // The last frames may still be queued.
                Some(Ok(Step::Over)) if self.output.counts().queued > 0 => {}
                Some(Ok(Step::Over)) => {
                    detached(py, || live.end_stepping(None))?;
                    return ends::end(py, live).map(|()| None);
                }
                Some(Err(error)) => {
                    detached(py, || live.end_stepping(Some(error)))?;
                    live.check(py)?;
                }
                None => return self.gone(py).map(|()| None),
            }
            if let Err(interrupt) = py.check_signals() {
                live.stop(py)?;
                return Err(interrupt);
            }
            if until.is_some_and(|(begun, timeout)| begun.elapsed() >= timeout) {
                return Err(of_pull(py, &PullError::Timeout { output: self.output.name().into() }));
            }
        }
    }

    /// The pipeline is not stepped any more.
    fn gone(&self, py: Python<'_>) -> PyResult<()> {
        if self.live.is_running() {
            return Err(raise(py, "StateError", "another thread iterates over this pipeline"));
        }
        ends::end(py, &self.live)
    }
}

#[pymethods]
impl PyFrames {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyFrame>> {
        self.next_frame(py, None)
    }

    /// The next frame, `None` at the end; fails with `Timeout` if no frame came within this many seconds.
    #[pyo3(signature = (timeout = None))]
    fn pull(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<PyFrame>> {
        self.next_frame(py, ends::timeout_of(timeout)?)
    }
}
