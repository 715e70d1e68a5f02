//! A value whose type is asked for at run time only.
//!
//! Owns the way in and out.
//! Does not convert: it comes out as what it went in.
//!
//! Whether a type may be shared between threads is decided by looking through all that it is made of, in each crate anew,
//! and wgpu's types are so deep that a vector of tensors was beyond what the compiler looks through unless told
//! (`overflow evaluating the requirement`). Nobody has to be told, since it does not look in here.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// A value that may be shared between threads, whatever it is made of. Clones are the same one.
pub(crate) struct Erased<T> {
    value: Arc<dyn Any + Send + Sync>,
    is: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Erased<T> {
    pub(crate) fn new(value: T) -> Erased<T> {
        Erased { value: Arc::new(value), is: PhantomData }
    }
}

impl<T> Clone for Erased<T> {
    fn clone(&self) -> Self {
        Erased { value: Arc::clone(&self.value), is: PhantomData }
    }
}

impl<T: 'static> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.downcast_ref().expect("only `new` makes one, of this type")
    }
}
