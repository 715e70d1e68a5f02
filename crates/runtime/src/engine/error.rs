//! Why a plan cannot be prepared, why a run fails, and how a run ended.

use std::time::Duration;

use crate::failure::HandlerFailure;
use crate::handler::{DeviceError, HandlerError};
use crate::observe::report::Report;

/// Why a plan could not be made ready to run.
#[derive(thiserror::Error)]
pub enum PrepareError {
    /// A handler exists as a plan only.
    #[error("{handler}: `{what}` can be planned, but it cannot run yet; {instead}")]
    NotBuilt {
        /// Which handler.
        handler: String,
        /// Its kind, with the setting that asks for it where others run.
        what: String,
        /// What does run.
        instead: String,
    },
    /// A handler could not be made from its settings.
    #[error("{handler}: {error}")]
    Make {
        /// Which handler.
        handler: String,
        /// What it said.
        #[source]
        error: HandlerError,
    },
    /// The plan uses a device and there is none.
    #[error("{handler} is planned on the gpu and no device was opened; open one, or plan with the cpu only")]
    NoDevice {
        /// A handler on the device.
        handler: String,
    },
    /// The device would not take the pipeline.
    #[error("{handler}: {error}")]
    Device {
        /// Whose kernel or memory it was about.
        handler: String,
        /// What it said.
        #[source]
        error: DeviceError,
    },
    /// A plan joins handlers into one kernel of which one has none.
    #[error("{handler} is planned as part of a kernel, but works on whole frames; its entry should say so")]
    NotPixels {
        /// Which handler.
        handler: String,
    },
    /// There are no threads to be had.
    #[error("could not start {count} threads: {problem}; ask for fewer with `--threads`")]
    Threads {
        /// How many.
        count: usize,
        /// What the system said.
        problem: String,
    },
}

vramp_plan::debug_as_display!(PrepareError);

impl PrepareError {
    /// The handler that it is about, where it is about one.
    pub fn handler(&self) -> Option<&str> {
        match self {
            PrepareError::NotBuilt { handler, .. }
            | PrepareError::Make { handler, .. }
            | PrepareError::NoDevice { handler }
            | PrepareError::Device { handler, .. }
            | PrepareError::NotPixels { handler } => Some(handler),
            PrepareError::Threads { .. } => None,
        }
    }
}

/// Why a run failed. What it did until then is in the report.
#[derive(thiserror::Error)]
pub enum RunError {
    /// A handler failed, and its policy is to stop the run.
    #[error(transparent)]
    Failed(HandlerFailure),
    /// A handler did not come back when the run was to stop.
    #[error("{} did not come back within {waited:?} of being asked to stop; it is left behind", .handlers.join(", "))]
    Unresponsive {
        /// Which handlers.
        handlers: Vec<String>,
        /// How long they were waited for.
        waited: Duration,
    },
}

vramp_plan::debug_as_display!(RunError);

impl RunError {
    /// The handler that failed, where one did.
    pub fn handler(&self) -> Option<&str> {
        match self {
            RunError::Failed(failure) => Some(&failure.handler),
            RunError::Unresponsive { .. } => None,
        }
    }
}

/// How a run ended, and what it did until then.
#[derive(Debug)]
pub struct RunOutcome {
    /// What it did.
    pub report: Report,
    /// Why it failed, if it did.
    pub error: Option<RunError>,
    /// Whether it was stopped from outside before its sources had ended.
    pub stopped: bool,
}

impl RunOutcome {
    /// The report of a run that did not fail.
    pub fn into_result(self) -> Result<Report, RunError> {
        match self.error {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}
