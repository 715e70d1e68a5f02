//! Finds the file that a path leads to, through links, other spellings and the standard streams.
//!
//! An existing file is identified by its device and inode, or by its canonical path on systems without inodes. A file
//! that does not exist yet is identified by its canonical directory and its name. Nothing is opened.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Maximum number of links followed to a file that does not exist yet; the same limit as on Linux.
const MOST_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileIdentity {
    #[cfg(unix)]
    Inode { device: u64, inode: u64 },
    /// A file that does not exist yet; any file on systems without inodes.
    Path(PathBuf),
}

/// How several users of a file affect each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// Keeps the written bytes: a file, or a disk.
    File,
    /// Passes the written bytes on to readers.
    Pipe,
    /// Reading and writing are independent: a terminal or a socket.
    TwoWay,
    /// A device that accepts any number of writers, such as `/dev/null`.
    Device,
}

/// The file at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) identity: FileIdentity,
    pub(super) kind: FileKind,
}

impl FoundFile {
    /// Whether writing to `self` changes the bytes that are read from `read`.
    pub(super) fn feeds(&self, read: &FoundFile) -> bool {
        self.identity == read.identity && matches!(self.kind, FileKind::File | FileKind::Pipe)
    }

    /// Whether a writer to `self` and a writer to `other` would disturb each other.
    pub(super) fn disturbs(&self, other: &FoundFile) -> bool {
        self.identity == other.identity && (self.kind, other.kind) != (FileKind::Device, FileKind::Device)
    }
}

/// The file at a path, or the file that would be created there. `None` if the file cannot be determined; opening the
/// path then fails as well.
pub(super) fn at(path: &Path) -> Option<FoundFile> {
    match fs::metadata(path) {
        Ok(found) => of(&found, || fs::canonicalize(path).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let place = behind_links(path)?;
            let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut name = place.file_name()?.to_owned();
            if cfg!(any(windows, target_os = "macos")) {
                // The file systems of Windows and macOS usually ignore case. Refusing a name without need is better
                // than overwriting a file.
                name.make_ascii_lowercase();
            }
            let place = fs::canonicalize(folder).ok()?.join(name);
            Some(FoundFile { identity: FileIdentity::Path(place), kind: FileKind::File })
        }
        Err(_) => None,
    }
}

/// Follows links whose target does not exist.
fn behind_links(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Some(path);
        }
        let further = fs::read_link(&path).ok()?;
        path = path.parent().map_or(further.clone(), |folder| folder.join(&further));
    }
    None
}

#[cfg(unix)]
fn of(found: &Metadata, _: impl FnOnce() -> Option<PathBuf>) -> Option<FoundFile> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let kind = match found.file_type() {
        kind if kind.is_dir() => return None,
        kind if kind.is_fifo() => FileKind::Pipe,
        kind if kind.is_socket() => FileKind::TwoWay,
        kind if kind.is_char_device() => FileKind::Device,
        _ => FileKind::File,
    };
    Some(FoundFile { identity: FileIdentity::Inode { device: found.dev(), inode: found.ino() }, kind })
}

#[cfg(not(unix))]
fn of(found: &Metadata, path: impl FnOnce() -> Option<PathBuf>) -> Option<FoundFile> {
    let kind = if found.is_file() { FileKind::File } else { FileKind::Device };
    Some(FoundFile { identity: FileIdentity::Path(path()?), kind })
}

pub(super) fn standard_output() -> Option<FoundFile> {
    stream(&io::stdout())
}

pub(super) fn standard_input() -> Option<FoundFile> {
    stream(&io::stdin())
}

#[cfg(unix)]
fn stream(stream: &(impl std::os::fd::AsFd + IsTerminal)) -> Option<FoundFile> {
    let file = fs::File::from(stream.as_fd().try_clone_to_owned().ok()?);
    let mut found = of(&file.metadata().ok()?, || None)?;
    if stream.is_terminal() {
        found.kind = FileKind::TwoWay;
    }
    Some(found)
}

#[cfg(not(unix))]
fn stream(_: &impl IsTerminal) -> Option<FoundFile> {
    None
}
