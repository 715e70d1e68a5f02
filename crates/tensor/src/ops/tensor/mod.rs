//! Tensors: a shape and a type on top of values that may be anywhere.
//!
//! Owns the handle that people hold, and how values come in, are seen differently, and come out.
//! Does not compute: `ops` does.
//!
//! Always: making a view copies nothing; a view keeps the values alive that it looks at, whatever becomes of the tensor it
//! was made from; a tensor that was disposed of says so whenever it is used.

mod make;
mod read;
mod view;

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

/// One tensor, as it is counted.
pub(crate) struct Handle {
    shape: Shape,
    dtype: DType,
    /// Where it begins in its storage, in values.
    offset: usize,
    storage: Arc<Storage>,
    is_disposed: AtomicBool,
}

impl Tensor {
    /// A tensor over a storage from this value on.
    pub(crate) fn over(storage: Arc<Storage>, shape: Shape, dtype: DType, offset: usize) -> Tensor {
        let tensor = Tensor::outside_scopes(storage, shape, dtype, offset);
        note_made(&tensor.handle);
        tensor
    }

    /// The same values as a tensor of its own, which no scope and nobody's `dispose` but its owner's ends.
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

    /// Its lengths along its axes.
    pub fn shape(&self) -> &Shape {
        &self.handle.shape
    }

    /// The type of its values.
    pub fn dtype(&self) -> DType {
        self.handle.dtype
    }

    /// How many values it has.
    pub fn count(&self) -> usize {
        self.handle.shape.count()
    }

    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        self.count() * self.dtype().bytes()
    }

    /// Where it begins in the memory that it shares with others, in values.
    pub fn offset(&self) -> usize {
        self.handle.offset
    }

    /// Where it lives.
    pub fn context(&self) -> &Context {
        self.handle.storage.context()
    }

    /// Which memory it looks at: a number that is never used again. Views and clones have the same one.
    pub fn memory_id(&self) -> u64 {
        self.handle.storage.id()
    }

    /// Where its newest values are.
    pub fn location(&self) -> Location {
        self.handle.storage.location()
    }

    /// Gives its values up; where views of them live on, they keep theirs. Doing it again does nothing.
    pub fn dispose(&self) {
        self.handle.dispose();
    }

    /// Whether it was disposed of.
    pub fn is_disposed(&self) -> bool {
        self.handle.is_disposed.load(Ordering::Acquire)
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.handle.storage
    }

    /// Who asks about it, for errors.
    pub(crate) fn asking(&self, op: &'static str) -> OpRequest<'_> {
        OpRequest { op, shape: &self.handle.shape, dtype: self.handle.dtype }
    }

    /// An error where it was disposed of.
    pub(crate) fn check(&self, op: &'static str) -> Result<(), TensorError> {
        if self.is_disposed() {
            return Err(TensorError::Disposed { op, shape: self.shape().clone(), dtype: self.dtype() });
        }
        Ok(())
    }

    /// Its first and behind its last byte in its storage.
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
