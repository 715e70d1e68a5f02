//! Tensors that stay on the device until somebody asks, and that models share.

#[allow(dead_code, unused_imports, reason = "the ops that start these kernels come one by one")]
mod device;
mod dtype;
mod error;
mod shape;

pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
pub use shape::{Around, MAX_RANK, Shape};
