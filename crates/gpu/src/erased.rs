//! A shared value whose type the compiler does not look into when it proves that a program may share the value.
//!
//! To prove that a type is `Send` or `Sync`, the compiler descends into all of its fields. For the types of wgpu that
//! goes deeper than the default `recursion_limit` of a program that sends a pipeline to a thread. Behind a trait object
//! the proof is done here, once. An access compares two type numbers, about a nanosecond.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

pub(crate) struct Erased<T> {
    value: Arc<dyn Any + Send + Sync>,
    kind: PhantomData<fn() -> T>,
}

impl<T: Any + Send + Sync> Erased<T> {
    pub(crate) fn new(value: T) -> Erased<T> {
        Erased { value: Arc::new(value), kind: PhantomData }
    }
}

impl<T> Clone for Erased<T> {
    fn clone(&self) -> Erased<T> {
        Erased { value: Arc::clone(&self.value), kind: PhantomData }
    }
}

impl<T: Any> Deref for Erased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.downcast_ref().expect("`new` has stored a value of this type")
    }
}

impl<T: Any + std::fmt::Debug> std::fmt::Debug for Erased<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
