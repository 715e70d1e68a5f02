//! Files that make room for another one.
//!
//! Owns files between being chosen to go and being gone: under another name, until the new one has its own.
//! Does not choose them.
//!
//! Always: a file that was set aside is removed, or has its name again; which one, is decided by the new file's getting its
//! name. Not so if the process is killed in between: on which side of that it was, nobody can tell afterwards, so that the
//! next to write here gives all of them their names back. The folder may be over its quota then, until the next put.
//! What cannot be renamed or removed stays aside, and the next tries again.

use std::fs;
use std::path::{Path, PathBuf};

use super::file_name;

/// How the name of every such file starts, before its own: once, or more often where a directory has that name.
const PREFIX: &str = ".aside-";
/// How often at most: file systems take 255 bytes, of which a tensor's file has up to 214.
const MAX_PREFIXES: usize = 5;

/// Files that are set aside. Dropping it gives them their names back.
#[derive(Debug, Default)]
pub(super) struct Aside {
    moved: Vec<(PathBuf, PathBuf)>,
}

impl Aside {
    /// Sets one aside; says whether that could be done.
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
    own_name(name).is_some()
}

/// Gives a file that was set aside its name back, unless that has another one by now.
pub(super) fn put_back(other: &Path) {
    let Some(name) = other.file_name().and_then(|name| own_name(name.to_str()?)) else { return };
    let path = other.with_file_name(name);
    // A directory there is no tensor's file: the file waits until it is gone.
    let _ = if path.is_file() { fs::remove_file(other) } else { fs::rename(other, path) };
}

/// The name that a file had before it was set aside; none if it was not.
fn own_name(name: &str) -> Option<&str> {
    let own = name.strip_prefix(PREFIX)?.trim_start_matches(PREFIX);
    file_name::is_ours(own).then_some(own)
}
