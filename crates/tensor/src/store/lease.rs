//! The use of a named tensor, until it is dropped.
//!
//! Owns one lease, and tells the books when it ends.
//! Does not count among what a model holds: `release_model` cannot take it from under somebody.
//!
//! Always: while there is a lease, the tensor keeps its name unless its producer replaces it, and its memory stays where it
//! is, but for `recover`: GPU code may write to what `as_buffer` gave.

use std::ops::Deref;

use super::error::StoreError;
use super::held::Lease;
use super::names::{check_there, free_if_due};
use super::shared::{Store, WeakStore};
use crate::ops::tensor::Tensor;

/// The use of a named tensor, until it is dropped.
pub struct TensorLease {
    /// Gone only while it ends.
    lease: Option<Lease<Tensor>>,
    name: String,
    store: WeakStore,
}

impl Store {
    /// Leases a tensor to one that may use it: until the lease is dropped, `optimise` neither frees nor moves it.
    pub fn lease(&self, name: &str, model: &str) -> Result<TensorLease, StoreError> {
        let now = self.now();
        let lease = {
            let mut books = self.books()?;
            let lease = books.ledger.get(name, model)?.payload.lease();
            books.ledger.touch(name, now);
            lease.expect("what is in the books is open")
        };
        let lease = TensorLease { lease: Some(lease), name: name.to_owned(), store: self.somewhere() };
        // Takes the lock that a move holds: one that began before has ended, and no other begins.
        check_there(name, &lease)?;
        Ok(lease)
    }
}

impl TensorLease {
    /// The name that was leased.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Deref for TensorLease {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        self.lease.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for TensorLease {
    fn drop(&mut self) {
        // Before the books are locked: the tensor may end here.
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
