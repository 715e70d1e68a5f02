//! Moving the tensors of a store to another device or to the host, also after the old device was lost. The caller
//! chooses the device.
//!
//! Invariants: a tensor with values on either side keeps its newest values. Otherwise its values are restored from
//! files. If several files overlap, the file that missed the fewest writes wins. The result states for each name
//! whether the file had the last write. If a tensor has neither values nor a file, every use of that tensor returns an
//! error with the tensor's name; other tensors are unaffected.

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

/// The result of [`Store::recover`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreRecovery {
    pub tensors: BTreeMap<String, TensorRecovery>,
}

/// The values that a tensor has after [`Store::recover`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TensorRecovery {
    /// The newest values, from the host, or from the old device if the old device still worked.
    Kept,
    /// The newest values, from the file of this tensor or of another tensor in the same memory. The memory was not
    /// written after these values were persisted or loaded.
    FromFile,
    /// Values that may be older than the newest, from the file of this tensor or of another tensor in the same memory.
    /// Later writes are lost. For a view, writes anywhere in the view's memory count. Parts of the tensor may come from
    /// newer files; `writes_since` is about the oldest part.
    FromOlderFile {
        /// The number of lost writes. `None` if that number is unknown, because the file was written before this store
        /// existed or by another process.
        writes_since: Option<u64>,
    },
    /// No values; every use is an error.
    Gone { reason: String },
}

impl StoreRecovery {
    /// Names of tensors that have their newest values.
    pub fn current(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::Kept | TensorRecovery::FromFile))
    }

    /// Names of tensors whose values come from a file that may be older than the last write.
    pub fn older(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::FromOlderFile { .. }))
    }

    pub fn gone(&self) -> impl Iterator<Item = &str> {
        self.named(|recovery| matches!(recovery, TensorRecovery::Gone { .. }))
    }

    fn named(&self, is: impl Fn(&TensorRecovery) -> bool) -> impl Iterator<Item = &str> {
        self.tensors.iter().filter(move |(_, recovery)| is(recovery)).map(|(name, _)| name.as_str())
    }
}

impl Store {
    /// Moves all tensors of the store's context to a device, or to the host, and keeps their values. If the old device
    /// was lost, values that only that device had are restored from the folder; such values without a file are lost.
    /// The result states for each tensor where the values come from, and whether they are the newest. Writes by the
    /// caller's own GPU code count only if [`Tensor::was_written`] was called.
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

    /// Restores a memory in place from files, so that every tensor in it works again. The base is a file that covers
    /// the whole memory. If there are several such files, the base is the readable file that missed the fewest writes.
    /// Files of parts of the memory go on top if they missed even fewer writes. Returns `None` if no file has the whole
    /// memory, or if another thread restored or wrote the memory first.
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
        // Files before `at` missed as many writes as the base, or fewer. The file that missed the fewest goes last, on
        // top.
        for file in files[..at].iter().rev().filter(|file| age(file.missed) < age(files[at].missed)) {
            // If a part cannot be read, the older values stay.
            let Some(part) = file.read() else { continue };
            let (start, end) = file.tensor.byte_range();
            block.bytes_mut()[start..end].copy_from_slice(part.bytes());
            layers.add((start, end), file.missed);
            used.push(file);
        }
        // Restoring counts as a write. No other write can come before the restoring write, because lost values cannot
        // be written.
        let write = storage.writes() + 1;
        if !storage.restore(block) {
            return None;
        }
        for (_, file) in used.iter().enumerate().filter(|(at, _)| layers.is_bare(*at)) {
            self.note_restored(file.name, file.tensor, write, &file.file);
        }
        Some(layers)
    }

    /// The file of a name, and the number of writes that the file has missed.
    fn candidate<'a>(&self, name: &'a str, tensor: &'a Tensor) -> Option<Candidate<'a>> {
        let file = self.file_of(name, tensor).ok()??;
        Some(Candidate { missed: self.writes_since(name, tensor, &file), name, tensor, file })
    }

    /// Restores a tensor of a lost memory from the tensor's own file, into a new memory that no other tensor uses.
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

    /// Notes that the file has the tensor's values as of the write with this number.
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
    /// The number of writes that the file has missed. `None` if not known.
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
