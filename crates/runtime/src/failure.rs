//! Handler failures: which handler failed, on which frame, and why; panics become failures too.
//!
//! What follows from a failure is decided by the handler's `on-error` policy, in the node.

use std::panic::{AssertUnwindSafe, catch_unwind};

use vramp_plan::{Content, OnError};

use crate::handler::HandlerError;
use crate::link::ring::DropReason;

/// A handler's error with the handler's name and the frame number.
#[derive(Debug, thiserror::Error)]
#[error("{handler}, frame {frame}: {error}")]
pub struct HandlerFailure {
    pub handler: String,
    pub frame: u64,
    #[source]
    pub error: HandlerError,
}

impl HandlerFailure {
    /// The reason under which waiting frames are counted as dropped after this failure.
    pub(crate) fn drops(&self) -> DropReason {
        let lost = self.error.trouble().is_some() || matches!(self.error, HandlerError::NoTwin { .. });
        if lost { DropReason::DeviceLost } else { DropReason::Error }
    }
}

/// One handler of a node. A fused node has several.
#[derive(Debug, Clone)]
pub struct NodeMember {
    pub name: String,
    pub on_error: OnError,
    /// Content by input port; `None` for an unlinked port.
    pub inputs: Vec<Option<Content>>,
    /// Content by output port; `None` for an unlinked port.
    pub outputs: Vec<Option<Content>>,
}

impl NodeMember {
    /// A member whose ports are not known.
    pub(crate) fn named(name: impl Into<String>) -> NodeMember {
        NodeMember { name: name.into(), on_error: OnError::default(), inputs: Vec::new(), outputs: Vec::new() }
    }
}

/// Calls a handler, its maker or its probe. A panic becomes that handler's error.
pub(crate) fn catch<R>(work: impl FnOnce() -> Result<R, HandlerError>) -> Result<R, HandlerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(HandlerError::Panicked { message: message.unwrap_or_else(|| "without a message".to_owned()) })
    })
}
