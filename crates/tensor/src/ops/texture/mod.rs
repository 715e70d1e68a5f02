//! Tensors as textures, and textures as tensors.
//!
//! Owns the packing of values into texels, and the copies between a tensor's buffer and a texture on the device.
//! Does not draw, and does not keep textures: whoever asked for one holds it.
//!
//! Always: values cross bit by bit, without a way over the host; what is handed out was submitted, so that GPU code of
//! anybody's on the same device that comes later sees it.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod copy;
#[cfg(not(target_arch = "wasm32"))]
mod hand_out;
#[cfg(not(target_arch = "wasm32"))]
mod kernels;
mod packing;
mod texels;

#[cfg(not(target_arch = "wasm32"))]
pub use hand_out::TensorTexture;
pub use packing::{CHANNELS, TexPlace, TexShape};
pub use texels::{Channels, texels_of, values_of};

/// Who says what is wrong.
const OP: &str = "texture";
