//! Persisting named tensors in the store's folder, and loading them in this or a later process.
//!
//! The folder enforces the quota and decides the order of eviction.
//!
//! Values are read from their file and uploaded in parts of 4 MB, without a copy of the whole tensor on the host. Files
//! are read and not mapped: if another program truncates the file meanwhile, a read returns an error, but access to a
//! mapping ends the process. `TensorFile::map` is for callers that can rule this out.
//!
//! Invariants: when `persist` returns, the values are on disk. Loading a truncated file is an error and registers
//! nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::error::StoreError;
use super::refusal::LedgerError;
use super::shared::{Store, peek};
use crate::ops::context::{Context, DeviceSide};
use crate::ops::memory::Block;
use crate::ops::storage::Storage;
use crate::ops::tensor::Tensor;
use crate::store::files::{FileTensor, PutOutcome, TensorBytes, TensorFile, mark_of};

/// The maximum number of bytes that are read before they are uploaded. Copying 256 MB from the file to staging took 30
/// ms of CPU time in parts of 1 MB or 4 MB, and 69 ms in parts of 32 MB, which do not fit a cache. Each part is a
/// submission, so 4 MB are better than 1 MB.
const PART_BYTES: usize = 4 << 20;

/// The result of [`Store::persist_all`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Persisted {
    /// The number of tensors written.
    pub tensors: usize,
    pub file_bytes: u64,
    /// Tensors whose files were removed to stay within the quota.
    pub evicted: Vec<String>,
    /// Tensors that could not be written, each with the reason. All other tensors were written.
    pub failed: Vec<(String, StoreError)>,
}

/// The result of [`Store::restore`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Restored {
    /// The names that were registered.
    pub tensors: Vec<String>,
    /// Bytes of the values of the registered tensors.
    pub bytes: u64,
    /// Tensors that could not be registered, each with the reason, for example that the name is taken.
    pub failed: Vec<(String, StoreError)>,
}

impl Store {
    /// Writes a tensor to the folder. Replaces the file that the folder has under this name.
    pub fn persist(&self, name: &str) -> Result<PutOutcome, StoreError> {
        let folder = self.folder("persist")?;
        let tensor = {
            let books = self.books()?;
            let has = books.ledger.names().count();
            let entry = books.ledger.entry(name).ok_or_else(|| LedgerError::Unknown { name: name.to_owned(), has })?;
            peek(&entry.payload)
        };
        let (shape, dtype) = (tensor.shape().clone(), tensor.dtype());
        let put = tensor.storage().read_up_to(tensor.asking("persist"), tensor.byte_range(), |bytes| {
            folder.put(&TensorBytes { name, dtype, shape, bytes })
        });
        let (put, write) = put.map_err(|problem| StoreError::of(name, problem))?;
        let put = put?;
        self.note_filed(name, &tensor, write, &put.mark);
        self.say(|| format!("`{name}` is persisted in {} bytes; evicted: {:?}", put.file_bytes, put.evicted));
        Ok(put)
    }

    /// Writes all tensors to the folder, the least recently used first. If the quota is reached, the least recently
    /// used tensors are therefore the first to be evicted.
    pub fn persist_all(&self) -> Result<Persisted, StoreError> {
        self.folder("persist_all")?;
        let now = self.now();
        let mut names: Vec<(Duration, String)> = {
            let books = self.books()?;
            let unused = |name: &str| books.ledger.unused(name, now).unwrap_or_default();
            books.ledger.names().map(|name| (unused(name), name.to_owned())).collect()
        };
        names.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        let mut persisted = Persisted::default();
        for (_, name) in &names {
            match self.persist(name) {
                Ok(put) => {
                    persisted.tensors += 1;
                    persisted.file_bytes += put.file_bytes;
                    persisted.evicted.extend(put.evicted);
                }
                Err(StoreError::Disposed) => return Err(StoreError::Disposed),
                Err(problem) => persisted.failed.push((name.clone(), problem)),
            }
        }
        Ok(persisted)
    }

    /// Registers a tensor that this or another process has persisted, with `model` as its producer.
    pub fn load(&self, name: &str, model: &str) -> Result<(), StoreError> {
        let folder = self.folder("load")?;
        self.expect_free(&[name])?;
        let Some(file) = folder.get(name)? else {
            return Err(StoreError::NotKept { name: name.to_owned(), path: folder.path().to_owned() });
        };
        let tensor = tensor_of(&self.context()?, &file, name)?;
        let write = tensor.storage().writes();
        self.enter(&[(name, &tensor)], model, &[])?;
        if let Some(mark) = mark_of(&file) {
            self.note_filed(name, &tensor, write, mark);
        }
        Ok(())
    }

    /// Registers every tensor in the folder, with `model` as its producer. Programs call this at startup. Unreadable
    /// files are listed in `failed` and do not affect the other tensors.
    pub fn restore(&self, model: &str) -> Result<Restored, StoreError> {
        let listing = self.folder("restore")?.list()?;
        let mut restored = Restored::default();
        for kept in listing.kept {
            match self.load(&kept.name, model) {
                Ok(()) => {
                    restored.bytes += (kept.shape.count() * kept.dtype.bytes()) as u64;
                    restored.tensors.push(kept.name);
                }
                Err(StoreError::Disposed) => return Err(StoreError::Disposed),
                Err(problem) => restored.failed.push((kept.name, problem)),
            }
        }
        for corrupt in listing.corrupt {
            let name = corrupt.name.unwrap_or_else(|| corrupt.path.display().to_string());
            restored.failed.push((name, corrupt.problem.into()));
        }
        self.say(|| format!("restored {} tensors of {} bytes", restored.tensors.len(), restored.bytes));
        Ok(restored)
    }

    /// The tensor's file, if the folder has one with the same shape and type.
    pub(super) fn file_of(&self, name: &str, tensor: &Tensor) -> Result<Option<TensorFile>, StoreError> {
        let Some(file) = self.folder("recover")?.get(name)? else { return Ok(None) };
        let fits = {
            let stored = file.tensor(name)?;
            stored.dtype == tensor.dtype() && stored.shape == *tensor.shape()
        };
        Ok(fits.then_some(file))
    }
}

/// Loads a tensor from a file to the device of a context, or to the host if the context has no device.
pub(super) fn tensor_of(context: &Context, file: &TensorFile, name: &str) -> Result<Tensor, StoreError> {
    let found = file.tensor(name)?;
    let storage = match context.side() {
        Some(side) => sent_up(context, &side, &found)?,
        None => Storage::on_host(context, read_part(context, &found, 0, found.bytes() as usize)?),
    };
    Ok(Tensor::over(storage, found.shape.clone(), found.dtype, 0))
}

/// Uploads values in parts.
fn sent_up(context: &Context, side: &Arc<DeviceSide>, found: &FileTensor<'_>) -> Result<Arc<Storage>, StoreError> {
    let op = "load";
    let failed = |problem| StoreError::of(found.name, problem);
    let bytes = found.bytes() as usize;
    let buffer = side.lend(op, bytes).map_err(failed)?;
    for start in (0..bytes).step_by(PART_BYTES) {
        let part = Arc::new(read_part(context, found, start, PART_BYTES.min(bytes - start))?);
        side.upload(op, &buffer, start, &part).map_err(failed)?;
        if bytes > PART_BYTES {
            // After the flush the part is in staging, so its host memory can be reused for the next part.
            side.flush(op).map_err(failed)?;
        }
    }
    if bytes > 0 {
        context.counts().uploads.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Storage::on_device(context, side, buffer, bytes))
}

/// Reads a part of a tensor into host memory.
pub(super) fn read_part(
    context: &Context,
    found: &FileTensor<'_>,
    start: usize,
    bytes: usize,
) -> Result<Block, StoreError> {
    let mut block = context.pool().lend("load", bytes).map_err(|problem| StoreError::of(found.name, problem))?;
    found.read_at(start as u64, block.bytes_mut())?;
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::dtype::DType;
    use crate::ops::shape::Shape;
    use crate::store::files::FileError;

    #[test]
    fn a_file_that_is_cut_short_on_its_way_up_is_an_error_and_holds_nothing() {
        let path = std::env::temp_dir().join(format!("vramp-cut-{}", std::process::id()));
        let values = vec![7; 2 * PART_BYTES + 3];
        let shape = Shape::new(&[values.len()]).unwrap();
        let device = vramp_gpu::Device::choose().open().unwrap();
        for context in [Context::on_host(), Context::on(&device).unwrap()] {
            let stored = TensorBytes { name: "a", dtype: DType::U8, shape: shape.clone(), bytes: &values };
            let had = TensorFile::write(&path, &[stored]).unwrap();
            let file = TensorFile::open(&path).unwrap();
            let whole = tensor_of(&context, &file, "a").unwrap();
            assert!(whole.read::<u8>().unwrap() == values, "read in parts; the last one ends inside a word");
            drop(whole);
            // In the middle of the second part.
            let has = had - PART_BYTES as u64 / 2;
            std::fs::File::options().write(true).open(&path).unwrap().set_len(has).unwrap();
            let error = tensor_of(&context, &file, "a").unwrap_err();
            let StoreError::File(FileError::Shortened { had: reported, has: left, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!((reported, left), (had, has));
            assert_eq!((context.memory().buffers, context.memory().bytes()), (0, 0));
        }
        assert_eq!(device.pool().leaks().len(), 0);
        std::fs::remove_file(&path).unwrap();
    }
}
