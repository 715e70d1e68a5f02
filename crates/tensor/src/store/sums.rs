//! What the books say about memory.
//!
//! Owns the sums: of everything, per tensor, per model, and what sharing saves.
//! Does not measure devices: bytes are those that were registered.
//!
//! Always: memory is counted once, however many tensors lie in it; what models share is never more than what they would
//! need apart.

use std::collections::BTreeMap;

use super::entry::Record;
use super::ledger::Ledger;

/// Memory of tensors that models hold, as it is and as it would be without sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySaving {
    /// What is held now, each memory once.
    pub shared_bytes: u64,
    /// What it would be if every model had its own.
    pub separate_bytes: u64,
}

impl MemorySaving {
    /// What sharing saves.
    pub fn saved_bytes(&self) -> u64 {
        self.separate_bytes - self.shared_bytes
    }

    /// That, of what there would be without: 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.separate_bytes == 0 { 0.0 } else { self.saved_bytes() as f64 / self.separate_bytes as f64 }
    }
}

impl<T> Ledger<T> {
    /// All memory in the books.
    pub fn bytes(&self) -> u64 {
        bytes_once(self.records.values())
    }

    /// Bytes of a tensor's own values, which are fewer than its memory has if it is a view.
    pub fn bytes_of_tensor(&self, name: &str) -> Option<u64> {
        Some(self.records.get(name)?.entry.bytes)
    }

    /// Memory that a model holds, wherever else it is held.
    pub fn bytes_of_model(&self, model: &str) -> u64 {
        bytes_once(self.records.values().filter(|record| record.held_by(model) > 0))
    }

    /// Memory that a model alone holds: what is idle once it releases everything.
    pub fn bytes_of_model_alone(&self, model: &str) -> u64 {
        let held = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        held - bytes_once(self.records.values().filter(|record| record.holders().any(|other| other != model)))
    }

    /// What sharing saves, of all that is held now.
    pub fn saving(&self) -> MemorySaving {
        let shared_bytes = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        let separate_bytes = self.models().iter().map(|model| self.bytes_of_model(model)).sum();
        MemorySaving { shared_bytes, separate_bytes }
    }
}

/// Bytes of all memory that these tensors lie in, each once.
pub(super) fn bytes_once<'a, T: 'a>(records: impl Iterator<Item = &'a Record<T>>) -> u64 {
    let memory: BTreeMap<u64, u64> = records.map(|record| record.entry.memory).map(|it| (it.tag, it.bytes)).collect();
    memory.values().sum()
}
