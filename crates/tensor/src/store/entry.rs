//! What the books keep about one tensor.
//!
//! Owns what is said when a tensor is registered, and the counts of its users.
//! Does not decide who may do what: the ledger does.
//!
//! Always: who holds it is counted per model, and a model that holds it 0 times is not among the holders.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A tensor, as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry<T> {
    /// The tensor itself, whatever it is to the owner of the books.
    pub payload: T,
    /// Bytes of its own values.
    pub bytes: u64,
    /// The memory that they lie in.
    pub memory: MemoryTag,
    /// A number that equal values have in common. Tensors without one are not compared.
    pub fingerprint: Option<u64>,
}

/// Memory that tensors lie in: views and shares of one are in the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryTag {
    /// Which one. A tag is given once and never again: an address would come back with another meaning.
    pub tag: u64,
    /// All its bytes.
    pub bytes: u64,
}

/// A tensor that is no longer in the books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed<T> {
    /// Its name.
    pub name: String,
    /// The tensor.
    pub payload: T,
    /// The memory it was in.
    pub memory: MemoryTag,
    /// Whether nothing else in the books is in that memory.
    pub last_of_its_memory: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Record<T> {
    pub(super) entry: TensorEntry<T>,
    pub(super) producer: String,
    pub(super) consumers: BTreeSet<String>,
    /// Who ever took it. Kept apart from the holders, so that a mistaken release can be told the numbers.
    pub(super) uses: BTreeMap<String, Uses>,
    pub(super) pinned: bool,
    /// When somebody last held it; while somebody does, it is not looked at.
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

    /// How long it was left alone; none while it is held or pinned.
    pub(super) fn idle(&self, now: Duration) -> Option<Duration> {
        (!self.pinned && self.holds() == 0).then(|| now.saturating_sub(self.idle_since))
    }
}
