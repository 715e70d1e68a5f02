//! How tensors come to be: from values, from nothing, from memory on the device.
//!
//! Owns the checks of what is given.
//! Does not move anything before somebody needs it: values given on the host go up with the first op.

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

/// Kernels read so many bytes at once.
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

    /// A tensor of these bytes, which are values of this type in memory order.
    pub fn tensor_from_bytes(&self, bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Tensor, TensorError> {
        let shape = Shape::new(shape)?;
        if bytes.len() != shape.count() * dtype.bytes() {
            let (wants, has) = (shape.count() * dtype.bytes(), bytes.len());
            let problem = format!("{shape} of {dtype} takes {wants} bytes, {has} are given");
            return Err(TensorError::Mismatch { op: "tensor_from_bytes", problem });
        }
        self.tensor_of_bytes("tensor_from_bytes", bytes, shape, dtype)
    }

    /// A tensor of one value.
    pub fn scalar<T: Element>(&self, value: T) -> Result<Tensor, TensorError> {
        self.tensor(&[value], &[])
    }

    /// A tensor of zeros.
    pub fn zeros(&self, shape: &[usize], dtype: DType) -> Result<Tensor, TensorError> {
        let shape = Shape::new(shape)?;
        let bytes = shape.count() * dtype.bytes();
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = self.side() {
            // Lent memory holds whatever was there before.
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

    /// A tensor over memory of its own device, which is shared and not copied: a frame of a pipeline is a tensor
    /// [height, width, 4] of u8, and a buffer of somebody's own is one that [`Device::adopt_buffer`] takes in. A buffer that
    /// tensors of this context lie in already is known, however often it was adopted: the new one shares their memory, and
    /// is refused where it would be larger. Refused too where the memory is too small or of another device. After GPU code of one's own has written to it: [`Tensor::was_written`].
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
        if !bytes.is_multiple_of(4) && buffer.bytes() > bytes as u64 {
            let problem = format!(
                "{shape} of {dtype} ends inside of a word, whose other bytes are not its own; take whole words"
            );
            return Err(TensorError::Mismatch { op, problem });
        }
        if !side.device().owns(buffer) {
            return Err(TensorError::Foreign { op });
        }
        // Kernels read four words at a time, the last of which may lie behind what was asked for.
        let Some(buffer) = buffer.filled_up_to(GROUP_BYTES) else {
            let has = buffer.bytes();
            let problem = format!("the buffer has {has} bytes; to be shared, it has a multiple of {GROUP_BYTES}");
            return Err(TensorError::Mismatch { op, problem });
        };
        self.take_in(
            &buffer,
            |known| {
                if known.bytes() >= bytes {
                    return Ok(Tensor::over(Arc::clone(known), shape.clone(), dtype, 0));
                }
                let problem = format!(
                    "{shape} of {dtype} takes {bytes} bytes, and a tensor of {} bytes lies in this buffer already; take \
                     the larger one first, or end the other",
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

    /// A tensor of values that lie in memory of its own device, `offset` values behind its start, as they are now: they
    /// are copied, which is counted, and never cross the host.
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
        // Whoever owns the buffer may write to it from now on.
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
    /// The memory on the device that its newest values are in, sent up where they are not, and which [`Tensor::offset`] values
    /// lie in front of. What is pending is played first, so that GPU code that is submitted from now on sees them.
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

    /// Says that GPU code of somebody else's has written to its memory on the device: what the host has is old.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn was_written(&self) {
        self.storage().was_written_on_device();
    }

    /// Where it lies, brought there where it does not: on the device of its context, or on the host where that has none.
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
