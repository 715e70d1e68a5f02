//! A store whose device was lost, or is to be another one.
//!
//! Owns what becomes of each name, and the saying of it.
//! Does not find a device: whoever calls has one, or goes on with the host.
//!
//! Always: what has values anywhere keeps its newest ones; what has none is restored from files, of all that have
//! values for the same place from the one that missed the fewest writes, and it is said whether those are its newest;
//! what has neither says by name that it is gone whenever it is used; all others go on.

use std::collections::BTreeMap;

use vramp_gpu::Device;

use super::error::StoreError;
use super::layers::{Layers, age};
use super::names::{check_there, entry};
use super::persisted::{read_part, tensor_of};
use super::shared::{Store, peek};
use crate::ops::memory::Block;
use crate::ops::tensor::Tensor;
use crate::store::files::{TensorFile, mark_of};

/// What became of a store's tensors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreRecovery {
    /// Each name, and what it has now.
    pub tensors: BTreeMap<String, TensorRecovery>,
}

/// What became of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorRecovery {
    /// It has its newest values: the host had them, or the device that was left could still be asked.
    Kept,
    /// It has the values of a file, which are its newest: nothing was written to its memory since they were persisted or
    /// loaded. The file is its own, or one of the same memory.
    FromFile,
    /// It has the values of a file, its own or one of the same memory, which may be older than its newest: what was written
    /// since is lost. A view counts what was written anywhere in the memory that it is in. Where a part of it was in a newer
    /// file, that part is newer than what is said here, which is about the oldest.
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

impl StoreRecovery {
    /// Names that have their newest values, whichever way.
    pub fn current(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::Kept | TensorRecovery::FromFile))
    }

    /// Names that have the values of a file that may be older than what was written last.
    pub fn older(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::FromOlderFile { .. }))
    }

    /// Names that have no values.
    pub fn gone(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::Gone { .. }))
    }

    fn named(&self, is: impl Fn(&TensorRecovery) -> bool) -> impl Iterator<Item = &str> {
        self.tensors.iter().filter(move |(_, recovery)| is(recovery)).map(|(name, _)| name.as_str())
    }
}

impl Store {
    /// Moves all tensors of the store's context to a device, or to the host: values are kept. Where the old device was
    /// lost, what was nowhere else is restored from the folder, and otherwise gone; which of these, and whether a file has
    /// the newest values, is said for each tensor. What GPU code of one's own has written counts if it was told
    /// ([`Tensor::was_written`]).
    pub fn recover(&self, new_device: Option<&Device>) -> Result<StoreRecovery, StoreError> {
        let context = self.context()?;
        context.move_to(new_device)?;
        let all: Vec<(String, Tensor)> = {
            let books = self.books()?;
            let entries = books.ledger.names().filter_map(|name| Some((name, books.ledger.entry(name)?)));
            entries.map(|(name, entry)| (name.to_owned(), peek(&entry.payload))).collect()
        };
        let mut recovered = StoreRecovery::default();
        let mut lost: BTreeMap<u64, Vec<&(String, Tensor)>> = BTreeMap::new();
        for one @ (name, tensor) in &all {
            if check_there(name, tensor).is_ok() {
                recovered.tensors.insert(name.clone(), TensorRecovery::Kept);
            } else {
                lost.entry(tensor.memory_id()).or_default().push(one);
            }
        }
        for names in lost.values() {
            let layers = self.restore_memory(names);
            for (name, tensor) in names {
                let back = match &layers {
                    Some(layers) => Ok(from_file(layers.missed(tensor.byte_range()))),
                    None => check_there(name, tensor).map(|()| TensorRecovery::Kept),
                };
                let back = back.or_else(|gone| self.restore_apart(name, tensor).map_err(|_| gone));
                let recovery = back.unwrap_or_else(|problem| TensorRecovery::Gone {
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
    /// one that has missed the fewest writes; over it lies what files of parts have that missed fewer still. Says what is
    /// from where; none where no file has all of it, or somebody else was first.
    fn restore_memory(&self, names: &[&(String, Tensor)]) -> Option<Layers> {
        let storage = names.first()?.1.storage();
        let mut files: Vec<Candidate<'_>> =
            names.iter().filter_map(|(name, tensor)| self.candidate(name, tensor)).collect();
        files.sort_by_key(|file| age(file.missed));
        let is_whole = |file: &Candidate<'_>| file.tensor.bytes() == storage.bytes();
        let (at, mut block) = files
            .iter()
            .enumerate()
            .filter(|(_, file)| is_whole(file))
            .find_map(|(at, file)| Some((at, file.read()?)))?;
        let mut layers = Layers::over(storage.bytes(), files[at].missed);
        let mut used = vec![&files[at]];
        // Those that missed fewer writes come before it: the fewest last.
        for file in files[..at].iter().rev().filter(|file| age(file.missed) < age(files[at].missed)) {
            // One that cannot be read leaves the older values.
            let Some(part) = file.read() else { continue };
            let (start, end) = file.tensor.byte_range();
            block.bytes_mut()[start..end].copy_from_slice(part.bytes());
            layers.add((start, end), file.missed);
            used.push(file);
        }
        // It counts as a write, and there can be no other before: nobody writes to what is gone.
        let write = storage.writes() + 1;
        if !storage.restore(block) {
            return None;
        }
        for (_, file) in used.iter().enumerate().filter(|(at, _)| layers.is_bare(*at)) {
            self.note_restored(file.name, file.tensor, write, &file.file);
        }
        Some(layers)
    }

    /// The file of a name, and how many writes it has missed.
    fn candidate<'a>(&self, name: &'a str, tensor: &'a Tensor) -> Option<Candidate<'a>> {
        let file = self.file_of(name, tensor).ok()??;
        Some(Candidate { missed: self.writes_since(name, tensor, &file), name, tensor, file })
    }

    /// Gives a name that was a part of a memory values of its own, from its own file: what it was a part of is gone.
    fn restore_apart(&self, name: &str, tensor: &Tensor) -> Result<TensorRecovery, StoreError> {
        let Some(file) = self.file_of(name, tensor)? else {
            return check_there(name, tensor).map(|()| TensorRecovery::Kept);
        };
        let writes_since = self.writes_since(name, tensor, &file);
        let own = tensor_of(&self.context()?, &file, name)?.apart();
        let write = own.storage().writes();
        let old = {
            let mut books = self.books()?;
            let producer = books.ledger.producer(name).unwrap_or_default().to_owned();
            books.ledger.replace(name, &producer, entry(&own))?
        };
        drop(old);
        self.note_restored(name, &own, write, &file);
        Ok(from_file(writes_since))
    }

    /// From this write on the file has what the tensor has.
    fn note_restored(&self, name: &str, tensor: &Tensor, write: u64, file: &TensorFile) {
        if let Some(mark) = mark_of(file) {
            self.note_filed(name, tensor, write, mark);
        }
    }
}

/// A file that may have values for a memory.
struct Candidate<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    file: TensorFile,
    /// How many writes it has missed; none where nobody knows.
    missed: Option<u64>,
}

impl Candidate<'_> {
    fn read(&self) -> Option<Block> {
        let found = self.file.tensor(self.name).ok()?;
        read_part(self.tensor.context(), &found, 0, found.bytes() as usize).ok()
    }
}

fn from_file(writes_since: Option<u64>) -> TensorRecovery {
    match writes_since {
        Some(0) => TensorRecovery::FromFile,
        writes_since => TensorRecovery::FromOlderFile { writes_since },
    }
}
