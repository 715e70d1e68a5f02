//! Which file a path leads to, whatever it is called: links, other spellings and the standard streams included.
//!
//! A file that exists is known by its device and inode where the system has them, and by its canonical path elsewhere; one
//! that does not exist yet, by its canonical folder and its name. Nothing is opened.

use std::fs::{self, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Links that are followed to a file that does not exist yet; as many as Linux follows.
const MOST_LINKS: usize = 40;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileIdentity {
    /// A file that exists.
    #[cfg(unix)]
    Inode { device: u64, inode: u64 },
    /// A file that does not exist yet; any file if the system has no inodes.
    Path(PathBuf),
}

/// What can happen to it if several use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    /// It keeps what is written: a file, or a disk.
    File,
    /// What is written into it comes out of it.
    Pipe,
    /// Reading and writing do not meet: a terminal or a socket.
    TwoWay,
    /// Any number may write into it, such as `/dev/null`.
    Device,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundFile {
    pub(super) identity: FileIdentity,
    pub(super) kind: FileKind,
}

impl FoundFile {
    /// Whether writing into one changes what is read from the other.
    pub(super) fn feeds(&self, read: &FoundFile) -> bool {
        self.identity == read.identity && matches!(self.kind, FileKind::File | FileKind::Pipe)
    }

    /// Whether two that write would disturb each other.
    pub(super) fn disturbs(&self, other: &FoundFile) -> bool {
        self.identity == other.identity && (self.kind, other.kind) != (FileKind::Device, FileKind::Device)
    }
}

/// What is at a path, or would be made there; none if that cannot be known, and then it cannot be opened either.
pub(super) fn at(path: &Path) -> Option<FoundFile> {
    match fs::metadata(path) {
        Ok(found) => of(&found, || fs::canonicalize(path).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let place = behind_links(path)?;
            let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut name = place.file_name()?.to_owned();
            if cfg!(any(windows, target_os = "macos")) {
                // Their disks usually take both for one file; refusing one too many is the lesser mistake.
                name.make_ascii_lowercase();
            }
            let place = fs::canonicalize(folder).ok()?.join(name);
            Some(FoundFile { identity: FileIdentity::Path(place), kind: FileKind::File })
        }
        Err(_) => None,
    }
}

/// Where links lead to whose end does not exist.
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

/// Where standard output leads.
pub(super) fn standard_output() -> Option<FoundFile> {
    stream(&io::stdout())
}

/// Where standard input comes from.
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
