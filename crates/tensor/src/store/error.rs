//! Errors of a store. A call that fails has changed nothing and registered nothing.

use super::refusal::LedgerError;
use crate::ops::error::{ErrorKind, TensorError};
#[cfg(not(target_arch = "wasm32"))]
use crate::store::files::FileError;

/// An error of a store.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    #[error("the store was disposed of, with everything in it; build another store")]
    Disposed,
    /// The ledger refused a name, a right or a count.
    #[error(transparent)]
    Books(#[from] LedgerError),
    /// A problem with one tensor, or with the tensor that an op was to make.
    #[error("`{name}`: {problem}")]
    Of { name: String, problem: Box<TensorError> },
    /// A problem that is not about one tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The values were lost with a device.
    #[error(
        "`{name}`: its values were lost with the device ({reason}), and no file has them; `replace` the tensor, or \
         `unregister` it"
    )]
    Gone { name: String, reason: String },
    #[error("`{name}` is leased {leases} times; drop its leases first")]
    Leased { name: String, leases: usize },
    #[error("elementwise: there is no op `{op}`; use one of {known}")]
    UnknownOp { op: String, known: String },
    #[cfg(not(target_arch = "wasm32"))]
    #[error("a shader `{name}` is already registered; choose another name")]
    ShaderExists { name: String },
    #[cfg(not(target_arch = "wasm32"))]
    #[error("there is no shader `{name}`; registered: {known}")]
    UnknownShader { name: String, known: String },
    /// An error in a shader's text, or in the arguments of a run.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    Shader(#[from] crate::ops::own::ShaderError),
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    File(#[from] FileError),
    #[cfg(not(target_arch = "wasm32"))]
    #[error("{op}: this store has no folder; give it one (`StoreBuilder::folder`)")]
    NoFolder { op: &'static str },
    /// The folder has no tensor of that name.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("there is no `{name}` in the folder `{}`; `persist` it first", path.display())]
    NotKept { name: String, path: std::path::PathBuf },
    #[cfg(not(target_arch = "wasm32"))]
    #[error("cannot start the background thread: {problem}; call `optimise` instead")]
    NoThread { problem: String },
}

vramp_plan::debug_as_display!(StoreError);

impl StoreError {
    /// The kind of error, by which callers decide what to do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Tensor(problem) => problem.kind(),
            StoreError::Of { problem, .. } => problem.kind(),
            StoreError::Gone { .. } | StoreError::Disposed => ErrorKind::Gone,
            _ => ErrorKind::Other,
        }
    }

    /// Wraps an error about one tensor.
    pub(super) fn of(name: &str, problem: TensorError) -> StoreError {
        match problem {
            TensorError::Gone { reason, .. } => StoreError::Gone { name: name.to_owned(), reason },
            problem => StoreError::Of { name: name.to_owned(), problem: Box::new(problem) },
        }
    }
}
