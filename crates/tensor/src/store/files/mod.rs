//! Tensors in safetensors files: reading in parts, writing whole files, and the folder of a store.
//!
//! This module knows nothing of devices or models.
//!
//! Invariants: a file is never changed in place, so a reader that has it open keeps its values when it is replaced. A
//! file under its final name is complete. Malformed content cannot cause a panic, nor an allocation of more than a few
//! times the header. A file that another program truncates while it is open is an error; it does not end the process.

mod aside;
mod error;
mod file;
mod file_name;
mod folder;
mod header;
mod kinds;
mod mapping;
mod positioned;
mod shelf;
mod temporary;
mod write;

pub use error::FileError;
pub use file::{FileTensor, TensorBytes, TensorFile};
pub(crate) use folder::mark_of;
pub use folder::{CorruptFile, FolderTensor, Listing, PutOutcome, TensorFolder};
pub use header::HeaderError;
pub use write::Heading;
