//! Scopes: when a scope ends, the tensors that were created in the scope are disposed, except tensors that the scope
//! returns or keeps. Each thread has a list of the tensors that its open scopes created.
//!
//! A scope does not replace ownership: a dropped tensor is released at once. A scope is for tensors that something
//! still holds, such as caches, captured variables or values of a library.
//!
//! Invariants: a scope ends on success, on error and on panic. Tensors that a scope returns or keeps then belong to the
//! enclosing scope.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use super::Context;
use crate::ops::tensor::{Handle, Tensor};

thread_local! {
    static OPEN: RefCell<Vec<Vec<Weak<Handle>>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub struct TensorScope {
    /// The index of this scope among the open scopes of its thread.
    depth: usize,
    /// Not `Send`: a scope belongs to its thread.
    of_thread: PhantomData<*const ()>,
}

impl TensorScope {
    /// Keeps a tensor beyond the end of the scope; the tensor then belongs to the enclosing scope.
    pub fn keep(&self, tensor: &Tensor) {
        let kept = tensor.handle();
        OPEN.with_borrow_mut(|open| {
            let mut was_made_here = false;
            for made in &mut open[self.depth..] {
                let before = made.len();
                made.retain(|one| !is(one, kept));
                was_made_here |= made.len() < before;
            }
            // A tensor that was created elsewhere stays in its own scope.
            let around = self.depth.checked_sub(1).and_then(|at| open.get_mut(at));
            if let Some(around) = around.filter(|_| was_made_here) {
                around.push(Arc::downgrade(kept));
            }
        });
    }
}

impl Drop for TensorScope {
    fn drop(&mut self) {
        let made = OPEN.with_borrow_mut(|open| open.drain(self.depth..).flatten().collect::<Vec<_>>());
        for handle in made.iter().filter_map(Weak::upgrade) {
            handle.dispose();
        }
    }
}

impl Context {
    /// Runs `act` in a scope. When `act` ends, also on error, the tensors that `act` created on this thread are
    /// disposed, except tensors that `act` returns or keeps.
    pub fn scope<T: Escape, E>(&self, act: impl FnOnce(&TensorScope) -> Result<T, E>) -> Result<T, E> {
        let depth = OPEN.with_borrow_mut(|open| {
            open.push(Vec::new());
            open.len() - 1
        });
        let scope = TensorScope { depth, of_thread: PhantomData };
        let answer = act(&scope)?;
        answer.escape(&mut |tensor| scope.keep(tensor));
        Ok(answer)
    }
}

/// Adds a new tensor to the innermost open scope of this thread.
pub(crate) fn note_made(handle: &Arc<Handle>) {
    OPEN.with_borrow_mut(|open| {
        if let Some(made) = open.last_mut() {
            made.push(Arc::downgrade(handle));
        }
    });
}

/// Removes a tensor from every open scope of this thread, so that the tensor lives as long as its holder.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn leave_scopes(handle: &Arc<Handle>) {
    OPEN.with_borrow_mut(|open| {
        for made in open {
            made.retain(|one| !is(one, handle));
        }
    });
}

fn is(one: &Weak<Handle>, other: &Arc<Handle>) -> bool {
    std::ptr::eq(one.as_ptr(), Arc::as_ptr(other))
}

/// A value that a scope may return. The implementation names the tensors in the value.
pub trait Escape {
    /// Calls `tell` for each tensor.
    fn escape(&self, tell: &mut dyn FnMut(&Tensor));
}

impl Escape for Tensor {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        tell(self);
    }
}

macro_rules! without_tensors {
    ($($type:ty),*) => {
        $(impl Escape for $type {
            fn escape(&self, _: &mut dyn FnMut(&Tensor)) {}
        })*
    };
}

without_tensors!((), bool, f32, f64, i32, u32, u64, usize, String, Vec<f32>, Vec<f64>, Vec<i32>, Vec<u32>, Vec<u8>);

impl<T: Escape> Escape for Option<T> {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        if let Some(one) = self {
            one.escape(tell);
        }
    }
}

impl Escape for Vec<Tensor> {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(tell);
    }
}

impl<A: Escape, B: Escape> Escape for (A, B) {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        self.0.escape(tell);
        self.1.escape(tell);
    }
}

impl<A: Escape, B: Escape, C: Escape> Escape for (A, B, C) {
    fn escape(&self, tell: &mut dyn FnMut(&Tensor)) {
        self.0.escape(tell);
        self.1.escape(tell);
        self.2.escape(tell);
    }
}
