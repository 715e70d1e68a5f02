//! Scopes: what is made inside and not handed out is disposed of at the end.
//!
//! Owns, per thread, the list of what each open scope has made.
//! Does not replace ownership: a tensor that is dropped is gone at once. A scope is for those that something still holds:
//! caches, captured variables, values of a library.
//!
//! Always: a scope ends on success, on error and on panic alike; what it returns, and what was kept, belongs to the scope
//! around it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use super::Context;
use crate::ops::tensor::{Handle, Tensor};

thread_local! {
    static OPEN: RefCell<Vec<Vec<Weak<Handle>>>> = const { RefCell::new(Vec::new()) };
}

/// An open scope.
#[derive(Debug)]
pub struct TensorScope {
    /// Where it stands among the open ones of its thread.
    depth: usize,
    /// It is its thread's, and cannot be sent to another.
    of_thread: PhantomData<*const ()>,
}

impl TensorScope {
    /// Keeps a tensor beyond the end of the scope; it belongs to the scope around it.
    pub fn keep(&self, tensor: &Tensor) {
        let kept = tensor.handle();
        OPEN.with_borrow_mut(|open| {
            let mut was_made_here = false;
            for made in &mut open[self.depth..] {
                let before = made.len();
                made.retain(|one| !is(one, kept));
                was_made_here |= made.len() < before;
            }
            // What was made elsewhere belongs to whoever made it.
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
    /// Runs something in a scope: tensors that it makes on this thread are disposed of when it ends, on error too, but for
    /// those that it returns or keeps.
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

/// Notes for the innermost open scope of this thread that a tensor was made.
pub(crate) fn note_made(handle: &Arc<Handle>) {
    OPEN.with_borrow_mut(|open| {
        if let Some(made) = open.last_mut() {
            made.push(Arc::downgrade(handle));
        }
    });
}

/// Takes a tensor out of every open scope of this thread: it belongs to whoever holds it.
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

/// What a scope may return: names the tensors in it.
pub trait Escape {
    /// Tells of each tensor.
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
