//! Leases of named tensors. A lease ends when it is dropped; the store then frees the tensor if the tensor is due.
//!
//! Leases do not count as holds, so `release_model` does not end them.
//!
//! Invariant: while a lease exists, the tensor keeps its name unless the producer replaces the tensor or the store is
//! disposed of. The memory of the tensor stays in place except in `recover`, so GPU code may write to the buffer from
//! `as_buffer`.

use std::ops::Deref;

use super::error::StoreError;
use super::held::Lease;
use super::names::{check_there, free_if_due};
use super::shared::{Store, WeakStore};
use crate::ops::tensor::Tensor;

/// The right to use a named tensor, until the lease is dropped.
pub struct TensorLease {
    /// `None` only while the lease is being dropped.
    lease: Option<Lease<Tensor>>,
    name: String,
    store: WeakStore,
}

impl Store {
    /// Leases a tensor to a model that may use it. Until the lease is dropped, `optimise` neither frees nor moves the
    /// tensor.
    pub fn lease(&self, name: &str, model: &str) -> Result<TensorLease, StoreError> {
        let now = self.now();
        let lease = {
            let mut books = self.books()?;
            let lease = books.ledger.get(name, model)?.payload.lease();
            books.ledger.touch(name, now);
            lease.expect("an owner in the books is open")
        };
        let lease = TensorLease { lease: Some(lease), name: name.to_owned(), store: self.downgrade() };
        // `check_there` takes the lock that a move of the values holds. When `check_there` returns, every move that
        // began before the lease is over, and no other move can begin.
        check_there(name, &lease)?;
        Ok(lease)
    }
}

impl TensorLease {
    /// The leased name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Deref for TensorLease {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        self.lease.as_ref().expect("a lease has its tensor until it is dropped")
    }
}

impl Drop for TensorLease {
    fn drop(&mut self) {
        // This comes before the books are locked, because the tensor may be dropped here.
        drop(self.lease.take());
        let Some(store) = self.store.store() else { return };
        let now = store.now();
        let freed = {
            let Ok(mut books) = store.books() else { return };
            books.ledger.touch(&self.name, now);
            free_if_due(&mut books.ledger, &self.name, now)
        };
        store.say_freed(freed.as_slice());
    }
}

impl std::fmt::Debug for TensorLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TensorLease(`{}`: {:?})", self.name, self.lease.as_deref())
    }
}
