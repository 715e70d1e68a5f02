//! Listing a folder of tensors in order of use. This module neither opens nor removes files.
//!
//! There is no index file that could disagree with the folder. The modification time of a file records its last use, so
//! that the order survives restarts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::FileError;
use super::{aside, file_name, temporary};

/// The file of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShelfFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) last_use: SystemTime,
}

/// All of the folder's own files.
#[derive(Debug, Default)]
pub(super) struct FolderContents {
    /// Least recently used first.
    pub(super) places: Vec<ShelfFile>,
    /// Files left by puts that did not finish.
    pub(super) unfinished: Vec<PathBuf>,
    /// Files that were set aside to make room.
    pub(super) aside: Vec<PathBuf>,
}

impl FolderContents {
    pub(super) fn look(folder: &Path) -> Result<FolderContents, FileError> {
        let failed = |error| FileError::system("listed", folder, &error);
        let mut shelf = FolderContents::default();
        for found in fs::read_dir(folder).map_err(failed)? {
            let found = found.map_err(failed)?;
            let name = found.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_file = || !found.path().is_dir();
            if name.starts_with(temporary::OF_A_PUT) {
                shelf.unfinished.extend(is_file().then(|| found.path()));
            } else if aside::is_aside(name) {
                // Skip directories: they are not ours, and could not be renamed to a tensor's file.
                shelf.aside.extend(is_file().then(|| found.path()));
            } else if file_name::is_ours(name) {
                // Another process may have removed the file since.
                let Ok(about) = found.metadata() else { continue };
                // A directory is not a tensor, and removing it would free nothing.
                if about.is_dir() {
                    continue;
                }
                let last_use = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                shelf.places.push(ShelfFile { path: found.path(), bytes: about.len(), last_use });
            }
        }
        shelf.places.sort_by(|one, two| one.last_use.cmp(&two.last_use).then_with(|| one.path.cmp(&two.path)));
        Ok(shelf)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.places.iter().map(|place| place.bytes).sum()
    }

    pub(super) fn newest(&self) -> Option<SystemTime> {
        self.places.last().map(|place| place.last_use)
    }
}
