//! Tensors in safetensors files: reading in parts, writing whole files, and the folder of a store.
//!
//! This module knows nothing of devices or models.
//!
//! Invariants: a file is never changed in place, so a reader that has the file open still sees the old values after the
//! file is replaced. A file under its final name is complete. Malformed content cannot cause a panic, nor an allocation
//! of more than a few times the size of the header. If another program truncates an open file, reads return an error;
//! only access to a file that was opened with `TensorFile::map` can then end the process.

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
