//! Views: other shapes and ranges over the same values, without a copy.
//!
//! A view may begin at any value; kernels and loops accept any offset.

use std::sync::Arc;

use super::Tensor;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

impl Tensor {
    /// A one-dimensional view of `size` values from `offset` on. Nothing is copied; both tensors see each other's
    /// writes.
    pub fn view(&self, offset: usize, size: usize) -> Result<Tensor, TensorError> {
        let op = "view";
        self.check(op)?;
        let has = self.count();
        let end = offset.saturating_add(size);
        if end > has {
            return Err(TensorError::OutOfRange { op, start: offset, end, shape: self.shape().clone(), has });
        }
        let shape = Shape::new(&[size])?;
        Ok(Tensor::over(Arc::clone(self.storage()), shape, self.dtype(), self.offset() + offset))
    }

    /// The same values in another shape, without a copy.
    pub fn reshape(&self, lengths: &[usize]) -> Result<Tensor, TensorError> {
        let op = "reshape";
        self.check(op)?;
        let shape = Shape::new(lengths)?;
        if shape.count() != self.count() {
            let problem = format!("{} has {} values, {shape} has {}", self.shape(), self.count(), shape.count());
            return Err(TensorError::Mismatch { op, problem });
        }
        Ok(Tensor::over(Arc::clone(self.storage()), shape, self.dtype(), self.offset()))
    }
}
