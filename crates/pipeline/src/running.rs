//! [`Running`]: a pipeline on threads of its own, and the program's hold on it.
//!
//! Invariants: the outcome is given once. When the last hold is dropped, the run is stopped and has returned.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vramp_handlers::app::PulledFrame;
use vramp_runtime::{PrepareError, Report, RunOutcome, RunProgress};

use super::Error;
use super::access::Access;

/// A pipeline that runs on threads of its own; see [`Pipeline::spawn`](crate::Pipeline::spawn). The plan, the `app` ends
/// and other handles are methods of [`Access`]. Threads may share a `Running` by reference. Dropping it stops the run.
#[derive(Debug)]
pub struct Running {
    access: Access,
    started: Instant,
    result: Arc<RunResult>,
    thread: Option<JoinHandle<()>>,
}

/// Where the thread of the run leaves its result.
#[derive(Debug, Default)]
struct RunResult {
    state: Mutex<RunState>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct RunState {
    is_over: bool,
    /// Taken by the first wait.
    outcome: Option<Result<RunOutcome, PrepareError>>,
}

impl RunResult {
    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the run as over, even if its thread panics.
struct Leaves(Arc<RunResult>);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.over.notify_all();
    }
}

impl Running {
    pub(super) fn start(
        access: Access,
        run: impl FnOnce() -> Result<RunOutcome, PrepareError> + Send + 'static,
    ) -> Result<Running, Error> {
        let result = Arc::<RunResult>::default();
        let leaves = Leaves(Arc::clone(&result));
        let thread = std::thread::Builder::new().name("vramp run".to_owned()).spawn(move || {
            let outcome = run();
            leaves.0.lock().outcome = Some(outcome);
        });
        let thread = thread.map_err(|problem| PrepareError::Threads { count: 1, problem: problem.to_string() })?;
        Ok(Running { access, started: Instant::now(), result, thread: Some(thread) })
    }

    /// Pushes the bytes of a frame into the only `app` source; see [`AppInput::push`](vramp_handlers::app::AppInput::push).
    pub fn push(&self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.input("")?.push(bytes)?)
    }

    /// Pulls the next frame from the only `app` sink; see [`AppOutput::pull`](vramp_handlers::app::AppOutput::pull).
    pub fn pull(&self) -> Result<Option<PulledFrame>, Error> {
        Ok(self.output("")?.pull()?)
    }

    /// The progress of the run so far.
    pub fn progress(&self) -> RunProgress {
        self.watch().progress(self.started.elapsed())
    }

    /// Ends the sources; frames in flight still arrive. Frames that wait in an `app` source are dropped and counted; to
    /// let them arrive, close the input instead.
    pub fn finish(&self) {
        self.stopper().finish();
    }

    /// Stops at once. Queued frames are dropped and counted.
    pub fn stop(&self) {
        self.stopper().stop();
    }

    pub fn is_over(&self) -> bool {
        self.result.lock().is_over
    }

    /// Waits for the end of the run. The outcome is returned once; a later call returns [`Error::HasRun`].
    pub fn wait(&self) -> Result<Report, Error> {
        self.outcome(None).unwrap_or(Err(Error::HasRun)).and_then(|outcome| Ok(outcome.into_result()?))
    }

    /// As [`Running::wait`], but returns `None` if the run is not over after this time.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<Report, Error>> {
        Some(self.outcome(Some(timeout))?.and_then(|outcome| Ok(outcome.into_result()?)))
    }

    /// As [`Running::wait_timeout`], but returns the report even if the run failed.
    pub fn outcome_timeout(&self, timeout: Duration) -> Option<Result<RunOutcome, Error>> {
        self.outcome(Some(timeout))
    }

    fn outcome(&self, timeout: Option<Duration>) -> Option<Result<RunOutcome, Error>> {
        let state = self.result.lock();
        let mut state = match timeout {
            None => self.result.over.wait_while(state, |state| !state.is_over).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => {
                let waited = self.result.over.wait_timeout_while(state, timeout, |state| !state.is_over);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if !state.is_over {
            return None;
        }
        Some(state.outcome.take().map_or(Err(Error::HasRun), |outcome| Ok(outcome?)))
    }
}

impl Deref for Running {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the run's thread has been reported by its panic message.
            let _ = thread.join();
        }
    }
}
