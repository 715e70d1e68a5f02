//! Files on the host: written whole or not at all, and read only if they are regular files.
//!
//! This is a crate of its own because the tensor crate and the handler crate write files, and neither may depend on the
//! other. Pipes, devices and standard output are left to the handlers.

mod regular;
mod saves;
mod temporary;

pub use regular::{open_regular, read_regular_text};
pub use saves::Saves;
pub use temporary::{PersistError, TemporaryFile};
