//! Tensors: a shape and a type over values that may be on the host, on the device or on both.
//!
//! This module has the handle that callers hold, and the constructors, views and reads of tensors. Ops are in
//! [`Expr`](crate::Expr).
//!
//! Invariants: a view copies nothing. A view keeps its values alive after the tensor from which the view was made is
//! gone. Using a disposed tensor is an error.

mod make;
mod read;
mod view;

pub use read::HostValues;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ops::context::{Context, note_made};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;
use crate::ops::storage::{Location, OpRequest, Storage};

/// Values of one type in a shape. Clones are the same tensor.
#[derive(Clone)]
pub struct Tensor {
    handle: Arc<Handle>,
}

/// The counted part of a tensor, shared by its clones.
pub(crate) struct Handle {
    shape: Shape,
    dtype: DType,
    /// The index of the first value in the storage.
    offset: usize,
    storage: Arc<Storage>,
    is_disposed: AtomicBool,
}

impl Tensor {
    /// A tensor over a storage, from value `offset` on.
    pub(crate) fn over(storage: Arc<Storage>, shape: Shape, dtype: DType, offset: usize) -> Tensor {
        let tensor = Tensor::outside_scopes(storage, shape, dtype, offset);
        note_made(&tensor.handle);
        tensor
    }

    /// A separate tensor over the same values. Neither the end of a scope nor `dispose` of the original tensor ends the
    /// separate tensor.
    pub(crate) fn apart(&self) -> Tensor {
        Tensor::outside_scopes(Arc::clone(self.storage()), self.shape().clone(), self.dtype(), self.offset())
    }

    fn outside_scopes(storage: Arc<Storage>, shape: Shape, dtype: DType, offset: usize) -> Tensor {
        debug_assert!((offset + shape.count()) * dtype.bytes() <= storage.bytes());
        storage.enter();
        storage.context().counts().tensors.fetch_add(1, Ordering::Relaxed);
        let handle = Arc::new(Handle { shape, dtype, offset, storage, is_disposed: AtomicBool::new(false) });
        Tensor { handle }
    }

    pub fn shape(&self) -> &Shape {
        &self.handle.shape
    }

    pub fn dtype(&self) -> DType {
        self.handle.dtype
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.handle.shape.count()
    }

    pub fn bytes(&self) -> usize {
        self.count() * self.dtype().bytes()
    }

    /// The index of the first value in the tensor's memory, which other tensors may share.
    pub fn offset(&self) -> usize {
        self.handle.offset
    }

    pub fn context(&self) -> &Context {
        self.handle.storage.context()
    }

    /// The id of the memory, which is never reused. Views and clones have the same memory.
    pub fn memory_id(&self) -> u64 {
        self.handle.storage.id()
    }

    pub fn location(&self) -> Location {
        self.handle.storage.location()
    }

    /// Releases the values, unless views of them remain. A second call does nothing.
    pub fn dispose(&self) {
        self.handle.dispose();
    }

    pub fn is_disposed(&self) -> bool {
        self.handle.is_disposed.load(Ordering::Acquire)
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.handle.storage
    }

    /// The op and this tensor, as a request for values; errors name both.
    pub(crate) fn asking(&self, op: &'static str) -> OpRequest<'_> {
        OpRequest { op, shape: &self.handle.shape, dtype: self.handle.dtype }
    }

    /// Fails if the tensor was disposed.
    pub(crate) fn check(&self, op: &'static str) -> Result<(), TensorError> {
        if self.is_disposed() {
            return Err(TensorError::Disposed { op, shape: self.shape().clone(), dtype: self.dtype() });
        }
        Ok(())
    }

    /// Start and end of the values in the storage, in bytes.
    pub(crate) fn byte_range(&self) -> (usize, usize) {
        let start = self.offset() * self.dtype().bytes();
        (start, start + self.bytes())
    }
}

impl Handle {
    pub(crate) fn dispose(&self) {
        if !self.is_disposed.swap(true, Ordering::AcqRel) {
            self.storage.context().counts().tensors.fetch_sub(1, Ordering::Relaxed);
            self.storage.leave();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.dispose();
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} of {}, memory {})", self.shape(), self.dtype(), self.memory_id())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.shape, self.dtype)
    }
}
