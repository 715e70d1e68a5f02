//! A store whose device was lost, or is to be another one.
//!
//! Owns what becomes of each name, and the saying of it.
//! Does not find a device: whoever calls has one, or goes on with the host.
//!
//! Always: what has values anywhere keeps its newest ones; what has none is restored from its file, and it is said whether
//! that has its newest values; what has neither says by name that it is gone whenever it is used; all others go on.

use std::collections::BTreeMap;

use vramp_gpu::Device;

use super::error::StoreError;
use super::names::{check_there, entry};
use super::persisted::{read_part, tensor_of};
use super::shared::{Store, peek};
use crate::files::{TensorFile, mark_of};
use crate::tensor::Tensor;

/// What became of a store's tensors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Each name, and what it has now.
    pub tensors: BTreeMap<String, Recovery>,
}

/// What became of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// It has its newest values: the host had them, or the device that was left could still be asked.
    Kept,
    /// It has the values of its file, which are its newest: nothing was written to its memory since they were persisted or
    /// loaded.
    FromFile,
    /// It has the values of its file, which may be older than its newest: what was written since is lost. A view counts
    /// what was written anywhere in the memory that it is in.
    FromOlderFile {
        /// How many writes are lost; none where the file is from before this store, or from another process, so that
        /// nobody knows.
        writes_since: Option<u64>,
    },
    /// It has none, and says so whenever it is used.
    Gone {
        /// Why.
        reason: String,
    },
}

impl Recovered {
    /// Names that have their newest values, whichever way.
    pub fn current(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, Recovery::Kept | Recovery::FromFile))
    }

    /// Names that have the values of a file that may be older than what was written last.
    pub fn older(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, Recovery::FromOlderFile { .. }))
    }

    /// Names that have no values.
    pub fn gone(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, Recovery::Gone { .. }))
    }

    fn named(&self, is: impl Fn(&Recovery) -> bool) -> impl Iterator<Item = &str> {
        self.tensors.iter().filter(move |(_, recovery)| is(recovery)).map(|(name, _)| name.as_str())
    }
}

impl Store {
    /// Moves all tensors of the store's context to a device, or to the host: values are kept. Where the old device was
    /// lost, what was nowhere else is restored from the folder, and otherwise gone; which of these, and whether a file has
    /// the newest values, is said for each tensor. What GPU code of one's own has written counts if it was told
    /// ([`Tensor::was_written`]).
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
            if check_there(name, tensor).is_ok() {
                recovered.tensors.insert(name.clone(), Recovery::Kept);
            } else {
                lost.entry(tensor.memory_id()).or_default().push(one);
            }
        }
        for names in lost.values() {
            let whole = self.restore_memory(names);
            for (name, tensor) in names {
                let back = match &whole {
                    Some(recovery) => Ok(recovery.clone()),
                    None => check_there(name, tensor).map(|()| Recovery::Kept),
                };
                let back = back.or_else(|gone| self.restore_apart(name, tensor).map_err(|_| gone));
                let recovery = back.unwrap_or_else(|problem| Recovery::Gone {
                    reason: match problem {
                        StoreError::Gone { reason, .. } => reason,
                        other => other.to_string(),
                    },
                });
                recovered.tensors.insert(name.clone(), recovery);
            }
        }
        self.say(|| format!("recovered: {recovered:?}"));
        Ok(recovered)
    }

    /// Fills a memory from the file of a name that is all of it: whoever has a tensor in it goes on. Of several files, the
    /// one that has missed the fewest writes.
    fn restore_memory(&self, names: &[&(String, Tensor)]) -> Option<Recovery> {
        let whole = names.iter().filter(|(_, tensor)| tensor.bytes() == tensor.storage().bytes());
        let mut files: Vec<(Option<u64>, TensorFile, &(String, Tensor))> = whole
            .filter_map(|one @ (name, tensor)| {
                let file = self.file_of(name, tensor).ok()??;
                Some((self.writes_since(name, tensor, &file), file, *one))
            })
            .collect();
        files.sort_by_key(|(writes_since, ..)| writes_since.unwrap_or(u64::MAX));
        files.iter().find_map(|(writes_since, file, (name, tensor))| {
            self.fill(tensor, file, name).ok()?.then(|| from_file(*writes_since))
        })
    }

    /// Gives a name that was a part of a memory values of its own, from its own file: what it was a part of is gone.
    fn restore_apart(&self, name: &str, tensor: &Tensor) -> Result<Recovery, StoreError> {
        let Some(file) = self.file_of(name, tensor)? else { return check_there(name, tensor).map(|()| Recovery::Kept) };
        let writes_since = self.writes_since(name, tensor, &file);
        let own = tensor_of(&self.context()?, &file, name)?.apart();
        let old = {
            let mut books = self.books()?;
            let producer = books.ledger.producer(name).unwrap_or_default().to_owned();
            books.ledger.replace(name, &producer, entry(&own))?
        };
        drop(old);
        self.note_restored(name, &own, &file);
        Ok(from_file(writes_since))
    }

    /// Puts the values of a file into a memory that has none; says whether that was so.
    fn fill(&self, tensor: &Tensor, file: &TensorFile, name: &str) -> Result<bool, StoreError> {
        let found = file.tensor(name)?;
        let block = read_part(tensor.context(), &found, 0, found.bytes() as usize)?;
        let is_filled = tensor.storage().restore(block);
        if is_filled {
            self.note_restored(name, tensor, file);
        }
        Ok(is_filled)
    }

    /// From now on the file has what the tensor has.
    fn note_restored(&self, name: &str, tensor: &Tensor, file: &TensorFile) {
        if let Some(mark) = mark_of(file) {
            self.note_filed(name, tensor.memory_id(), tensor.storage().writes(), mark);
        }
    }
}

fn from_file(writes_since: Option<u64>) -> Recovery {
    match writes_since {
        Some(0) => Recovery::FromFile,
        writes_since => Recovery::FromOlderFile { writes_since },
    }
}
