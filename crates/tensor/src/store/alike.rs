//! Tensors of different models that hold the same values.
//!
//! Owns the comparison.
//! Does not join them: that a write through one is then seen through the other is for their models to want.
//!
//! Always: what is called alike was compared value by value, bit by bit, in the same shape and type.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

use super::advice::Opportunity;
use super::error::StoreError;
use super::shared::{Store, peek};
use crate::ops::tensor::Tensor;

/// Which tensors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Search {
    /// Those whose newest values the host has: nothing is moved for it.
    #[default]
    OnHost,
    /// All of them. What only the device has is read for it, and each read counts as a transfer.
    Everywhere,
}

impl Store {
    /// What could be shared and is not, most bytes first.
    pub fn opportunities(&self, search: Search) -> Result<Vec<Opportunity>, StoreError> {
        self.compare(search)?;
        Ok(self.books()?.ledger.opportunities())
    }

    /// What to do about memory, in words, most bytes first.
    pub fn recommendations(&self, search: Search) -> Result<Vec<String>, StoreError> {
        self.compare(search)?;
        Ok(self.books()?.ledger.recommendations())
    }

    /// Finds out who holds the same values, and notes it in the books: one number for all of a kind.
    fn compare(&self, search: Search) -> Result<(), StoreError> {
        let all: Vec<(String, Tensor)> = {
            let books = self.books()?;
            let entries = books.ledger.names().filter_map(|name| Some((name, books.ledger.entry(name)?)));
            entries.map(|(name, entry)| (name.to_owned(), peek(&entry.payload))).collect()
        };
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for group in of_one_shape(&all, search) {
            let mut kinds: Vec<(u64, &Tensor, u64)> = Vec::new();
            for (name, tensor) in group {
                let failed = |problem| StoreError::of(name, problem);
                let sum = tensor.sum_of_bits().map_err(failed)?;
                let mut kind = None;
                for (_, other, number) in kinds.iter().filter(|(other_sum, ..)| *other_sum == sum) {
                    if tensor.has_bits_of(other).map_err(failed)? {
                        kind = Some(*number);
                        break;
                    }
                }
                let number = kind.unwrap_or(found.len() as u64);
                if kind.is_none() {
                    kinds.push((sum, tensor, number));
                }
                found.insert(name.clone(), number);
            }
        }
        let mut books = self.books()?;
        for (name, tensor) in &all {
            // Not of one that was replaced since.
            if books.ledger.entry(name).is_some_and(|entry| entry.memory.tag == tensor.memory_id()) {
                books.ledger.set_fingerprint(name, found.get(name).copied());
            }
        }
        Ok(())
    }
}

/// Those that could be alike: of one shape and type, and not all in the same memory.
fn of_one_shape(all: &[(String, Tensor)], search: Search) -> Vec<Vec<&(String, Tensor)>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one @ (_, tensor) in all {
        let location = tensor.location();
        // What is gone is nowhere.
        if location.host || (search == Search::Everywhere && location.device) {
            groups.entry((tensor.dtype(), tensor.shape())).or_default().push(one);
        }
    }
    let apart = |group: &Vec<&(String, Tensor)>| {
        group.iter().map(|(_, tensor)| tensor.memory_id()).collect::<BTreeSet<u64>>().len() > 1
    };
    groups.into_values().filter(apart).collect()
}

impl Tensor {
    /// A number that equal values have in common.
    fn sum_of_bits(&self) -> Result<u64, crate::ops::error::TensorError> {
        self.storage().read(self.asking("compare"), self.byte_range(), |bytes| {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            hasher.finish()
        })
    }

    /// Whether another has the same values, bit by bit.
    fn has_bits_of(&self, other: &Tensor) -> Result<bool, crate::ops::error::TensorError> {
        let bytes = other.read_bytes()?;
        self.storage().read(self.asking("compare"), self.byte_range(), |own| own == bytes)
    }
}
