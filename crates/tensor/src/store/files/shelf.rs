//! What lies in a folder of tensors, and what would have to go.
//!
//! Owns the look at the folder and the choice of the least recently used.
//! Does not open or remove files.
//!
//! Always: the folder itself is the truth: there is no index that could disagree with it. When a file was last used
//! is its time of change, which survives restarts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::error::FileError;
use super::{aside, file_name, temporary};

/// A file in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShelfFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) last_use: SystemTime,
}

/// Everything in the folder that is ours.
#[derive(Debug, Default)]
pub(super) struct FolderContents {
    /// Least recently used first.
    pub(super) places: Vec<ShelfFile>,
    /// Files that a put never finished.
    pub(super) unfinished: Vec<PathBuf>,
    /// Files that were to make room.
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
                // A directory of such a name is somebody else's: as a tensor's file it would only be in the way.
                shelf.aside.extend(is_file().then(|| found.path()));
            } else if file_name::is_ours(name) {
                // Another process may have removed it since: then it is not there.
                let Ok(about) = found.metadata() else { continue };
                // A folder of such a name is nobody's tensor, and can make no room.
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
