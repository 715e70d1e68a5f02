//! Memory totals of a ledger: overall, per tensor and per model, and the saving by sharing.
//!
//! Bytes are those given at registration; nothing here measures a device.
//!
//! Invariants: each memory is counted once, even if several tensors are in it. `shared_bytes <= separate_bytes`.

use std::collections::BTreeMap;

use super::entry::Record;
use super::ledger::Ledger;

/// Memory of the tensors that models hold, with and without sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemorySaving {
    /// Bytes held now, each memory counted once.
    pub shared_bytes: u64,
    /// Bytes if every model had its own copy.
    pub separate_bytes: u64,
}

impl MemorySaving {
    pub fn saved_bytes(&self) -> u64 {
        self.separate_bytes - self.shared_bytes
    }

    /// The saved part of `separate_bytes`, from 0 to 1.
    pub fn fraction(&self) -> f64 {
        if self.separate_bytes == 0 { 0.0 } else { self.saved_bytes() as f64 / self.separate_bytes as f64 }
    }
}

impl<T> Ledger<T> {
    /// Bytes of all registered memory, each memory counted once.
    pub fn bytes(&self) -> u64 {
        bytes_once(self.records.values())
    }

    /// Bytes of a tensor's own values. A view can have fewer bytes than the memory that it is in.
    pub fn bytes_of_tensor(&self, name: &str) -> Option<u64> {
        Some(self.records.get(name)?.entry.bytes)
    }

    /// Memory that a model holds, whether or not other models hold it too.
    pub fn bytes_of_model(&self, model: &str) -> u64 {
        bytes_once(self.records.values().filter(|record| record.held_by(model) > 0))
    }

    /// Memory that only this model holds. This memory becomes idle when the model releases everything.
    pub fn bytes_of_model_alone(&self, model: &str) -> u64 {
        let held = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        held - bytes_once(self.records.values().filter(|record| record.holders().any(|other| other != model)))
    }

    /// The saving by sharing, over all memory that models hold now.
    pub fn saving(&self) -> MemorySaving {
        let shared_bytes = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        let separate_bytes = self.models().iter().map(|model| self.bytes_of_model(model)).sum();
        MemorySaving { shared_bytes, separate_bytes }
    }
}

/// Total bytes of the memory that these tensors are in, each memory counted once.
pub(super) fn bytes_once<'a, T: 'a>(records: impl Iterator<Item = &'a Record<T>>) -> u64 {
    let memory: BTreeMap<u64, u64> = records.map(|record| record.entry.memory).map(|it| (it.tag, it.bytes)).collect();
    memory.values().sum()
}
