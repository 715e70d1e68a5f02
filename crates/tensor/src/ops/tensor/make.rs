//! Constructors of tensors: from given values, filled with zeros, or from device memory.
//!
//! Values do not move before an op needs them: values given on the host are uploaded for the first op that uses them on
//! the device.

use std::sync::Arc;

use super::Tensor;
use crate::ops::context::Context;
use crate::ops::dtype::{DType, Element};
use crate::ops::error::TensorError;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::own::copies;
use crate::ops::shape::Shape;
use crate::ops::storage::Storage;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::texture::copy::DeviceValues;

/// Kernels read 16 bytes at a time.
#[cfg(not(target_arch = "wasm32"))]
const GROUP_BYTES: u64 = 16;

impl Context {
    /// A tensor of these values, which are copied once.
    pub fn tensor<T: Element>(&self, values: &[T], shape: &[usize]) -> Result<Tensor, TensorError> {
        let shape = Shape::new(shape)?;
        if values.len() != shape.count() {
            return Err(TensorError::WrongCount { wants: shape.count(), has: values.len(), shape });
        }
        self.tensor_of_bytes("tensor", bytemuck::cast_slice(values), shape, T::DTYPE)
    }

    /// A tensor of these bytes: values of type `dtype` in memory order.
    pub fn tensor_from_bytes(&self, bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Tensor, TensorError> {
        let shape = Shape::new(shape)?;
        if bytes.len() != shape.count() * dtype.bytes() {
            let (wants, has) = (shape.count() * dtype.bytes(), bytes.len());
            let problem = format!("{shape} of {dtype} takes {wants} bytes, got {has}");
            return Err(TensorError::Mismatch { op: "tensor_from_bytes", problem });
        }
        self.tensor_of_bytes("tensor_from_bytes", bytes, shape, dtype)
    }

    pub fn scalar<T: Element>(&self, value: T) -> Result<Tensor, TensorError> {
        self.tensor(&[value], &[])
    }

    pub fn zeros(&self, shape: &[usize], dtype: DType) -> Result<Tensor, TensorError> {
        let shape = Shape::new(shape)?;
        let bytes = shape.count() * dtype.bytes();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            // Cleared, because lent memory holds the values of its last user.
            let buffer = side.lend("zeros", bytes)?;
            side.record("zeros", |recording| {
                recording.zero(&buffer);
                Ok(())
            })?;
            return Ok(Tensor::over(Storage::on_device(self, &side, buffer, bytes), shape, dtype, 0));
        }
        let block = self.pool().lend_zeroed("zeros", bytes)?;
        Ok(Tensor::over(Storage::on_host(self, block), shape, dtype, 0))
    }

    /// A tensor over memory of the context's device, shared and not copied. A frame of a pipeline is a tensor [height,
    /// width, 4] of u8; [`Device::adopt_buffer`] makes a buffer of your own usable.
    ///
    /// The context recognises a buffer that is adopted again: a second tensor over the same buffer shares the memory of
    /// the first tensor. Fails if the second tensor would be larger than the first, if the memory is too small, or if
    /// the memory belongs to another device. Call [`Tensor::was_written`] after your own GPU code has written to the
    /// memory.
    ///
    /// [`Device::adopt_buffer`]: vramp_gpu::Device::adopt_buffer
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tensor_over(
        &self,
        buffer: &vramp_gpu::Buffer,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        let op = "tensor_over";
        let shape = Shape::new(shape)?;
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op }) };
        let bytes = shape.count() * dtype.bytes();
        if buffer.bytes() < bytes as u64 {
            let problem = format!("{shape} of {dtype} takes {bytes} bytes, the buffer has {}", buffer.bytes());
            return Err(TensorError::Mismatch { op, problem });
        }
        // A frame that carries a tensor pads the last word, and nothing else is in that word.
        if !bytes.is_multiple_of(4) && buffer.bytes() > bytes.next_multiple_of(4) as u64 {
            let problem =
                format!("{shape} of {dtype} ends inside a word that it does not own completely; use whole words");
            return Err(TensorError::Mismatch { op, problem });
        }
        if !side.device().owns(buffer) {
            return Err(TensorError::Foreign { op });
        }
        // Kernels read four words at a time, so the last read may go past the requested size.
        let Some(buffer) = buffer.filled_up_to(GROUP_BYTES) else {
            let has = buffer.bytes();
            let problem = format!("the buffer has {has} bytes; sharing needs a multiple of {GROUP_BYTES}");
            return Err(TensorError::Mismatch { op, problem });
        };
        self.take_in(
            &buffer,
            |known| {
                if known.bytes() >= bytes {
                    return Ok(Tensor::over(Arc::clone(known), shape.clone(), dtype, 0));
                }
                let problem = format!(
                    "{shape} of {dtype} takes {bytes} bytes, and this buffer already holds a tensor of {} bytes; \
                     create the larger tensor first, or dispose of the other",
                    known.bytes()
                );
                Err(TensorError::Mismatch { op, problem })
            },
            || {
                let storage = Storage::shared(self, &side, buffer.clone(), bytes);
                (Arc::clone(&storage), Ok(Tensor::over(storage, shape.clone(), dtype, 0)))
            },
        )
    }

    /// A tensor with a copy of values from memory of the context's device. The first value copied is value number
    /// `offset` of the memory. The copy is counted, and does not pass through the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn tensor_from_buffer(
        &self,
        buffer: &vramp_gpu::Buffer,
        offset: usize,
        shape: &[usize],
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        let op = "tensor_from_buffer";
        let shape = Shape::new(shape)?;
        let Some(side) = self.side() else { return Err(TensorError::NoDevice { op }) };
        let (count, has) = (shape.count(), buffer.bytes() as usize / dtype.bytes());
        if offset.checked_add(count).is_none_or(|end| end > has) {
            return Err(TensorError::OutOfRange { op, start: offset, end: offset.saturating_add(count), shape, has });
        }
        if !side.device().owns(buffer) {
            return Err(TensorError::Foreign { op });
        }
        let from = DeviceValues { buffer, offset, count, dtype };
        let own = copies::to_own(self, &side, op, from)?;
        // Submitted here, because the owner of the buffer may write to it from now on.
        side.flush(op)?;
        Ok(Tensor::over(Storage::on_device(self, &side, own, count * dtype.bytes()), shape, dtype, 0))
    }

    fn tensor_of_bytes(
        &self,
        op: &'static str,
        bytes: &[u8],
        shape: Shape,
        dtype: DType,
    ) -> Result<Tensor, TensorError> {
        let mut block = self.pool().lend(op, bytes.len())?;
        block.bytes_mut().copy_from_slice(bytes);
        Ok(Tensor::over(Storage::on_host(self, block), shape, dtype, 0))
    }
}

impl Tensor {
    /// The device memory of the newest values, which are uploaded if necessary. The first value is value number
    /// [`Tensor::offset`] of the memory. Pending work is submitted first, so that GPU code submitted from now on sees
    /// the values.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn as_buffer(&self) -> Result<vramp_gpu::Buffer, TensorError> {
        let op = "as_buffer";
        self.check(op)?;
        let Some(side) = self.context().side() else { return Err(TensorError::NoDevice { op }) };
        let buffer = self.storage().device(self.asking(op), &side)?;
        self.context().note_outside(self.storage());
        side.flush(op)?;
        Ok(buffer)
    }

    /// Records that GPU code outside the context has written to the device memory, so that the host's copy is outdated.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn was_written(&self) {
        self.storage().was_written_on_device();
    }

    /// Moves the values to the side where ops run: the context's device, or the host if the context has no device.
    pub fn settle(&self) -> Result<(), TensorError> {
        let op = "settle";
        self.check(op)?;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.context().side() {
            return self.storage().device(self.asking(op), &side).map(drop);
        }
        self.storage().host(self.asking(op)).map(|block: Arc<_>| drop(block))
    }
}
