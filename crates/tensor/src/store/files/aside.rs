//! Setting files aside to make room for a new file. A file that is set aside is renamed; the renamed file is removed
//! after the new file has its final name.
//!
//! Invariants: a file that was set aside is removed if the new file gets its final name; otherwise the file that was
//! set aside gets its old name back. If the process is killed in between, the next process that writes to the folder
//! (the next writer) cannot know whether the new file had its final name. The next writer therefore restores all files
//! that were set aside, and the folder may be over its quota until the next put. Files that cannot be renamed or
//! removed stay aside, and the next writer tries again.

use std::fs;
use std::path::{Path, PathBuf};

use super::file_name;

/// The prefix of the name of a file that is set aside. The prefix is repeated if a directory already has the resulting
/// name.
const PREFIX: &str = ".aside-";
/// The maximum number of prefixes of one name. File systems accept names of 255 bytes, and a tensor's file name has up
/// to 214 bytes.
const MAX_PREFIXES: usize = 5;

/// Files that are set aside. Dropping this value restores the old names of the files.
#[derive(Debug, Default)]
pub(super) struct Aside {
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Aside {
    /// Sets a file aside. Returns false if that failed.
    pub(super) fn add(&mut self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
        let mut others = (1..=MAX_PREFIXES).map(|times| path.with_file_name(PREFIX.repeat(times) + name));
        let Some(other) = others.find(|other| !other.is_dir()) else { return false };
        let is_moved = fs::rename(path, &other).is_ok();
        if is_moved {
            self.moved.push((path.to_owned(), other));
        }
        is_moved
    }

    /// Removes the files.
    pub(super) fn remove(mut self) {
        for (_, other) in std::mem::take(&mut self.moved) {
            // A file that could be renamed can usually be removed; if not, the next writer restores it.
            let _ = fs::remove_file(other);
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for (path, other) in &self.moved {
            // A failure cannot be reported here; the next writer tries again.
            let _ = fs::rename(other, path);
        }
    }
}

pub(super) fn is_aside(name: &str) -> bool {
    own_name(name).is_some()
}

/// Restores the name of a file that was set aside, or removes the file if a newer file has that name.
pub(super) fn put_back(other: &Path) {
    let Some(name) = other.file_name().and_then(|name| own_name(name.to_str()?)) else { return };
    let path = other.with_file_name(name);
    // A directory is not a tensor's file: the rename fails, and the file stays aside until the directory is removed.
    let _ = if path.is_file() { fs::remove_file(other) } else { fs::rename(other, path) };
}

/// The original name of a file that was set aside; `None` for other files.
fn own_name(name: &str) -> Option<&str> {
    let own = name.strip_prefix(PREFIX)?.trim_start_matches(PREFIX);
    file_name::is_ours(own).then_some(own)
}
