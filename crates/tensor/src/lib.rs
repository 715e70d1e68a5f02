//! Tensors whose values stay on the device until the caller reads them, and a store through which models share tensors.
//!
//! ```text
//! Tensor -> Expr -> stages -> programs, kernels -> Recording | loops over slices
//! (values)  (ops as  (what to   (WGSL and            (device)    (host)
//!            written) compute)   parameters)
//! ```
//!
//! The crate does not know pipelines. Tensors and pipelines meet in two places. First, the memory of a frame can be
//! used without a copy, as a tensor [h, w, 4] of u8. Second, a context can record its ops into a pipeline's recording,
//! so that the ops are part of the pipeline's submission. Only crates/gpu names wgpu; that crate re-exports wgpu for
//! users' own GPU code.
//!
//! There are three modules, each of which uses only the modules before it (`tests/walls.rs` checks the imports):
//! - `ops`: tensors, expressions, host loops, device kernels, users' shaders, textures;
//! - `store`: named tensors that models share, and their files;
//! - [`classic`]: an API with process-wide objects.
//!
//! Invariants: values are downloaded only when they are read. The second op of a kind compiles and allocates nothing.
//! Errors are typed and carry numbers, and the next op after an error works.

#[cfg(not(target_arch = "wasm32"))]
pub mod classic;
pub mod network;
mod ops;
mod store;

pub use ops::context::{Context, ContextBuilder, Escape, Moved, TensorScope, Transfers};
pub use ops::dtype::{DType, Element};
pub use ops::error::{ErrorKind, TensorError};
#[cfg(not(target_arch = "wasm32"))]
pub use ops::expr::{DeviceTuning, TuningTrial};
pub use ops::expr::{Expr, Operand};
pub use ops::image::{ChannelLayout, ImageSpec, ResizeMode};
pub use ops::memory::{HostPoolRules, HostPoolStatistics, MemoryReport};
#[cfg(not(target_arch = "wasm32"))]
pub use ops::own::CompiledShader;
pub use ops::own::{BoundTensor, OwnShader, ParamValue, ShaderError, ShaderPosition};
#[cfg(not(target_arch = "wasm32"))]
pub use ops::profile::{OpProfile, ProfiledOp, RanOn};
pub use ops::program::{Binary, Unary};
pub use ops::reduction::Reduction;
pub use ops::shape::{Around, MAX_RANK, Shape};
pub use ops::storage::Location;
pub use ops::tensor::{HostValues, Tensor};
#[cfg(not(target_arch = "wasm32"))]
pub use ops::texture::TensorTexture;
pub use ops::texture::{CHANNELS, Channels, TexPlace, TexShape, texels_of, values_of};
#[cfg(not(target_arch = "wasm32"))]
pub use store::ShaderRun;
#[cfg(not(target_arch = "wasm32"))]
pub use store::files::{
    CorruptFile, FileError, FileTensor, FolderTensor, HeaderError, Heading, Listing, PutOutcome, TensorBytes,
    TensorFile, TensorFolder,
};
pub use store::{
    BothSides, Closed, Due, Freed, Lease, LeaseOwner, Ledger, LedgerError, MAX_NAME_BYTES, MemorySaving, MemoryTag,
    ModelReleased, Named, Opportunity, Optimised, Priority, Search, Store, StoreBuilder, StoreError, StoreReport,
    SyncDirection, Synced, TensorEntry, TensorLease, TensorReport,
};
#[cfg(not(target_arch = "wasm32"))]
pub use store::{Persisted, Restored, StoreRecovery, TensorRecovery};
