//! Data of weights in files beside the model.
//!
//! Invariants: only regular files inside the model's own folder are read, also if links or `..` lead elsewhere. Only
//! the wanted range is read. Weights that name the same range share it, and a file is read for at most its size, so
//! that a small model cannot fill the memory by naming one file many times. A model that was read from memory, as in a
//! browser, has no folder, and no file is opened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

use super::error::{OnnxError, quoted};
use super::proto::StringStringEntryProto;

/// The files of external data of one model.
#[derive(Debug)]
pub(super) struct ExternalFiles {
    /// Absent if the model was read from memory.
    folder: Option<PathBuf>,
    /// By resolved path.
    files: BTreeMap<PathBuf, Taken>,
}

/// What was read from one file.
#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    /// By offset and length.
    ranges: BTreeMap<(u64, u64), Bytes>,
}

impl ExternalFiles {
    pub(super) fn of(folder: Option<&Path>) -> ExternalFiles {
        // A path without a folder is in the working directory.
        let folder = folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
        ExternalFiles { folder: folder.map(Path::to_owned), files: BTreeMap::new() }
    }

    /// The bytes that the entries of a weight describe. The weight needs `needs` bytes; `at` names the weight.
    pub(super) fn read(
        &mut self,
        entries: &[StringStringEntryProto],
        needs: u64,
        at: &str,
    ) -> Result<Bytes, OnnxError> {
        let text = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
        let number = |key: &str| {
            let read = |text: &str| {
                text.parse::<u64>().map_err(|_| {
                    OnnxError::external(at, format!("its {key} is {}, expected a number of bytes", quoted(text)))
                })
            };
            text(key).map(read).transpose()
        };
        let location = text("location").ok_or_else(|| OnnxError::external(at, "it has no `location`"))?;
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        if let Some(length) = length.filter(|length| *length != needs) {
            let problem = format!("its length is {length} bytes, but the type and the shape need {needs}");
            return Err(OnnxError::external(at, problem));
        }

        let path = self.resolve(location, at)?;
        let taken = self.files.entry(path.clone()).or_default();
        if let Some(known) = taken.ranges.get(&(offset, needs)) {
            return Ok(known.clone());
        }
        let unreadable = |error| unreadable(location, &error, at);
        let mut file = vramp_files::open_regular(&path).map_err(unreadable)?;
        let has = file.metadata().map_err(unreadable)?.len();
        if offset.checked_add(needs).is_none_or(|end| end > has) {
            let (location, end) = (quoted(location), u128::from(offset) + u128::from(needs));
            let problem = format!("it ends at byte {end} of {location}, which has {has} bytes");
            return Err(OnnxError::external(at, problem));
        }
        if taken.bytes + needs > has {
            let problem = format!("the ranges of {} overlap: more than its {has} bytes are wanted", quoted(location));
            return Err(OnnxError::external(at, problem));
        }
        let bytes = read_range(&mut file, location, (offset, needs), at)?;
        taken.bytes += needs;
        taken.ranges.insert((offset, needs), bytes.clone());
        Ok(bytes)
    }

    /// The resolved paths of the files that were read.
    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        self.files.into_keys().collect()
    }

    /// The path of a file inside the model's folder.
    fn resolve(&self, location: &str, at: &str) -> Result<PathBuf, OnnxError> {
        let place = quoted(location);
        let Some(folder) = &self.folder else {
            let problem = format!("it is in {place}, but the model was read from memory; open the model by its path");
            return Err(OnnxError::external(at, problem));
        };
        let is_inner = |component| matches!(component, Component::Normal(_) | Component::CurDir);
        let relative = Path::new(location);
        if location.is_empty() || !relative.components().all(is_inner) {
            let problem = format!("{place} is not a path inside the model's folder; put the file beside the model");
            return Err(OnnxError::external(at, problem));
        }
        let resolved = |path: &Path| path.canonicalize().map_err(|error| unreadable(location, &error, at));
        let (folder, path) = (resolved(folder)?, resolved(&folder.join(relative))?);
        if !path.starts_with(&folder) {
            let problem =
                format!("{place} is a link that leads out of the model's folder; put the file beside the model");
            return Err(OnnxError::external(at, problem));
        }
        Ok(path)
    }
}

fn read_range(file: &mut File, location: &str, range: (u64, u64), at: &str) -> Result<Bytes, OnnxError> {
    let (offset, length) = range;
    let out_of_memory = || OnnxError::OutOfMemory { at: at.to_owned(), needs: length };
    let count = usize::try_from(length).map_err(|_| out_of_memory())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count).map_err(|_| out_of_memory())?;
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.take(length).read_to_end(&mut bytes));
    let read = read.and_then(|read| if read == count { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) });
    read.map_err(|error| unreadable(location, &error, at))?;
    Ok(bytes.into())
}

fn unreadable(location: &str, error: &std::io::Error, at: &str) -> OnnxError {
    OnnxError::external(at, format!("{} cannot be read: {error}", quoted(location)))
}
