//! Tensors and their ops: values, shapes, expressions, host loops, device kernels, programs that fuse elementwise ops,
//! users' shaders, textures, and the context that owns the memory of all tensors.
//!
//! `ops` knows neither the store nor the classic API, which are built on `ops`.

pub(crate) mod context;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod device;
pub(crate) mod dtype;
pub(crate) mod error;
pub(crate) mod expr;
pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod memory;
mod methods;
pub(crate) mod own;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod profile;
pub(crate) mod program;
pub(crate) mod reduction;
pub(crate) mod shape;
pub(crate) mod storage;
pub(crate) mod tensor;
pub(crate) mod texture;
