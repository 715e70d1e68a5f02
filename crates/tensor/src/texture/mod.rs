//! Tensors as textures, and textures as tensors.
//!
//! Owns the packing of values into texels, and the copies between a tensor's buffer and a texture on the device.
//! Does not draw, and does not keep textures: whoever asked for one holds it.
//!
//! Always: values cross bit by bit, without a way over the host.

pub(crate) mod copy;
mod kernels;
mod packing;

pub use copy::{Channels, texels_of, values_of};
pub use packing::{CHANNELS, TexPlace, TexShape};
