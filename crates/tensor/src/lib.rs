//! Tensors that stay on the device until somebody asks, and that models share.

mod dtype;
mod error;
#[allow(dead_code)]
mod device;
mod shape;

pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
pub use shape::{Around, MAX_RANK, Shape};
