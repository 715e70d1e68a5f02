//! Notes on which values of a tensor the folder has. A note is made when a tensor is persisted, loaded or restored.
//! This module reads no files.
//!
//! Invariant: a file counts as current only if it is the noted file, the tensor is the same part of the same memory,
//! and that memory was not written after the write in the note. If a note is made late, or if another process has
//! replaced the file, the file counts as older than it is, never as newer.

use super::shared::Store;
use crate::ops::tensor::Tensor;
use crate::store::files::{TensorFile, mark_of};

/// Which values of a tensor are in which file.
#[derive(Debug, Clone)]
pub(super) struct FiledValues {
    memory: u64,
    /// The byte offset of the tensor in that memory. The length of the tensor is in the file.
    start: usize,
    /// The number of the last write that the file contains.
    write: u64,
    /// The file's mark, see [`mark_of`].
    mark: String,
}

impl Store {
    /// Notes that a file has the values of a tensor up to the write with this number.
    pub(super) fn note_filed(&self, name: &str, tensor: &Tensor, write: u64, mark: &str) {
        let Ok(mut books) = self.books() else { return };
        let books = &mut *books;
        // Drops the notes of names that were removed since the last call, so the map does not grow without bound.
        books.filed.retain(|name, _| books.ledger.entry(name).is_some());
        let (memory, (start, _)) = (tensor.memory_id(), tensor.byte_range());
        books.filed.insert(name.to_owned(), FiledValues { memory, start, write, mark: mark.to_owned() });
    }

    /// The number of writes to a tensor's memory that the tensor's file has missed. `None` if that is not known.
    pub(super) fn writes_since(&self, name: &str, tensor: &Tensor, file: &TensorFile) -> Option<u64> {
        // The books are unlocked before the values are locked: the lock order is values first.
        let filed = self.books().ok()?.filed.get(name)?.clone();
        let is_there = (filed.memory, filed.start) == (tensor.memory_id(), tensor.byte_range().0);
        let is_known = is_there && mark_of(file) == Some(filed.mark.as_str());
        is_known.then(|| tensor.storage().writes().saturating_sub(filed.write))
    }
}
