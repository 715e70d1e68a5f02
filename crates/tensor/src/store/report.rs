//! Memory report of a store: overall, per model and per tensor.
//!
//! Bytes are those actually allocated on each side. Memory that several tensors share is counted once in every total.

use std::collections::{BTreeMap, BTreeSet};

use super::error::StoreError;
use super::shared::{Store, peek};
use super::sums::MemorySaving;
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;
use crate::ops::storage::Location;
use crate::ops::tensor::Tensor;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BothSides {
    pub device_bytes: u64,
    pub host_bytes: u64,
}

/// One tensor in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorReport {
    pub name: String,
    pub shape: Shape,
    pub dtype: DType,
    /// Bytes of the tensor's own values.
    pub bytes: u64,
    /// Bytes of the memory that the tensor is in.
    pub memory: BothSides,
    /// Identifies the memory that the tensor is in. Tensors in the same memory have the same id.
    pub memory_id: u64,
    /// The sides that have the tensor's newest values.
    pub location: Location,
    pub producer: String,
    /// The other models that may use the tensor.
    pub consumers: Vec<String>,
    /// The number of holds of all models together.
    pub holds: u64,
    /// The number of leases.
    pub leases: usize,
    pub is_pinned: bool,
}

/// The result of [`Store::memory`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreReport {
    /// Total bytes, each memory counted once.
    pub memory: BothSides,
    /// The number of memories.
    pub memories: usize,
    /// Bytes that each model holds, each memory counted once.
    pub models: BTreeMap<String, BothSides>,
    /// All tensors, sorted by name.
    pub tensors: Vec<TensorReport>,
    pub saving: MemorySaving,
}

impl Store {
    /// Device bytes of all tensors, each memory counted once.
    pub fn gpu_memory_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.memory()?.memory.device_bytes)
    }

    /// Device bytes that a model holds, each memory counted once.
    pub fn gpu_memory_bytes_of_model(&self, model: &str) -> Result<u64, StoreError> {
        Ok(self.memory()?.models.get(model).map_or(0, |memory| memory.device_bytes))
    }

    pub fn memory(&self) -> Result<StoreReport, StoreError> {
        let (mut tensors, holders, saving) = {
            let books = self.books()?;
            let ledger = &books.ledger;
            let known: Vec<(TensorReport, Tensor)> = ledger
                .names()
                .filter_map(|name| {
                    let entry = ledger.entry(name)?;
                    let tensor = peek(&entry.payload);
                    let report = TensorReport {
                        name: name.to_owned(),
                        shape: tensor.shape().clone(),
                        dtype: tensor.dtype(),
                        bytes: entry.bytes,
                        memory: BothSides::default(),
                        memory_id: entry.memory.tag,
                        location: Location { host: false, device: false },
                        producer: ledger.producer(name)?.to_owned(),
                        consumers: ledger.consumers(name).map(str::to_owned).collect(),
                        holds: ledger.holds(name),
                        leases: entry.payload.leases(),
                        is_pinned: ledger.is_pinned(name),
                    };
                    Some((report, tensor))
                })
                .collect();
            let mut holders: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
            for model in ledger.models() {
                let held = known.iter().filter(|(report, _)| ledger.held(&report.name, model) > 0);
                holders.insert(model.to_owned(), held.map(|(report, _)| report.memory_id).collect());
            }
            (known, holders, ledger.saving())
        };
        // This comes after the books are unlocked, because a transfer in progress may hold the lock of the values.
        let mut taken: BTreeMap<u64, BothSides> = BTreeMap::new();
        for (report, tensor) in &mut tensors {
            let (device, host) = tensor.storage().taken();
            report.memory = BothSides { device_bytes: device as u64, host_bytes: host as u64 };
            report.memory = *taken.entry(report.memory_id).or_insert(report.memory);
            report.location = tensor.location();
        }
        let sum = |ids: &mut dyn Iterator<Item = &u64>| {
            ids.filter_map(|id| taken.get(id)).fold(BothSides::default(), |sum, one| BothSides {
                device_bytes: sum.device_bytes + one.device_bytes,
                host_bytes: sum.host_bytes + one.host_bytes,
            })
        };
        Ok(StoreReport {
            memory: sum(&mut taken.keys()),
            memories: taken.len(),
            models: holders.into_iter().map(|(model, ids)| (model, sum(&mut ids.iter()))).collect(),
            tensors: tensors.into_iter().map(|(report, _)| report).collect(),
            saving,
        })
    }

    /// The saving by sharing, over all memory that models hold now.
    pub fn saving(&self) -> Result<MemorySaving, StoreError> {
        Ok(self.books()?.ledger.saving())
    }
}
