//! Reading values to the host, blocking or async, and writing values. The host keeps no copy of the values that were
//! read.
//!
//! Invariants: every read is counted. Every tensor over the same memory sees a write.

use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Tensor;
use crate::ops::context::Context;
use crate::ops::dtype::Element;
use crate::ops::error::TensorError;
use crate::ops::memory::Block;

/// The bytes of a tensor's values on the host, shared with the tensor. A later write to the tensor does not change them.
#[derive(Debug, Clone)]
pub struct HostValues {
    block: Arc<Block>,
    range: Range<usize>,
}

impl Deref for HostValues {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.block.bytes()[self.range.clone()]
    }
}

impl Context {
    /// The values of several tensors. Values on the device are downloaded together, in one submission.
    pub fn read_all<T: Element>(&self, tensors: &[&Tensor]) -> Result<Vec<Vec<T>>, TensorError> {
        let op = "read_all";
        let mut values: Vec<Option<Vec<T>>> = Vec::with_capacity(tensors.len());
        #[cfg(not(target_arch = "wasm32"))]
        let (mut sides, mut parts, mut places) = (None, Vec::new(), Vec::new());
        for (at, tensor) in tensors.iter().enumerate() {
            tensor.check_type::<T>(op)?;
            if !tensor.context().is(self) {
                return Err(TensorError::Foreign { op });
            }
            #[cfg(not(target_arch = "wasm32"))]
            if let Some((side, part)) = tensor.storage().only_on_device(tensor.asking(op), tensor.byte_range())?
                && sides.as_ref().is_none_or(|known| Arc::ptr_eq(known, &side))
            {
                sides = Some(side);
                parts.push(part);
                places.push(at);
                values.push(None);
                continue;
            }
            values.push(Some(tensor.read()?));
            let _ = at;
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(side) = sides {
            self.counts().host_reads.fetch_add(parts.len() as u64, Ordering::Relaxed);
            side.ask_for(op, &parts)?.wait_for_parts(|arrived| {
                for (part, at) in places.iter().enumerate() {
                    let (start, end) = tensors[*at].byte_range();
                    let mut own = vec![T::zeroed(); tensors[*at].count()];
                    let skip = start % 4;
                    bytemuck::cast_slice_mut(&mut own).copy_from_slice(&arrived.bytes(part)[skip..skip + end - start]);
                    values[*at] = Some(own);
                }
            })?;
        }
        Ok(values.into_iter().map(Option::unwrap_or_default).collect())
    }
}

impl Tensor {
    /// The values; blocks until the device has them.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        let mut values = vec![T::zeroed(); self.count()];
        self.read_into(&mut values)?;
        Ok(values)
    }

    /// Like [`Tensor::read`], but writes to `values`, which must have as many elements as the tensor.
    pub fn read_into<T: Element>(&self, values: &mut [T]) -> Result<(), TensorError> {
        let op = "read";
        self.check_type::<T>(op)?;
        if values.len() != self.count() {
            return Err(TensorError::WrongCount {
                shape: self.shape().clone(),
                wants: self.count(),
                has: values.len(),
            });
        }
        let into = bytemuck::cast_slice_mut(values);
        self.storage().read(self.asking(op), self.byte_range(), |bytes| into.copy_from_slice(bytes))
    }

    /// The value of a tensor with one value.
    pub fn read_scalar<T: Element>(&self) -> Result<T, TensorError> {
        if self.count() != 1 {
            let problem = format!("{} has {} values; use `read` for all of them", self.shape(), self.count());
            return Err(TensorError::Mismatch { op: "read_scalar", problem });
        }
        let mut value = [T::zeroed()];
        self.read_into(&mut value)?;
        Ok(value[0])
    }

    /// The bytes of the values, whatever their type is.
    pub fn read_bytes(&self) -> Result<Vec<u8>, TensorError> {
        self.check("read_bytes")?;
        self.storage().read(self.asking("read_bytes"), self.byte_range(), <[u8]>::to_vec)
    }

    /// The bytes of the values without a copy, if the host has the newest values ([`Tensor::location`]); otherwise they
    /// are downloaded, and the host keeps them.
    pub fn host_values(&self) -> Result<HostValues, TensorError> {
        let op = "host_values";
        self.check(op)?;
        let (start, end) = self.byte_range();
        Ok(HostValues { block: self.storage().host(self.asking(op))?, range: start..end })
    }

    /// Like [`Tensor::read_bytes`], but writes to `bytes`, which must have as many bytes as the values.
    pub fn read_bytes_into(&self, bytes: &mut [u8]) -> Result<(), TensorError> {
        let op = "read_bytes_into";
        self.check(op)?;
        let (start, end) = self.byte_range();
        if bytes.len() != end - start {
            let (shape, dtype, wants, has) = (self.shape(), self.dtype(), end - start, bytes.len());
            let problem = format!("{shape} of {dtype} takes {wants} bytes, there is room for {has}");
            return Err(TensorError::Mismatch { op, problem });
        }
        self.storage().read(self.asking(op), (start, end), |values| bytes.copy_from_slice(values))
    }

    /// The values as a future. Writes after the call do not change the values that the future returns.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn read_async<T: Element>(
        &self,
    ) -> Result<impl Future<Output = Result<Vec<T>, TensorError>> + Send + use<T>, TensorError> {
        let op = "read_async";
        self.check_type::<T>(op)?;
        self.storage().read_later(self.asking(op), self.byte_range(), |bytes| {
            let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
            bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
            values
        })
    }

    /// Writes all values, on the side that has the newest values.
    pub fn write<T: Element>(&self, values: &[T]) -> Result<(), TensorError> {
        if values.len() != self.count() {
            self.check_type::<T>("write")?;
            return Err(TensorError::WrongCount {
                shape: self.shape().clone(),
                wants: self.count(),
                has: values.len(),
            });
        }
        self.write_at(0, values)
    }

    /// Writes values from index `start` on.
    pub fn write_at<T: Element>(&self, start: usize, values: &[T]) -> Result<(), TensorError> {
        let op = "write";
        self.check_type::<T>(op)?;
        let has = self.count();
        if start.checked_add(values.len()).is_none_or(|end| end > has) {
            let (end, shape) = (start.saturating_add(values.len()), self.shape().clone());
            return Err(TensorError::OutOfRange { op, start, end, shape, has });
        }
        let first = (self.offset() + start) * self.dtype().bytes();
        self.storage().write(self.asking(op), first, bytemuck::cast_slice(values))
    }

    fn check_type<T: Element>(&self, op: &'static str) -> Result<(), TensorError> {
        self.check(op)?;
        if self.dtype() != T::DTYPE {
            return Err(TensorError::WrongType { op, has: self.dtype(), wants: T::DTYPE.name() });
        }
        Ok(())
    }
}
