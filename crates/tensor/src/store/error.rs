//! Why a store refuses something.
//!
//! Owns one case per cause, with the names and the numbers, and what can be done about each.
//! Does not log: whoever is handed an error decides.
//!
//! Always: what was refused has changed nothing, and nothing of it is registered.

use super::refusal::LedgerError;
use crate::ops::error::{ErrorKind, TensorError};
#[cfg(not(target_arch = "wasm32"))]
use crate::store::files::FileError;

/// Why a store refuses something.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// The store was disposed of.
    #[error("the store was disposed of, with everything in it; build another one")]
    Disposed,
    /// The books say no: a name, a right or a count.
    #[error(transparent)]
    Books(#[from] LedgerError),
    /// What has to do with one tensor.
    #[error("`{name}`: {problem}")]
    Of {
        /// Which one; of an op, what it was to make.
        name: String,
        /// What is wrong.
        problem: Box<TensorError>,
    },
    /// What has to do with none in particular.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Values that went with a device.
    #[error(
        "`{name}`: its values went with the device ({reason}), and no file has them; `replace` them, or `unregister` it"
    )]
    Gone {
        /// Which tensor.
        name: String,
        /// What happened to the device.
        reason: String,
    },
    /// Leased to somebody.
    #[error("`{name}` is leased {leases} times; it can go when those end")]
    Leased {
        /// Which tensor.
        name: String,
        /// How often.
        leases: usize,
    },
    /// An elementwise op that nobody knows.
    #[error("elementwise: there is no op `{op}`; known are {known}")]
    UnknownOp {
        /// As it was given.
        op: String,
        /// The names of all.
        known: String,
    },
    /// A name that a shader has already.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("there is a shader `{name}` already; give this one another name")]
    ShaderExists {
        /// Which name.
        name: String,
    },
    /// A shader that nobody registered.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("there is no shader `{name}`; registered: {known}")]
    UnknownShader {
        /// As it was given.
        name: String,
        /// The names of all.
        known: String,
    },
    /// A shader's text, or how it is to be run.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    Shader(#[from] crate::ops::own::ShaderError),
    /// A file that is in the way or broken.
    #[cfg(not(target_arch = "wasm32"))]
    #[error(transparent)]
    File(#[from] FileError),
    /// A store without a folder.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("{op}: this store has no folder; give it one (`StoreBuilder::folder`)")]
    NoFolder {
        /// What was to be done.
        op: &'static str,
    },
    /// Nothing of that name was persisted.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("there is no `{name}` in the folder `{}`; `persist` it first", path.display())]
    NotKept {
        /// Which tensor.
        name: String,
        /// Where it was looked for.
        path: std::path::PathBuf,
    },
    /// The system gave no thread.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("no thread to optimise in the background: {problem}; call `optimise` instead")]
    NoThread {
        /// In its words.
        problem: String,
    },
}

vramp_plan::debug_as_display!(StoreError);

impl StoreError {
    /// What can be done about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Tensor(problem) => problem.kind(),
            StoreError::Of { problem, .. } => problem.kind(),
            StoreError::Gone { .. } | StoreError::Disposed => ErrorKind::Gone,
            _ => ErrorKind::Other,
        }
    }

    /// A mistake with one tensor, by its name.
    pub(super) fn of(name: &str, problem: TensorError) -> StoreError {
        match problem {
            TensorError::Gone { reason, .. } => StoreError::Gone { name: name.to_owned(), reason },
            problem => StoreError::Of { name: name.to_owned(), problem: Box::new(problem) },
        }
    }
}
