//! Failures: which handler failed, on which frame, and what it said.
//!
//! Owns the context of an error, and the turning of a panic into one.
//! Does not decide what follows: the policy of the handler does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vramp_plan::OnError;

use crate::handler::HandlerError;
use crate::link::ring::DropReason;

/// A handler's failure, with its context.
#[derive(Debug, thiserror::Error)]
#[error("{handler}, frame {frame}: {error}")]
pub struct HandlerFailure {
    /// Which handler.
    pub handler: String,
    /// The number of the frame it failed on.
    pub frame: u64,
    /// What it said.
    #[source]
    pub error: HandlerError,
}

impl HandlerFailure {
    /// Why frames that wait are dropped for it.
    pub(crate) fn drops(&self) -> DropReason {
        let lost = self.error.trouble().is_some() || matches!(self.error, HandlerError::NoTwin { .. });
        if lost { DropReason::DeviceLost } else { DropReason::Error }
    }
}

/// A handler of a node: several where they are fused.
#[derive(Debug, Clone)]
pub struct NodeMember {
    /// Its name.
    pub name: String,
    /// What happens when it fails.
    pub on_error: OnError,
}

/// Calls a handler; a panic in it is an error of its own and nobody else's.
pub(crate) fn catch<R>(work: impl FnOnce() -> Result<R, HandlerError>) -> Result<R, HandlerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(HandlerError::Panicked { message: message.unwrap_or_else(|| "without a message".to_owned()) })
    })
}
