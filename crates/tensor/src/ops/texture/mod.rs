//! Tensors as textures, and textures as tensors: the packing of values into texels, and the copies between a tensor's
//! buffer and a texture on the device. Callers own the textures.
//!
//! Invariants: copies do not change a bit of the values, and do not go through the host. The work that fills a texture
//! is submitted before the texture is handed out, so that GPU code submitted later on the same device sees the values
//! of the texture.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod copy;
#[cfg(not(target_arch = "wasm32"))]
mod hand_out;
#[cfg(not(target_arch = "wasm32"))]
mod kernels;
mod packing;
#[cfg(not(target_arch = "wasm32"))]
mod present;
mod texels;

#[cfg(not(target_arch = "wasm32"))]
pub use hand_out::TensorTexture;
pub use packing::{CHANNELS, TexPlace, TexShape};
pub use texels::{Channels, texels_of, values_of};

/// The name of the op in errors.
const OP: &str = "texture";
