//! Finding tensors of different models that have the same values.
//!
//! Two tensors have the same values if they have the same shape, type and bits; hashes only select which tensors to
//! compare. Equal tensors are not merged, because a write to one of them would then change the other. Only the models
//! can decide whether such a shared change is acceptable.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

use super::advice::Opportunity;
use super::error::StoreError;
use super::shared::{Store, peek};
use crate::ops::tensor::Tensor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Search {
    /// Compares only tensors whose newest values are on the host. Nothing is transferred.
    #[default]
    OnHost,
    /// Compares all tensors. Values that only the device has are read back, which counts as transfers.
    Everywhere,
}

impl Store {
    /// Sharing opportunities, largest saving first.
    pub fn opportunities(&self, search: Search) -> Result<Vec<Opportunity>, StoreError> {
        self.compare(search)?;
        Ok(self.books()?.ledger.opportunities())
    }

    /// Advice on memory as text, largest saving first.
    pub fn recommendations(&self, search: Search) -> Result<Vec<String>, StoreError> {
        self.compare(search)?;
        Ok(self.books()?.ledger.recommendations())
    }

    /// Groups tensors with the same values and sets one fingerprint per group in the ledger.
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
            // Skip tensors that were replaced since they were listed.
            if books.ledger.entry(name).is_some_and(|entry| entry.memory.tag == tensor.memory_id()) {
                books.ledger.set_fingerprint(name, found.get(name).copied());
            }
        }
        Ok(())
    }
}

/// Groups of tensors with the same shape and type that are in at least two different memories.
fn of_one_shape(all: &[(String, Tensor)], search: Search) -> Vec<Vec<&(String, Tensor)>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one @ (_, tensor) in all {
        let location = tensor.location();
        // Lost values are on neither side, so tensors with lost values are skipped.
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
    /// A hash of the values.
    fn sum_of_bits(&self) -> Result<u64, crate::ops::error::TensorError> {
        self.storage().read(self.asking("compare"), self.byte_range(), |bytes| {
            let mut hasher = DefaultHasher::new();
            hasher.write(bytes);
            hasher.finish()
        })
    }

    /// True if the other tensor has the same bits.
    fn has_bits_of(&self, other: &Tensor) -> Result<bool, crate::ops::error::TensorError> {
        let bytes = other.read_bytes()?;
        self.storage().read(self.asking("compare"), self.byte_range(), |own| own == bytes)
    }
}
