//! A tensor in the ledger: what was registered, and how often each model holds it.
//!
//! The ledger decides which model may do what. Holds are counted per model; a model with 0 holds is not a holder.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A tensor as registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry<T> {
    /// The tensor itself; opaque to the ledger.
    pub payload: T,
    /// Bytes of the tensor's own values.
    pub bytes: u64,
    /// The memory that the values are in.
    pub memory: MemoryTag,
    /// A number that is equal for tensors with equal values. Tensors without a fingerprint are not compared.
    pub fingerprint: Option<u64>,
}

/// A memory that tensors are in. Views of a tensor, and tensors that share its values, are in the same memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryTag {
    /// Identifies the memory. A tag is never reused; an address could be.
    pub tag: u64,
    /// The size of the whole memory.
    pub bytes: u64,
}

/// A tensor that was removed from the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed<T> {
    pub name: String,
    pub payload: T,
    pub memory: MemoryTag,
    /// True if no other registered tensor is in the same memory.
    pub last_of_its_memory: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Record<T> {
    pub(super) entry: TensorEntry<T>,
    pub(super) producer: String,
    pub(super) consumers: BTreeSet<String>,
    /// Every model that ever acquired the tensor. Models without holds stay in the map, because the error for a
    /// superfluous release quotes `taken`.
    pub(super) uses: BTreeMap<String, Uses>,
    pub(super) pinned: bool,
    /// The time of the last registration, release, unpinning or touch. `idle` ignores this time while a model holds the
    /// tensor.
    pub(super) idle_since: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    pub(super) held: u64,
    pub(super) taken: u64,
}

impl<T> Record<T> {
    pub(super) fn may_use(&self, model: &str) -> bool {
        self.producer == model || self.consumers.contains(model)
    }

    pub(super) fn held_by(&self, model: &str) -> u64 {
        self.uses.get(model).map_or(0, |uses| uses.held)
    }

    pub(super) fn holders(&self) -> impl Iterator<Item = &str> {
        self.uses.iter().filter(|(_, uses)| uses.held > 0).map(|(model, _)| model.as_str())
    }

    pub(super) fn holds(&self) -> u64 {
        self.uses.values().map(|uses| uses.held).sum()
    }

    pub(super) fn take(&mut self, model: &str) -> u64 {
        let uses = self.uses.entry(model.to_owned()).or_default();
        uses.held += 1;
        uses.taken += 1;
        uses.held
    }

    /// The time since the last use. `None` while the tensor is held or pinned.
    pub(super) fn idle(&self, now: Duration) -> Option<Duration> {
        (!self.pinned && self.holds() == 0).then(|| now.saturating_sub(self.idle_since))
    }
}
