//! Tensors in files: safetensors, read part by part and written whole or not at all.
//!
//! Owns the format, what is refused of it, how a file gets its name, and the folder that a store keeps its tensors in.
//! Does not know devices or models.
//!
//! Always: no file is ever changed in place, so that whoever has it open keeps the values that were there; a file that
//! has its name is whole; no text or number in a file makes it panic or allocate more than a few times the file's header,
//! and nobody who cuts an open file short ends the process.

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
