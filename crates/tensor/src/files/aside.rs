//! Files that make room for another one.
//!
//! Owns files between being chosen to go and being gone: under another name, until the new one has its own.
//! Does not choose them.
//!
//! Always: a file that was set aside is removed, or has its name again; which one, is decided by the new file's getting its
//! name. After a process that was killed in between, the next one gives names back.

use std::fs;
use std::path::{Path, PathBuf};

use super::file_name;

/// How the name of every such file starts, before its own.
const PREFIX: &str = ".aside-";

/// Files that are set aside. Dropping it gives them their names back.
#[derive(Debug, Default)]
pub(super) struct Aside {
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Aside {
    /// Sets one aside; says whether that could be done.
    pub(super) fn add(&mut self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
        let other = path.with_file_name(format!("{PREFIX}{name}"));
        let is_moved = fs::rename(path, &other).is_ok();
        if is_moved {
            self.moved.push((path.to_owned(), other));
        }
        is_moved
    }

    /// Removes them for good.
    pub(super) fn remove(mut self) {
        for (_, other) in std::mem::take(&mut self.moved) {
            // Whoever could rename it can remove it; where not, the next to write here sees to it.
            let _ = fs::remove_file(other);
        }
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        for (path, other) in &self.moved {
            // There is nobody left to tell; the next to write here tries again.
            let _ = fs::rename(other, path);
        }
    }
}

/// Whether a file was set aside.
pub(super) fn is_aside(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(file_name::is_ours)
}

/// Gives a file that was set aside its name back, unless that has another one by now.
pub(super) fn put_back(other: &Path) {
    let Some(name) = other.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX)) else { return };
    let path = other.with_file_name(name);
    let _ = if path.exists() { fs::remove_file(other) } else { fs::rename(other, path) };
}
