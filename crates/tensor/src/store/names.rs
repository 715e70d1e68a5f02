//! Registering, sharing, holding and removing tensors by name. The ledger decides which model may do what.
//!
//! Invariants: only values given as a slice are copied. The store has its own handle to each tensor, so a named tensor
//! survives the end of a scope and `dispose` on another handle. Entries that the ledger returns are dropped after the
//! books are unlocked.

use std::time::Duration;

use super::entry::{Freed, MemoryTag, TensorEntry};
use super::error::StoreError;
use super::held::LeaseOwner;
use super::ledger::{Ledger, ModelReleased};
use super::refusal::{LedgerError, check_tensor_name};
use super::shared::{Store, peek};
use crate::ops::dtype::Element;
use crate::ops::error::TensorError;
use crate::ops::tensor::Tensor;

/// A tensor's name, and the model that uses it.
pub type Named<'a> = (&'a str, &'a str);

impl Store {
    /// Registers a tensor with a copy of `values`. The producer holds the tensor once from now on; the consumers may
    /// use it.
    pub fn register<T: Element>(
        &self,
        name: &str,
        shape: &[usize],
        values: &[T],
        producer: &str,
        consumers: &[&str],
    ) -> Result<(), StoreError> {
        let tensor = self.context()?.tensor(values, shape).map_err(|problem| StoreError::of(name, problem))?;
        self.enter(&[(name, &tensor)], producer, consumers)
    }

    /// Registers a tensor without a copy. The named tensor and `tensor` share their values, so a write to either of
    /// them changes both.
    pub fn register_tensor(
        &self,
        name: &str,
        tensor: &Tensor,
        producer: &str,
        consumers: &[&str],
    ) -> Result<(), StoreError> {
        self.enter(&[(name, tensor)], producer, consumers)
    }

    /// A handle to a tensor, for its producer and its consumers. The handle shares the memory of the named tensor, and
    /// stays valid after the name is removed.
    pub fn tensor(&self, name: &str, model: &str) -> Result<Tensor, StoreError> {
        let now = self.now();
        let tensor = {
            let mut books = self.books()?;
            let tensor = peek(&books.ledger.get(name, model)?.payload);
            books.ledger.touch(name, now);
            tensor
        };
        check_there(name, &tensor)?;
        tensor.reshape(tensor.shape().lengths()).map_err(|problem| StoreError::of(name, problem))
    }

    /// Lets more models use a tensor, on behalf of `from`, which must itself be allowed to use the tensor. Returns the
    /// number of models that were added.
    pub fn share(&self, name: &str, from: &str, to: &[&str]) -> Result<usize, StoreError> {
        let new = self.books()?.ledger.share(name, from, to)?;
        self.say(|| format!("`{name}` is shared by {from} with {}", to.join(", ")));
        Ok(new)
    }

    /// Adds a hold of a model on a tensor. Returns the model's new number of holds.
    pub fn acquire(&self, name: &str, model: &str) -> Result<u64, StoreError> {
        Ok(self.books()?.ledger.acquire(name, model)?)
    }

    /// Removes one hold. Returns the number of holds that the model has left. When no model holds the tensor any more,
    /// the tensor is freed after the grace period, which is zero by default.
    pub fn release(&self, name: &str, model: &str) -> Result<u64, StoreError> {
        let now = self.now();
        let (left, freed) = {
            let mut books = self.books()?;
            let left = books.ledger.release(name, model, now)?;
            (left, free_if_due(&mut books.ledger, name, now))
        };
        self.say_freed(freed.as_slice());
        Ok(left)
    }

    /// Removes all holds of a model, and removes the model from the consumers of all tensors. Leases are not affected.
    pub fn release_model(&self, model: &str) -> Result<ModelReleased, StoreError> {
        let now = self.now();
        let (released, freed) = {
            let mut books = self.books()?;
            let released = books.ledger.release_model(model, now);
            (released, take_due(&mut books.ledger, now))
        };
        self.say_freed(&freed);
        Ok(released)
    }

    /// Keeps a tensor even if no model holds it. While a tensor is pinned, `optimise` does not move it off the device.
    /// Pins do not nest.
    pub fn pin(&self, name: &str) -> Result<(), StoreError> {
        Ok(self.books()?.ledger.pin(name)?)
    }

    /// Removes the pin. The pin counts as use until now, so the grace period starts now.
    pub fn unpin(&self, name: &str) -> Result<(), StoreError> {
        let now = self.now();
        let freed = {
            let mut books = self.books()?;
            books.ledger.unpin(name, now)?;
            free_if_due(&mut books.ledger, name, now)
        };
        self.say_freed(freed.as_slice());
        Ok(())
    }

    /// Registers a part of a tensor under a name of its own: `size` values from `offset` on, by default all values that
    /// follow. Nothing is copied. The memory lives until the part and the whole tensor are both removed.
    pub fn view(
        &self,
        (name, model): Named<'_>,
        (view, target): Named<'_>,
        offset: usize,
        size: Option<usize>,
    ) -> Result<String, StoreError> {
        let tensor = self.tensor(name, model)?;
        let size = size.unwrap_or_else(|| tensor.count().saturating_sub(offset));
        let seen = tensor.view(offset, size).map_err(|problem| StoreError::of(view, problem))?;
        self.enter(&[(view, &seen)], target, &[])?;
        Ok(view.to_owned())
    }

    /// Replaces the tensor under a name. Only the producer of the tensor may do this. Consumers, holds and the pin
    /// stay. Views and leases of the old tensor keep the old values.
    pub fn replace(&self, name: &str, model: &str, tensor: &Tensor) -> Result<(), StoreError> {
        let own = self.own("replace", name, tensor)?;
        let now = self.now();
        let old = {
            let mut books = self.books()?;
            let old = books.ledger.replace(name, model, entry(&own))?;
            books.ledger.touch(name, now);
            old
        };
        drop(old);
        self.say(|| format!("`{name}` is replaced by {} of {}", own.shape(), own.dtype()));
        Ok(())
    }

    /// Removes a tensor regardless of the grace period. Only the producer of the tensor may do this. Fails if other
    /// models hold the tensor, or if it is leased or pinned.
    pub fn unregister(&self, name: &str, model: &str) -> Result<(), StoreError> {
        let freed = {
            let mut books = self.books()?;
            let leases = books.ledger.entry(name).map_or(0, |entry| entry.payload.leases());
            if leases > 0 {
                return Err(StoreError::Leased { name: name.to_owned(), leases });
            }
            books.ledger.unregister(name, model)?
        };
        self.say_freed(&[freed]);
        Ok(())
    }

    /// The names of all tensors, sorted. Empty after [`Store::dispose`].
    pub fn names(&self) -> Vec<String> {
        self.books().map_or_else(|_| Vec::new(), |books| books.ledger.names().map(str::to_owned).collect())
    }

    /// The number of holds of one model.
    pub fn held(&self, name: &str, model: &str) -> Result<u64, StoreError> {
        Ok(self.books()?.ledger.held(name, model))
    }

    /// Registers either all of these tensors under their names, or none.
    pub(super) fn enter(
        &self,
        tensors: &[(&str, &Tensor)],
        producer: &str,
        consumers: &[&str],
    ) -> Result<(), StoreError> {
        let owned: Result<Vec<(&str, Tensor)>, StoreError> =
            tensors.iter().map(|(name, tensor)| Ok((*name, self.own("register", name, tensor)?))).collect();
        // `owned` outlives the lock below: a refused entry is dropped under the lock and must not be the last handle.
        let owned = owned?;
        let now = self.now();
        let mut undone = Vec::new();
        let entered = {
            let mut books = self.books()?;
            let mut enter = |(name, tensor): &(&str, Tensor)| {
                books.ledger.register(name, producer, consumers, entry(tensor), false, now)
            };
            let entered =
                owned.iter().enumerate().try_for_each(|(at, one)| enter(one).map_err(|refused| (at, refused)));
            entered.map_err(|(at, refused)| {
                let before = owned[..at].iter();
                undone.extend(before.filter_map(|(name, _)| books.ledger.unregister(name, producer).ok()));
                refused
            })
        };
        entered?;
        for (name, tensor) in &owned {
            self.say(|| format!("`{name}` is {} of {}, by {producer}", tensor.shape(), tensor.dtype()));
        }
        Ok(())
    }

    /// Refuses invalid or taken names of results before the results are computed.
    pub(super) fn expect_free(&self, names: &[&str]) -> Result<(), StoreError> {
        let books = self.books()?;
        for name in names {
            check_tensor_name(name)?;
            if let Some(producer) = books.ledger.producer(name) {
                let (name, producer) = ((*name).to_owned(), producer.to_owned());
                return Err(LedgerError::Taken { name, producer }.into());
            }
        }
        Ok(())
    }

    /// The store's own handle to a tensor, which must belong to the store's context.
    pub(super) fn own(&self, op: &'static str, name: &str, tensor: &Tensor) -> Result<Tensor, StoreError> {
        tensor.check(op).map_err(|problem| StoreError::of(name, problem))?;
        if !self.context()?.is(tensor.context()) {
            return Err(StoreError::of(name, TensorError::Foreign { op }));
        }
        Ok(tensor.apart())
    }

    /// Reports the freed tensors. The caller drops these tensors after the books are unlocked.
    pub(super) fn say_freed(&self, freed: &[Freed<LeaseOwner<Tensor>>]) {
        for Freed { name, memory, last_of_its_memory, .. } in freed {
            let of = if *last_of_its_memory { "with its memory of" } else { "but other names still use its memory of" };
            self.say(|| format!("`{name}` is freed, {of} {} bytes", memory.bytes));
        }
    }
}

/// Removes a tensor from the ledger if it is due and not leased.
pub(super) fn free_if_due(
    ledger: &mut Ledger<LeaseOwner<Tensor>>,
    name: &str,
    now: Duration,
) -> Option<Freed<LeaseOwner<Tensor>>> {
    if ledger.entry(name)?.payload.leases() > 0 {
        return None;
    }
    ledger.take(name, now).ok()
}

/// Removes every tensor that is due and not leased.
pub(super) fn take_due(ledger: &mut Ledger<LeaseOwner<Tensor>>, now: Duration) -> Vec<Freed<LeaseOwner<Tensor>>> {
    let due = ledger.due(now);
    due.iter().filter_map(|due| free_if_due(ledger, &due.name, now)).collect()
}

/// Returns an error with the tensor's name if its values are lost.
pub(super) fn check_there(name: &str, tensor: &Tensor) -> Result<(), StoreError> {
    tensor.storage().check(tensor.asking("tensor")).map_err(|problem| StoreError::of(name, problem))
}

pub(super) fn entry(tensor: &Tensor) -> TensorEntry<LeaseOwner<Tensor>> {
    let memory = MemoryTag { tag: tensor.memory_id(), bytes: tensor.storage().bytes() as u64 };
    TensorEntry { bytes: tensor.bytes() as u64, memory, fingerprint: None, payload: LeaseOwner::new(tensor.clone()) }
}
