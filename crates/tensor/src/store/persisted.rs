//! Named tensors that outlive the process.
//!
//! Owns the way from a name to its file and back.
//! Does not keep quota or order: the folder does.
//!
//! Always: what is persisted is on the disk when the call ends; values are read from a mapping and go to the device in
//! parts, without a copy of the whole on the host.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vramp_gpu::HostBytes;

use super::error::StoreError;
use super::refusal::LedgerError;
use super::shared::{Store, peek};
use crate::context::{Context, Side};
use crate::dtype::DType;
use crate::error::{Of, TensorError};
use crate::files::{FileError, Put, Stored, TensorFile};
use crate::shape::Shape;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// The most bytes that are on their way to the device at once.
const PART_BYTES: usize = 32 << 20;

/// What `persist_all` came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Persisted {
    /// Tensors that were written.
    pub tensors: usize,
    /// Bytes of their files.
    pub file_bytes: u64,
    /// Tensors whose files were removed to keep the quota.
    pub evicted: Vec<String>,
    /// What could not be written, and why; the others are.
    pub failed: Vec<(String, StoreError)>,
}

/// What `restore` came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Restored {
    /// Names that are registered now.
    pub tensors: Vec<String>,
    /// Bytes of their values.
    pub bytes: u64,
    /// What could not be, and why; a name that is taken already, say.
    pub failed: Vec<(String, StoreError)>,
}

impl Store {
    /// Writes a tensor into the folder, in place of what it has under that name.
    pub fn persist(&self, name: &str) -> Result<Put, StoreError> {
        let folder = self.folder("persist")?;
        let tensor = {
            let books = self.books()?;
            let has = books.ledger.names().count();
            let entry = books.ledger.entry(name).ok_or_else(|| LedgerError::Unknown { name: name.to_owned(), has })?;
            peek(&entry.payload)
        };
        let (shape, dtype) = (tensor.shape().clone(), tensor.dtype());
        let put = tensor.storage().read(tensor.asking("persist"), tensor.byte_range(), |bytes| {
            folder.put(&Stored { name, dtype, shape, bytes })
        });
        let put = put.map_err(|problem| StoreError::of(name, problem))??;
        self.say(|| format!("`{name}` is persisted in {} bytes; removed for it: {:?}", put.file_bytes, put.evicted));
        Ok(put)
    }

    /// Writes all tensors into the folder, the least recently used first, so that those go first if the quota is reached.
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

    /// Registers a tensor that was persisted, by any process, as one that this model made.
    pub fn load(&self, name: &str, model: &str) -> Result<(), StoreError> {
        let folder = self.folder("load")?;
        self.expect_free(&[name])?;
        let Some(file) = folder.get(name)? else {
            return Err(StoreError::NotKept { name: name.to_owned(), path: folder.path().to_owned() });
        };
        let tensor = tensor_of(&self.context()?, file, name)?;
        self.enter(&[(name, &tensor)], model, &[])
    }

    /// Registers all that the folder has, as made by this model: what a program does at its start. A file that cannot be
    /// read keeps nothing else from being restored.
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

    /// The file of a tensor, if there is one with this shape and type.
    pub(super) fn file_of(&self, name: &str, tensor: &Tensor) -> Result<Option<TensorFile>, StoreError> {
        let Some(file) = self.folder("recover")?.get(name)? else { return Ok(None) };
        let fits = {
            let stored = file.tensor(name)?;
            stored.dtype == tensor.dtype() && stored.shape == *tensor.shape()
        };
        Ok(fits.then_some(file))
    }
}

/// A tensor in a file as one of a context, where that computes.
pub(super) fn tensor_of(context: &Context, file: TensorFile, name: &str) -> Result<Tensor, StoreError> {
    let (shape, dtype) = {
        let Stored { shape, dtype, .. } = file.tensor(name)?;
        (shape, dtype)
    };
    let failed = |problem| StoreError::of(name, problem);
    match context.side() {
        Some(side) => sent_up(context, &side, &Arc::new(file), name, (shape, dtype)).map_err(failed),
        None => {
            let stored = file.tensor(name)?;
            context.tensor_from_bytes(stored.bytes, shape.lengths(), dtype).map_err(failed)
        }
    }
}

/// A part of a file that is on its way up.
struct FilePart {
    file: Arc<TensorFile>,
    name: String,
    start: usize,
    end: usize,
}

impl FilePart {
    fn bytes(&self) -> Result<&[u8], FileError> {
        Ok(&self.file.tensor(&self.name)?.bytes[self.start..self.end])
    }
}

impl AsRef<[u8]> for FilePart {
    fn as_ref(&self) -> &[u8] {
        self.bytes().expect("it was there when the file was opened, and files are never changed")
    }
}

fn sent_up(
    context: &Context,
    side: &Arc<Side>,
    file: &Arc<TensorFile>,
    name: &str,
    (shape, dtype): (Shape, DType),
) -> Result<Tensor, TensorError> {
    let op = "load";
    let bytes = shape.count() * dtype.bytes();
    let buffer = side.lend(op, bytes)?;
    let part = |start, end| FilePart { file: Arc::clone(file), name: name.to_owned(), start, end };
    let send = |start: usize, source: HostBytes| {
        side.record(op, |recording| recording.upload_at(&buffer, start as u64, source).of(op))
    };
    // Devices copy whole words: the last one may have to be filled up.
    let whole = bytes / 4 * 4;
    for start in (0..whole).step_by(PART_BYTES) {
        send(start, HostBytes::new(part(start, whole.min(start + PART_BYTES))))?;
        if whole > PART_BYTES {
            side.flush(op)?;
        }
    }
    if whole < bytes {
        let mut word = part(whole, bytes).as_ref().to_vec();
        word.resize(4, 0);
        send(whole, HostBytes::from(word))?;
    }
    if bytes > 0 {
        context.counts().uploads.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Tensor::over(Storage::on_device(context, side, buffer, bytes), shape, dtype, 0))
}
