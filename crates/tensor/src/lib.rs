//! Tensors that stay on the device until somebody asks, and that models share.
//!
//! Owns tensors, their ops with twins on the host, and what joins ops into kernels.
//! Does not know frames or pipelines: it meets them in one point, a frame's memory, which is a tensor [h, w, 4] of u8.
//!
//! Always: nothing comes down that nobody reads; a second op of the same kind compiles and allocates nothing; errors have
//! types and numbers, and the next op works.

// That what stands here can be shared among threads is proven through all of wgpu's types.
#![recursion_limit = "256"]

#[cfg(not(target_arch = "wasm32"))]
pub mod classic;
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
#[cfg(not(target_arch = "wasm32"))]
mod profile;
mod program;
mod reduction;
mod shape;
mod storage;
mod store;
mod tensor;
mod texture;

pub use context::{Context, ContextBuilder, Escape, Moved, Scope, Transfers};
pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
pub use expr::{Expr, Operand};
#[cfg(not(target_arch = "wasm32"))]
pub use expr::{Trial, Tuning};
#[cfg(not(target_arch = "wasm32"))]
pub use files::{Corrupt, FileError, Folder, Found, HeaderError, Heading, Kept, Listing, Put, Stored, TensorFile};
pub use image::{Layout, Picture, Resize};
pub use memory::{HostPoolRules, HostPoolStatistics, MemoryReport};
#[cfg(not(target_arch = "wasm32"))]
pub use own::Shader;
pub use own::{BoundTensor, OwnShader, ParamValue, Place, ShaderError};
#[cfg(not(target_arch = "wasm32"))]
pub use profile::{Profile, ProfiledOp, RanOn};
pub use program::{Binary, Unary};
pub use reduction::Reduction;
pub use shape::{Around, MAX_RANK, Shape};
pub use storage::Location;
#[cfg(not(target_arch = "wasm32"))]
pub use store::ShaderRun;
pub use store::{
    BothSides, Closed, Direction, Due, Entry, Freed, Held, Lease, Ledger, LedgerError, MAX_NAME_BYTES, Memory,
    ModelReleased, Named, Opportunity, Optimised, Priority, Saving, Search, Store, StoreBuilder, StoreError,
    StoreReport, Synced, TensorLease, TensorReport,
};
#[cfg(not(target_arch = "wasm32"))]
pub use store::{Persisted, Recovered, Recovery, Restored};
pub use tensor::Tensor;
#[cfg(not(target_arch = "wasm32"))]
pub use texture::TensorTexture;
pub use texture::{CHANNELS, Channels, TexPlace, TexShape, texels_of, values_of};
