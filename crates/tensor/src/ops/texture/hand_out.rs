//! Tensors handed out as textures, and textures of anybody's taken in.
//!
//! Owns the pair of a texture and the tensor whose values are in it, and the wiring of both ways into contexts.
//! Does not pack: `copy` does.
//!
//! Always: nothing comes to the host; values are those of the moment of the call, whatever is written afterwards; the
//! texture ends with the last of its handles, and is among [`Device::textures_held`](vramp_gpu::Device::textures_held)
//! until then.

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

/// A texture with the values of a tensor, and a tensor of the same values that it keeps alive.
#[derive(Debug)]
pub struct TensorTexture {
    texture: Texture,
    shape: TexShape,
    tensor: Tensor,
}

impl TensorTexture {
    /// The texture, for bind groups of one's own through [`Texture::raw`].
    pub fn texture(&self) -> &Texture {
        &self.texture
    }

    /// Its shape, which knows where each value lies.
    pub fn shape(&self) -> TexShape {
        self.shape
    }

    /// The tensor, for which this is a reference of its own: it lives until this is disposed of, whatever becomes of the
    /// one that the texture was asked of.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Functions for shaders that read it: see [`TexShape::wgsl`].
    pub fn wgsl(&self) -> String {
        self.shape.wgsl(self.tensor.shape())
    }

    /// Frees the texture, where no clone of it is held, and the reference to the tensor. Dropping does the same.
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
    /// A texture with its values: flat value `i` in channel `i % 4` of texel `i / 4`, texels row by row, and 0 behind the
    /// last. It has the shape [height, width] that is given, which must have room, or else is about square. Values that
    /// are on the host are sent up, which is counted; nothing comes down.
    ///
    /// What was pending is submitted, so that GPU code of one's own that is submitted from now on sees the values.
    pub fn to_texture(&self, shape: Option<[usize; 2]>) -> Result<TensorTexture, TensorError> {
        self.to_texture_as(shape, texels_of(self.dtype()))
    }

    /// The same in texels of a certain kind, which hold values of its type: bytes as [`TexelFormat::Rgba8Uint`], say.
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
    /// A tensor of channels of a texture, texel by texel, in the order of `channels` (letters of `rgba`, as in `bgr`): zeros
    /// where the texture has no such channel, and behind its last texel. A texture of one's own is one that
    /// [`Device::adopt_texture`](vramp_gpu::Device::adopt_texture) takes in. The values are those of now.
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
            let problem = "the texture is of another device than the context; adopt it there".to_owned();
            return Err(TensorError::Setting { op, problem });
        }
        let (count, dtype) = (shape.count(), values_of(texture.format()));
        let copies = side.texture_copies(op)?;
        let buffer = side.lend(op, count * dtype.bytes())?;
        let to = DeviceValues { buffer: &buffer, offset: 0, count, dtype };
        let rows = lend_rows(&side, op, copies.rows_to_take(texture, &channels, to))?;
        side.record(op, |recording| copies.take(recording, texture, &channels, to, rows.as_ref()))?;
        // Whoever owns the texture may draw on it from now on.
        side.flush(op)?;
        Ok(Tensor::over(Storage::on_device(self, &side, buffer, count * dtype.bytes()), shape, dtype, 0))
    }
}

/// Memory for rows of texels, from where all memory of tensors comes: before anything is recorded, since whoever lends may
/// have to wait for what is.
fn lend_rows(side: &DeviceSide, op: &'static str, bytes: u64) -> Result<Option<Buffer>, TensorError> {
    (bytes > 0).then(|| side.lend(op, bytes as usize)).transpose()
}
