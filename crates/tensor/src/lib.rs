//! Tensors that stay on the device until somebody asks, and that models share.

mod dtype;
mod error;
mod own;
mod shape;
mod texture;

pub use dtype::{DType, Element};
pub use error::{ErrorKind, TensorError};
pub use own::{BoundTensor, OwnShader, ParamValue, Place, ShaderError};
pub use shape::{Around, MAX_RANK, Shape};
pub use texture::{CHANNELS, Channels, TexPlace, TexShape, texels_of, values_of};
