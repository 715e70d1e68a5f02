//! Tensors by name: how they come in, who may use them, and how they go.
//!
//! Owns the way between the books and tensors.
//! Does not decide who may do what: the ledger does.
//!
//! Always: nothing is copied but values that were given as a slice; the store's tensors are its own, so that no scope and
//! nobody's `dispose` takes them from under a name; what the books hand out is dropped after they were unlocked.

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

/// A tensor's name, and the model on whose behalf it is named.
pub type Named<'a> = (&'a str, &'a str);

impl Store {
    /// Makes a tensor of values, which are copied once. Its producer holds it from now on, once; its consumers may use it.
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

    /// Gives a tensor a name, without a copy: what is written through either is seen through both.
    pub fn register_tensor(
        &self,
        name: &str,
        tensor: &Tensor,
        producer: &str,
        consumers: &[&str],
    ) -> Result<(), StoreError> {
        self.enter(&[(name, tensor)], producer, consumers)
    }

    /// A tensor, for its producer and its consumers. It shares the memory with the name and outlives it.
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

    /// Lets more models use a tensor, by one that may. Says how many are new.
    pub fn share(&self, name: &str, from: &str, to: &[&str]) -> Result<usize, StoreError> {
        let new = self.books()?.ledger.share(name, from, to)?;
        self.say(|| format!("`{name}` is shared by {from} with {}", to.join(", ")));
        Ok(new)
    }

    /// Takes a tensor for use, once more if the model holds it already. Says how often it does now.
    pub fn acquire(&self, name: &str, model: &str) -> Result<u64, StoreError> {
        Ok(self.books()?.ledger.acquire(name, model)?)
    }

    /// Gives a tensor back, once. Says how often the model still holds it. What nobody holds is freed after the grace
    /// period, which is at once if there is none.
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

    /// Gives back all that a model holds, and takes it from those that may use tensors of others. Leases are not among
    /// that: each ends by itself.
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

    /// Keeps a tensor even when nobody holds it, and on the device. Pinning twice is pinning.
    pub fn pin(&self, name: &str) -> Result<(), StoreError> {
        Ok(self.books()?.ledger.pin(name)?)
    }

    /// Lets a tensor go again; the pin counts as use until now.
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

    /// Gives values of a tensor, from `offset` on and `size` of them or all that are left, a name of their own. Nothing
    /// is copied, and the memory lives as long as either name.
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

    /// Puts another tensor under a name, by who made it; users, holds and the pin stay. Views and leases of the old one
    /// keep what they have.
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

    /// Takes a name away, by who made it, whatever the grace period; not while others hold it or it is leased or pinned.
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

    /// Names of all tensors, in order; none of a store that was disposed of.
    pub fn names(&self) -> Vec<String> {
        self.books().map_or_else(|_| Vec::new(), |books| books.ledger.names().map(str::to_owned).collect())
    }

    /// How often a model holds a tensor.
    pub fn held(&self, name: &str, model: &str) -> Result<u64, StoreError> {
        Ok(self.books()?.ledger.held(name, model))
    }

    /// Enters tensors under their names, all of them or none.
    pub(super) fn enter(
        &self,
        tensors: &[(&str, &Tensor)],
        producer: &str,
        consumers: &[&str],
    ) -> Result<(), StoreError> {
        let owned: Result<Vec<(&str, Tensor)>, StoreError> =
            tensors.iter().map(|(name, tensor)| Ok((*name, self.own("register", name, tensor)?))).collect();
        // Outlives the lock below: an entry that is refused is dropped under it, and must not be the last.
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

    /// Refuses names that are taken, or none, before anything is computed for them.
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

    /// The store's own tensor over somebody's values, which have to be of its context.
    pub(super) fn own(&self, op: &'static str, name: &str, tensor: &Tensor) -> Result<Tensor, StoreError> {
        tensor.check(op).map_err(|problem| StoreError::of(name, problem))?;
        if !self.context()?.is(tensor.context()) {
            return Err(StoreError::of(name, TensorError::Foreign { op }));
        }
        Ok(tensor.apart())
    }

    /// Tells what was freed; whoever took it off the books drops it after they were unlocked.
    pub(super) fn say_freed(&self, freed: &[Freed<LeaseOwner<Tensor>>]) {
        for Freed { name, memory, last_of_its_memory, .. } in freed {
            let of = if *last_of_its_memory { "with" } else { "of memory that others are in, of" };
            self.say(|| format!("`{name}` is freed, {of} {} bytes", memory.bytes));
        }
    }
}

/// Takes a tensor off the books if it is due and nobody has leased it.
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

/// Takes everything off the books that is due and that nobody has leased.
pub(super) fn take_due(ledger: &mut Ledger<LeaseOwner<Tensor>>, now: Duration) -> Vec<Freed<LeaseOwner<Tensor>>> {
    let due = ledger.due(now);
    due.iter().filter_map(|due| free_if_due(ledger, &due.name, now)).collect()
}

/// An error that names the tensor, where its values are gone.
pub(super) fn check_there(name: &str, tensor: &Tensor) -> Result<(), StoreError> {
    tensor.storage().check(tensor.asking("tensor")).map_err(|problem| StoreError::of(name, problem))
}

pub(super) fn entry(tensor: &Tensor) -> TensorEntry<LeaseOwner<Tensor>> {
    let memory = MemoryTag { tag: tensor.memory_id(), bytes: tensor.storage().bytes() as u64 };
    TensorEntry { bytes: tensor.bytes() as u64, memory, fingerprint: None, payload: LeaseOwner::new(tensor.clone()) }
}
