//! What a store takes, in numbers.
//!
//! Owns the report: of all tensors, per model and per tensor.
//! Does not estimate: bytes are those of memory that is there, on either side.
//!
//! Always: memory that several names are in is counted once in every sum.

use std::collections::{BTreeMap, BTreeSet};

use super::error::StoreError;
use super::shared::{Store, peek};
use super::sums::MemorySaving;
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;
use crate::ops::storage::Location;
use crate::ops::tensor::Tensor;

/// Bytes on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BothSides {
    /// On the device.
    pub device_bytes: u64,
    /// On the host.
    pub host_bytes: u64,
}

/// One tensor in a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// Its type.
    pub dtype: DType,
    /// Bytes of its own values.
    pub bytes: u64,
    /// What the memory that it is in takes.
    pub memory: BothSides,
    /// Which memory that is; names in the same one share it.
    pub memory_id: u64,
    /// Where its newest values are.
    pub location: Location,
    /// Who made it.
    pub producer: String,
    /// Who else may use it.
    pub consumers: Vec<String>,
    /// How often it is held, by all models together.
    pub holds: u64,
    /// How often it is leased.
    pub leases: usize,
    /// Whether it is pinned.
    pub is_pinned: bool,
}

/// What a store takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreReport {
    /// Everything, each memory once.
    pub memory: BothSides,
    /// Memories.
    pub memories: usize,
    /// What each model holds, each memory once.
    pub models: BTreeMap<String, BothSides>,
    /// Each tensor, in the order of names.
    pub tensors: Vec<TensorReport>,
    /// What sharing saves, of all that is held.
    pub saving: MemorySaving,
}

impl Store {
    /// Bytes that its tensors take on the device, each memory once.
    pub fn gpu_memory_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.memory()?.memory.device_bytes)
    }

    /// Bytes on the device of what a model holds, each memory once.
    pub fn gpu_memory_bytes_of_model(&self, model: &str) -> Result<u64, StoreError> {
        Ok(self.memory()?.models.get(model).map_or(0, |memory| memory.device_bytes))
    }

    /// Everything that there is to say about memory.
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
        // Where values are is asked after the books were unlocked: they may be on their way just now.
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

    /// What sharing saves, of all that is held now.
    pub fn saving(&self) -> Result<MemorySaving, StoreError> {
        Ok(self.books()?.ledger.saving())
    }
}
