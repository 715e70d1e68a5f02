//! Files on the host: written whole or not at all, and read only if they are regular files.
//!
//! A crate of its own because tensors and handlers both write files, and neither may depend on the other. Pipes,
//! devices and standard output are left to the handlers.

mod regular;
mod temporary;

pub use regular::{open_regular, read_regular_text};
pub use temporary::{PersistError, TemporaryFile};
