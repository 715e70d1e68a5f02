//! Tensors that stay on the device until somebody asks, and that models share.
//!
//! Owns tensors, their ops with twins on the host, and what joins ops into kernels.
//! Does not know frames or pipelines: it meets them in one point, a frame's memory, which is a tensor [h, w, 4] of u8.
//!
//! Always: nothing comes down that nobody reads; a second op of the same kind compiles and allocates nothing; errors have
//! types and numbers, and the next op works.

mod context;
#[cfg(not(target_arch = "wasm32"))]
mod device;
mod dtype;
mod error;
mod expr;
#[cfg(not(target_arch = "wasm32"))]
mod files;
mod host;
mod image;
mod memory;
mod ops;
mod own;
mod program;
mod shape;
mod storage;
mod store;
mod tensor;
mod texture;

pub use context::{Context, ContextBuilder, Escape, Moved, Scope, Transfers};
pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
pub use expr::{Expr, Operand, Reduction};
#[cfg(not(target_arch = "wasm32"))]
pub use files::{Corrupt, FileError, Folder, HeaderError, Heading, Kept, Listing, Put, Stored, TensorFile};
pub use image::{Layout, Picture, Resize};
pub use memory::{HostPoolRules, HostPoolStatistics, MemoryReport};
#[cfg(not(target_arch = "wasm32"))]
pub use own::Shader;
pub use own::{BoundTensor, OwnShader, ParamValue, Place, ShaderError};
pub use program::{Binary, Unary};
pub use shape::{Around, MAX_RANK, Shape};
pub use storage::Location;
pub use store::{
    Closed, Due, Entry, Freed, Held, Lease, Ledger, LedgerError, MAX_NAME_BYTES, Memory, ModelReleased, Opportunity,
    Saving, Watch,
};
pub use tensor::Tensor;
#[cfg(not(target_arch = "wasm32"))]
pub use texture::TensorTexture;
pub use texture::{CHANNELS, Channels, TexPlace, TexShape, texels_of, values_of};
