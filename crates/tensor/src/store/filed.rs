//! What the folder has of a tensor, as far as this store knows.
//!
//! Owns the note that is made when a tensor is persisted or loaded: which values they were, and which file they are in.
//! Does not look into files.
//!
//! Always: values of a file are called current only if the file is the one that was noted, the tensor is the same part
//! of the same memory, and nothing was written to that memory since. A note that came too late, or that somebody else's
//! file has overtaken, makes them older.

use super::shared::Store;
use crate::ops::tensor::Tensor;
use crate::store::files::{TensorFile, mark_of};

/// Which values of a tensor are in which file.
#[derive(Debug, Clone)]
pub(super) struct FiledValues {
    /// The memory that they were in.
    memory: u64,
    /// From which of its bytes on; how many, the file knows.
    start: usize,
    /// Up to which write to it they are.
    write: u64,
    /// The file's mark.
    mark: String,
}

impl Store {
    /// Notes that a file has the values of a tensor up to a write.
    pub(super) fn note_filed(&self, name: &str, tensor: &Tensor, write: u64, mark: &str) {
        let Ok(mut books) = self.books() else { return };
        let books = &mut *books;
        // Names that are gone need no note; there are never more of them than one round has left.
        books.filed.retain(|name, _| books.ledger.entry(name).is_some());
        let (memory, (start, _)) = (tensor.memory_id(), tensor.byte_range());
        books.filed.insert(name.to_owned(), FiledValues { memory, start, write, mark: mark.to_owned() });
    }

    /// How many writes to a tensor's memory its file has missed; none where that is not known.
    pub(super) fn writes_since(&self, name: &str, tensor: &Tensor, file: &TensorFile) -> Option<u64> {
        // The books are unlocked before the tensor's values are asked: whoever moves them locks both, values first.
        let filed = self.books().ok()?.filed.get(name)?.clone();
        let is_there = (filed.memory, filed.start) == (tensor.memory_id(), tensor.byte_range().0);
        let is_known = is_there && mark_of(file) == Some(filed.mark.as_str());
        is_known.then(|| tensor.storage().writes().saturating_sub(filed.write))
    }
}
