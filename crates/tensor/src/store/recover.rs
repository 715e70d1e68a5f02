//! A store whose device was lost, or is to be another one.
//!
//! Owns what becomes of each name.
//! Does not find a device: whoever calls has one, or goes on with the host.
//!
//! Always: what has values anywhere keeps its newest ones; what has none is restored from its file, or says by name that it
//! is gone whenever it is used; all others go on.

use std::collections::BTreeMap;

use vramp_gpu::Device;

use super::error::StoreError;
use super::names::{check_there, entry};
use super::persisted::tensor_of;
use super::shared::{Store, peek};
use crate::error::TensorError;
use crate::files::TensorFile;
use crate::tensor::Tensor;

/// What became of a store's tensors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Names that have their newest values.
    pub kept: usize,
    /// Names that have the values of their file, which are those of when it was persisted; views of them too.
    pub from_files: Vec<String>,
    /// Names that have none, and why.
    pub gone: Vec<(String, String)>,
}

impl Store {
    /// Moves all tensors of the store's context to a device, or to the host: values are kept. Where the old device was
    /// lost, what was nowhere else is restored from the folder, and otherwise gone.
    pub fn recover(&self, new_device: Option<&Device>) -> Result<Recovered, StoreError> {
        let context = self.context()?;
        context.move_to(new_device)?;
        let all: Vec<(String, Tensor)> = {
            let books = self.books()?;
            let entries = books.ledger.names().filter_map(|name| Some((name, books.ledger.entry(name)?)));
            entries.map(|(name, entry)| (name.to_owned(), peek(&entry.payload))).collect()
        };
        let mut recovered = Recovered::default();
        let mut lost: BTreeMap<u64, Vec<&(String, Tensor)>> = BTreeMap::new();
        for one @ (name, tensor) in &all {
            match check_there(name, tensor) {
                Ok(()) => recovered.kept += 1,
                Err(_) => lost.entry(tensor.memory_id()).or_default().push(one),
            }
        }
        for names in lost.values() {
            self.restore_memory(names);
            for (name, tensor) in names {
                let back = check_there(name, tensor).or_else(|gone| self.restore_apart(name, tensor).map_err(|_| gone));
                match back {
                    Ok(()) => recovered.from_files.push(name.clone()),
                    Err(StoreError::Gone { reason, .. }) => recovered.gone.push((name.clone(), reason)),
                    Err(other) => recovered.gone.push((name.clone(), other.to_string())),
                }
            }
        }
        self.say(|| format!("recovered: {recovered:?}"));
        Ok(recovered)
    }

    /// Fills a memory from the file of a name that is all of it: whoever has a tensor in it goes on.
    fn restore_memory(&self, names: &[&(String, Tensor)]) {
        let whole = names.iter().filter(|(_, tensor)| tensor.bytes() == tensor.storage().bytes());
        for (name, tensor) in whole {
            let Ok(Some(file)) = self.file_of(name, tensor) else { continue };
            if fill(tensor, &file, name).is_ok() {
                return;
            }
        }
    }

    /// Gives a name that was a part of a memory values of its own, from its own file: what it was a part of is gone.
    fn restore_apart(&self, name: &str, tensor: &Tensor) -> Result<(), StoreError> {
        let Some(file) = self.file_of(name, tensor)? else { return check_there(name, tensor) };
        let own = tensor_of(&self.context()?, file, name)?.apart();
        let old = {
            let mut books = self.books()?;
            let producer = books.ledger.producer(name).unwrap_or_default().to_owned();
            books.ledger.replace(name, &producer, entry(&own))?
        };
        drop(old);
        Ok(())
    }
}

fn fill(tensor: &Tensor, file: &TensorFile, name: &str) -> Result<(), StoreError> {
    let stored = file.tensor(name)?;
    let lent = tensor.context().pool().lend("recover", stored.bytes.len());
    let mut block = lent.map_err(|problem: TensorError| StoreError::of(name, problem))?;
    block.bytes_mut().copy_from_slice(stored.bytes);
    tensor.storage().restore(block);
    Ok(())
}
