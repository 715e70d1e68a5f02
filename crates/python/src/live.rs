//! One pipeline through its life: ready, then stepped on the caller's thread or run on threads of its own, then over.
//!
//! Waits happen without the GIL and in short turns, so that Ctrl-C is noticed. A run that is interrupted is stopped, and
//! its files are whole.
//!
//! Invariants: no lock of this file is held while waiting for the GIL, and no thread is joined with the GIL held, because
//! a lane may need the GIL to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use vramp::runtime::{Report, RunOutcome, Stopper};
use vramp::{Error, Pipeline, Running};

use crate::errors::{detached, guarded, of_pipeline, raise};
use crate::fork;

/// How long a wait lasts before Python's signals are looked at.
pub(crate) const TURN: Duration = Duration::from_millis(50);

/// How long an interrupted call waits for the run to end.
const ENDING: Duration = Duration::from_millis(900);

pub(crate) enum State {
    Ready(Box<Pipeline>),
    /// Stepped on the thread of the caller.
    Stepping(Box<Pipeline>),
    /// A thread is inside a step.
    Busy,
    Running(Arc<Running>),
    Over,
}

/// How a run ended.
#[derive(Default)]
pub(crate) struct Ending {
    pub(crate) report: Option<Report>,
    error: Option<Error>,
    /// The exception that was made from the error. Callers get copies: an exception that was raised keeps the frames
    /// that it went through, and so this pipeline.
    raised: Option<PyErr>,
    is_known: bool,
}

/// A pipeline, shared by the objects that use it.
pub(crate) struct Live {
    state: Mutex<State>,
    stopper: Stopper,
    ending: Mutex<Ending>,
    /// Since the first step or the start of the threads.
    started: Mutex<Option<Instant>>,
    /// Whether the caller stopped the run.
    closed: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every pipeline that is not over, to stop it before the interpreter ends.
static ALL: Mutex<Vec<Weak<Live>>> = Mutex::new(Vec::new());

impl Live {
    pub(crate) fn new(pipeline: Pipeline) -> Arc<Live> {
        let stopper = pipeline.stopper();
        let live = Arc::new(Live {
            state: Mutex::new(State::Ready(Box::new(pipeline))),
            stopper,
            ending: Mutex::default(),
            started: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        let mut all = lock(&ALL);
        if all.len() == all.capacity() {
            all.retain(|other| other.strong_count() > 0);
        }
        all.push(Arc::downgrade(&live));
        live
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(*lock(&self.state), State::Ready(_))
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(*lock(&self.state), State::Running(_) | State::Stepping(_) | State::Busy)
    }

    pub(crate) fn is_stepped(&self) -> bool {
        matches!(*lock(&self.state), State::Stepping(_))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        lock(&self.started).map(|started| started.elapsed()).unwrap_or_default()
    }

    pub(crate) fn ending(&self) -> MutexGuard<'_, Ending> {
        lock(&self.ending)
    }

    /// Starts the run on threads of its own, if it was not started.
    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        fork::check(py)?;
        let spawned = detached(py, || {
            let mut state = lock(&self.state);
            match std::mem::replace(&mut *state, State::Over) {
                State::Ready(pipeline) => {
                    *lock(&self.started) = Some(Instant::now());
                    let running = pipeline.spawn()?;
                    *state = State::Running(Arc::new(running));
                }
                other => *state = other,
            }
            Ok(())
        })?;
        spawned.map_err(|error| of_pipeline(py, error))
    }

    /// From now on, the caller's thread steps the pipeline.
    pub(crate) fn begin_stepping(&self) {
        let mut state = lock(&self.state);
        *state = match std::mem::replace(&mut *state, State::Over) {
            State::Ready(pipeline) => {
                *lock(&self.started) = Some(Instant::now());
                State::Stepping(pipeline)
            }
            other => other,
        };
    }

    /// Works with a stepped pipeline; `None` if the pipeline is not stepped any more, or if another thread steps it. The
    /// caller has released the GIL. The lock is not held meanwhile, because a handler may wait for the GIL.
    pub(crate) fn stepping<R>(&self, work: impl FnOnce(&mut Pipeline) -> R) -> Option<R> {
        let mut pipeline = self.take_stepped(State::Busy)?;
        let result = work(&mut pipeline);
        *lock(&self.state) = State::Stepping(pipeline);
        Some(result)
    }

    fn take_stepped(&self, instead: State) -> Option<Box<Pipeline>> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, instead) {
            State::Stepping(pipeline) => Some(pipeline),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Keeps the error of a step and finishes the pipeline.
    pub(crate) fn end_stepping(&self, error: Option<Error>) {
        let Some(mut pipeline) = self.take_stepped(State::Over) else { return };
        let (report, late) = match pipeline.finish() {
            Ok(report) => (Some(report), None),
            Err(error) => (None, Some(error)),
        };
        drop(pipeline);
        self.keep(report, error.or(late));
    }

    fn keep(&self, report: Option<Report>, error: Option<Error>) {
        let mut ending = self.ending();
        ending.report = report;
        ending.error = error;
        ending.is_known = true;
    }

    /// Waits for the end of a run on threads; without the GIL. Returns whether the run is over.
    pub(crate) fn wait_once(&self, turn: Duration) -> bool {
        let running = match &*lock(&self.state) {
            State::Running(running) => Arc::clone(running),
            State::Over => return true,
            State::Ready(_) | State::Stepping(_) | State::Busy => return false,
        };
        let Some(outcome) = running.outcome_timeout(turn) else { return false };
        match outcome {
            Ok(RunOutcome { report, error, .. }) => self.keep(Some(report), error.map(Error::Run)),
            // Another thread has the outcome and is about to keep it.
            Err(Error::HasRun) => {
                drop(running);
                std::thread::yield_now();
                return self.ending().is_known;
            }
            Err(error) => self.keep(None, Some(error)),
        }
        let last = std::mem::replace(&mut *lock(&self.state), State::Over);
        drop(last);
        drop(running);
        true
    }

    /// Waits until the run is over, at most this long. Returns whether it is over. An interrupt stops the run.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        timeout: Option<Duration>,
        mut each_turn: impl FnMut(Python<'_>) -> PyResult<()>,
    ) -> PyResult<bool> {
        let begun = Instant::now();
        loop {
            let left = timeout.map_or(TURN, |timeout| timeout.saturating_sub(begun.elapsed()).min(TURN));
            if detached(py, || self.wait_once(left))? {
                return Ok(true);
            }
            if let Err(interrupt) = py.check_signals().and_then(|()| each_turn(py)) {
                self.stop(py)?;
                return Err(interrupt);
            }
            if timeout.is_some_and(|timeout| begun.elapsed() >= timeout) {
                return Ok(false);
            }
        }
    }

    /// The failure of the run, if it failed.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let error = {
            let mut ending = self.ending();
            if let Some(raised) = &ending.raised {
                return Err(copy_of(py, raised));
            }
            ending.error.take()
        };
        let Some(error) = error else { return Ok(()) };
        let made = of_pipeline(py, error);
        self.ending().raised = Some(copy_of(py, &made));
        Err(made)
    }

    /// Lets the sources end; frames in flight still arrive.
    pub(crate) fn finish(&self) {
        self.stopper.finish();
    }

    /// Stops the run and waits for its end, at most about a second.
    pub(crate) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.closed.store(true, Ordering::Release);
        detached(py, || self.stop_detached())
    }

    /// Whether the caller has stopped the run.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// As [`Live::stop`], without the GIL.
    fn stop_detached(&self) {
        self.stopper.stop();
        let begun = Instant::now();
        if self.is_stepped() {
            self.end_stepping(None);
        }
        while !self.wait_once(TURN) && begun.elapsed() < ENDING && !self.is_ready() {}
    }

    /// Ends a pipeline whose last user is gone.
    fn drop_detached(state: State, stopper: &Stopper) {
        stopper.stop();
        if let State::Stepping(mut pipeline) = state {
            // The report has no reader any more. Files are finished here.
            let _ = pipeline.finish();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Over);
        if matches!(state, State::Over) {
            return;
        }
        if fork::is_child() {
            // The threads of the run exist only in the parent, so that joining them would not end.
            std::mem::forget(state);
            return;
        }
        let stopper = &self.stopper;
        let mut left = Some(state);
        let dropped = Python::try_attach(|py| {
            let state = left.take();
            guarded(py, || py.detach(|| state.map(|state| Live::drop_detached(state, stopper))))
        });
        if dropped.is_none() {
            // The interpreter is ending, and `at_exit` has stopped the run.
            std::mem::forget(left);
        }
    }
}

/// Stops every pipeline, because the interpreter is about to end.
pub(crate) fn stop_all(py: Python<'_>) -> PyResult<()> {
    if fork::is_child() {
        return Ok(());
    }
    detached(py, || {
        let all: Vec<Arc<Live>> = lock(&ALL).iter().filter_map(Weak::upgrade).collect();
        for live in all.iter().filter(|live| live.is_running()) {
            live.stopper.stop();
        }
        for live in &all {
            live.stop_detached();
        }
        // Dropped here, without the GIL.
        drop(all);
    })
}

/// The pipeline was stopped by the program, so that no frame will come.
pub(crate) fn stopped(py: Python<'_>) -> PyErr {
    raise(py, "StateError", "the pipeline was stopped; build it again to run it again")
}

/// An exception with the same facts and cause that has not been raised.
fn copy_of(py: Python<'_>, error: &PyErr) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let copy = PyErr::from_value(py.import("copy")?.call_method1("copy", (error.value(py),))?);
        copy.set_cause(py, error.cause(py));
        Ok(copy)
    };
    made().unwrap_or_else(|_| error.clone_ref(py))
}
