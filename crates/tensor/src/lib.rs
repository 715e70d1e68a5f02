//! Tensors that stay on the device until somebody asks, and that models share.

mod dtype;
mod error;
#[cfg(not(target_arch = "wasm32"))]
mod files;
mod shape;
mod store;

pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
#[cfg(not(target_arch = "wasm32"))]
pub use files::{
    Corrupt, FileError, Folder, HeaderError, Heading, Kept, Listing, Put, Stored, TensorFile,
};
pub use shape::{Around, MAX_RANK, Shape};
pub use store::{
    Closed, Due, Entry, Freed, Held, Lease, Ledger, LedgerError, MAX_NAME_BYTES, Memory, ModelReleased, Opportunity,
    Saving, Watch,
};
