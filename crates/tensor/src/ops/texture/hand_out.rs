//! Hands out tensors as textures, and takes in textures of other code as tensors. `copy` records the copies.
//!
//! Invariants: values on the device do not pass through the host. A new texture or tensor has the values that its
//! source had at the time of the call; later writes to the source change nothing in the new texture or tensor. A
//! texture ends with its last handle; until then [`Device::textures_held`](vramp_gpu::Device::textures_held) counts the
//! texture.

use std::sync::Arc;

use vramp_gpu::{Buffer, TexelFormat, Texture};

use super::copy::{DeviceValues, make};
use super::packing::TexShape;
use super::texels::{Channels, texels_of, values_of};
use crate::ops::context::{Context, DeviceSide, Escape};
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;

/// A texture with the values of a tensor, and a tensor with the same values, which this handle keeps alive.
#[derive(Debug)]
pub struct TensorTexture {
    texture: Texture,
    shape: TexShape,
    tensor: Tensor,
}

impl TensorTexture {
    /// The texture, for your own bind groups through [`Texture::raw`].
    pub fn texture(&self) -> &Texture {
        &self.texture
    }

    /// The shape, which maps values to texels.
    pub fn shape(&self) -> TexShape {
        self.shape
    }

    /// A separate tensor over the values of the original tensor. The separate tensor lives until this handle is
    /// disposed, even if the original tensor ends before.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Functions for shaders that read the texture: see [`TexShape::wgsl`].
    pub fn wgsl(&self) -> String {
        self.shape.wgsl(self.tensor.shape())
    }

    /// Releases the tensor, and the texture unless a clone of it is held. Dropping does the same.
    pub fn dispose(self) {
        self.tensor.dispose();
    }
}

impl Escape for TensorTexture {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        tell(&self.tensor);
    }
}

impl Tensor {
    /// A texture with the values: flat value `i` is in channel `i % 4` of texel `i / 4`. Texels are in row order, and
    /// channels after the last value are 0. `shape` is [height, width] and must have room for all values; the default
    /// is about square. Values on the host are uploaded, which is counted; nothing is downloaded.
    ///
    /// Pending work is submitted, so that your own GPU code submitted from now on sees the values.
    pub fn to_texture(&self, shape: Option<[usize; 2]>) -> Result<TensorTexture, TensorError> {
        self.to_texture_as(shape, texels_of(self.dtype()))
    }

    /// Like [`Tensor::to_texture`], with a texel format that holds values of the tensor's type, for example
    /// [`TexelFormat::Rgba8Uint`] for bytes.
    pub fn to_texture_as(&self, shape: Option<[usize; 2]>, format: TexelFormat) -> Result<TensorTexture, TensorError> {
        let op = "to_texture";
        self.check(op)?;
        let Some(side) = self.context().side() else { return Err(TensorError::NoDevice { op }) };
        let (count, dtype) = (self.count(), self.dtype());
        let shape = match shape {
            Some([height, width]) => TexShape::custom(height, width, count)?,
            None => TexShape::of(count),
        };
        let texture = side.once_more(op, || make(side.device(), dtype, shape, Some(format)))?;
        let copies = side.texture_copies(op)?;
        let buffer = self.storage().device(self.asking(op), &side)?;
        let from = DeviceValues { buffer: &buffer, offset: self.offset(), count, dtype };
        let rows = lend_rows(&side, op, copies.rows_to_fill(from, &texture))?;
        side.record(op, |recording| copies.fill(recording, from, &texture, rows.as_ref()))?;
        side.flush(op)?;
        let tensor = Tensor::over(Arc::clone(self.storage()), self.shape().clone(), dtype, self.offset());
        Ok(TensorTexture { texture, shape, tensor })
    }
}

impl Context {
    /// A tensor with channels of a texture, texel by texel, in the order of `channels` (letters of `rgba`, such as
    /// `bgr`). Channels that the texture does not have, and values after the last texel, are 0.
    /// [`Device::adopt_texture`](vramp_gpu::Device::adopt_texture) makes a texture of your own usable. The tensor has
    /// the values that the texture has at the time of the call.
    pub fn tensor_from_texture(
        &self,
        texture: &Texture,
        channels: &str,
        shape: &[usize],
    ) -> Result<Tensor, TensorError> {
        let op = "tensor_from_texture";
        let (channels, shape) = (Channels::read(channels)?, Shape::new(shape)?);
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op }) };
        if !side.device().owns_texture(texture) {
            let problem =
                "the texture belongs to another device than the context; adopt it on the context's device".to_owned();
            return Err(TensorError::Setting { op, problem });
        }
        let (count, dtype) = (shape.count(), values_of(texture.format()));
        let copies = side.texture_copies(op)?;
        let buffer = side.lend(op, count * dtype.bytes())?;
        let to = DeviceValues { buffer: &buffer, offset: 0, count, dtype };
        let rows = lend_rows(&side, op, copies.rows_to_take(texture, &channels, to))?;
        side.record(op, |recording| copies.take(recording, texture, &channels, to, rows.as_ref()))?;
        // Submitted here, because the owner of the texture may draw on it from now on.
        side.flush(op)?;
        Ok(Tensor::over(Storage::on_device(self, &side, buffer, count * dtype.bytes()), shape, dtype, 0))
    }
}

/// Pool memory for rows of texels. The memory is lent before anything is recorded, because lending may have to wait for
/// recorded work.
fn lend_rows(side: &DeviceSide, op: &'static str, bytes: u64) -> Result<Option<Buffer>, TensorError> {
    (bytes > 0).then(|| side.lend(op, bytes as usize)).transpose()
}
