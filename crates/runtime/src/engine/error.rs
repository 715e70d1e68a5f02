//! Why a plan cannot be prepared, why a run fails, and how a run ended.

use std::time::Duration;

use crate::failure::HandlerFailure;
use crate::handler::{DeviceError, HandlerError};
use crate::observe::report::Report;

#[cfg(not(target_arch = "wasm32"))]
use super::Kept;

/// Why a plan could not be made ready to run.
#[derive(thiserror::Error)]
pub enum PrepareError {
    #[error("{handler}: `{what}` can be planned, but it cannot run yet; {instead}")]
    NotBuilt {
        handler: String,
        /// The kind, with the unsupported setting if other settings do run.
        what: String,
        /// An alternative that does run.
        instead: String,
    },
    /// The maker of a handler refused the handler's settings.
    #[error("{handler}: {error}")]
    Make {
        handler: String,
        #[source]
        error: HandlerError,
    },
    #[error("{handler} is planned on the GPU, but no device was opened; open one, or plan for the CPU only")]
    NoDevice {
        /// A handler that is planned on the device.
        handler: String,
    },
    #[error("{handler}: {error}")]
    Device {
        /// The handler whose kernel or memory was refused.
        handler: String,
        #[source]
        error: DeviceError,
    },
    /// The plan fuses a handler that has no kernel.
    #[error("{handler} is planned as part of a fused kernel, but it works on whole frames; its entry must say so")]
    NotPixels { handler: String },
    /// A handler of pixels has a port for something else.
    #[error("{handler}: its kernels compute pictures, but {port} carries {content}; make it a `FrameHandler`")]
    NotPictures { handler: String, port: String, content: String },
    /// The first input or the lead of a handler of pixels carries data.
    #[error(
        "{handler}: its kernels compute pictures, but {port} carries data; only inputs after the first that do not lead \
         may carry data, so declare the pictures first and let one of them lead"
    )]
    LedByData { handler: String, port: String },
    #[error("{from} -> {to} carries audio, which can be planned but does not run; remove the link")]
    Audio { from: String, to: String },
    #[error("could not start {count} threads: {problem}; use fewer threads (`--threads`)")]
    Threads { count: usize, problem: String },
}

vramp_plan::debug_as_display!(PrepareError);

impl PrepareError {
    /// The handler that the error is about; `None` if the error is about no single handler.
    pub fn handler(&self) -> Option<&str> {
        match self {
            PrepareError::NotBuilt { handler, .. }
            | PrepareError::Make { handler, .. }
            | PrepareError::NoDevice { handler }
            | PrepareError::Device { handler, .. }
            | PrepareError::NotPictures { handler, .. }
            | PrepareError::LedByData { handler, .. }
            | PrepareError::NotPixels { handler } => Some(handler),
            PrepareError::Threads { .. } | PrepareError::Audio { .. } => None,
        }
    }
}

/// Why a run failed. The report states what the run did until it failed.
#[derive(thiserror::Error)]
pub enum RunError {
    /// A handler failed and its policy is to stop the run.
    #[error(transparent)]
    Failed(HandlerFailure),
    /// A handler did not return after the run was stopped. Rust cannot end a thread, so the handler's thread is
    /// abandoned.
    #[error(
        "{} did not return within {waited:?} after the stop; every thread that does not return is abandoned",
        .handlers.join(", ")
    )]
    Unresponsive { handlers: Vec<String>, waited: Duration },
}

vramp_plan::debug_as_display!(RunError);

impl RunError {
    pub fn handler(&self) -> Option<&str> {
        match self {
            RunError::Failed(failure) => Some(&failure.handler),
            RunError::Unresponsive { .. } => None,
        }
    }
}

#[derive(Debug)]
pub struct RunOutcome {
    pub report: Report,
    pub error: Option<RunError>,
    /// Whether the run was stopped from outside before its sources had ended.
    pub stopped: bool,
    /// What a succeeding engine takes over, if the engine ended for that.
    #[doc(hidden)]
    #[cfg(not(target_arch = "wasm32"))]
    pub kept: Option<Kept>,
}

impl RunOutcome {
    /// The report, unless the run failed.
    pub fn into_result(self) -> Result<Report, RunError> {
        match self.error {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}
