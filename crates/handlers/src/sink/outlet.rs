//! Outlets: where a sink's bytes go, and how a file gets its name only once it holds something whole.
//!
//! Owns the look at the directory before the first frame, and the special cases:
//! standard output, pipes and devices, which have no temporary name.
//! Does not know frames or formats.
//!
//! Always: a file of the target's name is untouched until its successor is finished, and stays if that never is; a file
//! without anything whole in it is removed; a pipe or device is never replaced by a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use vramp_files::{PersistError, TemporaryFile};
use vramp_runtime::PartialFile;

use crate::Unhurried;

/// Why nothing can be written there.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutletError {
    #[error("`{path}` is a directory, expected a file to write; add a file name to it")]
    Directory { path: String },
    #[error("the directory `{folder}` of `{path}` is not there; make it first, such as `mkdir -p {folder}`")]
    NoFolder { path: String, folder: String },
    #[error("`{path}` cannot be written: {error}; check who may write there, or name another place")]
    Unwritable { path: String, error: io::Error },
    #[error("standard output is a terminal, which frames would flood; pipe it on, or name a file")]
    Terminal,
    #[error("`{part}` was written and cannot be renamed to `{path}`: {error}; rename it by hand")]
    Rename { part: String, path: String, error: io::Error },
}

/// What helps against an error while writing.
pub(super) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or name another place",
        io::ErrorKind::FileTooLarge => {
            "a file may not become larger than this here: raise the limit (`ulimit -f`), write less, or name another place"
        }
        _ => "check the disk or the reader, or name another place",
    }
}

/// Something that frames can be written to, one after another.
pub(super) trait Outlet: Write + Send {
    /// Takes back everything after this many bytes; false where that is impossible.
    fn cut_to(&mut self, bytes: u64) -> io::Result<bool>;

    /// Finishes it: gives it its name where it is to have one.
    fn finish(self: Box<Self>) -> Result<(), OutletError>;

    /// Ends it before everything has been written. An older file of its name stays, and what was written is left beside
    /// that under the name that is returned; without one it gets its name as usual.
    fn finish_early(self: Box<Self>) -> Result<Option<PartialFile>, OutletError> {
        self.finish().map(|()| None)
    }
}

/// Opens a file, or standard output for `-`.
pub(super) fn open(path: &str) -> Result<Box<dyn Outlet>, OutletError> {
    if path == "-" {
        if io::stdout().is_terminal() {
            return Err(OutletError::Terminal);
        }
        return Ok(Box::new(StandardOutput));
    }
    match OutletTarget::look(path, PathBuf::new())? {
        OutletTarget::Special(path) => {
            let opened = OpenOptions::new().write(true).open(&path);
            let file = opened.map_err(|error| OutletError::Unwritable { path: path.display().to_string(), error })?;
            Ok(Box::new(Special(Unhurried(file))))
        }
        OutletTarget::File(target) => Ok(Box::new(OutputFile::begin(target, PathBuf::new())?)),
    }
}

/// What a path leads to.
pub(super) enum OutletTarget {
    /// A file that is there or can be made, and is no link itself.
    File(PathBuf),
    /// A pipe or a device.
    Special(PathBuf),
}

impl OutletTarget {
    /// Looks at a path without changing anything. What it finds is written into memory of a path before.
    pub(super) fn look(path: &str, into: PathBuf) -> Result<OutletTarget, OutletError> {
        let unwritable = |error| OutletError::Unwritable { path: path.to_owned(), error };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(OutletError::Directory { path: path.to_owned() }),
            Ok(found) if found.is_file() => {
                // Renaming would also replace a file that may not be written.
                OpenOptions::new().write(true).open(path).map_err(unwritable)?;
                // What is renamed over a link replaces the link; a folder on the way may be one.
                if is_link(path) {
                    return Ok(OutletTarget::File(fs::canonicalize(path).map_err(unwritable)?));
                }
                Ok(OutletTarget::File(rewritten(into, path)))
            }
            Ok(_) => Ok(OutletTarget::Special(rewritten(into, path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_link(path) => {
                // What it leads to is not there yet. A ring of links is another error.
                let further = folder(Path::new(path)).join(fs::read_link(path).map_err(unwritable)?);
                let further = further.to_str().ok_or_else(|| unwritable(io::ErrorKind::InvalidFilename.into()))?;
                OutletTarget::look(further, into)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = folder(Path::new(path));
                if folder.is_dir() && !path.ends_with('/') {
                    return Ok(OutletTarget::File(rewritten(into, path)));
                }
                Err(OutletError::NoFolder { path: path.to_owned(), folder: folder.display().to_string() })
            }
            Err(error) => Err(unwritable(error)),
        }
    }
}

fn is_link(path: &str) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

/// Another path in the same memory: a sink that writes a file per frame makes no new one for each.
fn rewritten(path: PathBuf, text: &str) -> PathBuf {
    let mut words = path.into_os_string();
    words.clear();
    words.push(text);
    words.into()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file under a temporary name beside its target.
pub(super) struct OutputFile {
    file: TemporaryFile,
    target: PathBuf,
}

impl OutputFile {
    /// Makes an empty file beside the target; its own name is written into memory of a path before.
    pub(super) fn begin(target: PathBuf, memory: PathBuf) -> Result<OutputFile, OutletError> {
        match TemporaryFile::beside_with(&target, memory) {
            Ok(file) => Ok(OutputFile { file, target }),
            Err(error) => Err(OutletError::Unwritable { path: target.display().to_string(), error }),
        }
    }

    /// Gives it its name; hands back the memory of both paths.
    pub(super) fn persist(self) -> Result<(PathBuf, PathBuf), OutletError> {
        if let Ok(old) = fs::metadata(&self.target) {
            // Who may read the old file may read the new one; where that cannot be had, the picture matters more.
            let _ = self.file.file().set_permissions(old.permissions());
        }
        match self.file.persist(&self.target) {
            Ok(memory) => Ok((self.target, memory)),
            Err(failed) => Err(not_renamed(failed, &self.target)),
        }
    }

    /// Gives it its name if that is free, and otherwise one like it that is.
    fn persist_beside(self) -> Result<Option<PartialFile>, OutletError> {
        let Ok(old) = fs::metadata(&self.target) else { return self.persist().map(|_| None) };
        let OutputFile { mut file, target } = self;
        // As when it replaces the old file.
        let _ = file.file().set_permissions(old.permissions());
        for number in 1_u64.. {
            let beside = beside(&target, number);
            match file.persist_noclobber(&beside) {
                Ok(_) => {
                    let (path, instead_of) = (beside.display().to_string(), target.display().to_string());
                    return Ok(Some(PartialFile { path, instead_of }));
                }
                Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => file = failed.file,
                Err(failed) => return Err(not_renamed(failed, &beside)),
            }
        }
        Ok(None)
    }
}

/// Even a file that cannot be renamed is somebody's work: it stays.
fn not_renamed(failed: PersistError, path: &Path) -> OutletError {
    let part = failed.file.keep().display().to_string();
    OutletError::Rename { part, path: path.display().to_string(), error: failed.error }
}

/// `clip.partial.y4m` for `clip.y4m`, then `clip.partial-2.y4m` and so on.
fn beside(target: &Path, number: u64) -> PathBuf {
    let mut name = target.file_stem().unwrap_or_default().to_owned();
    name.push(".partial");
    if number > 1 {
        name.push(format!("-{number}"));
    }
    if let Some(end) = target.extension() {
        name.push(".");
        name.push(end);
    }
    target.with_file_name(name)
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Outlet for OutputFile {
    fn cut_to(&mut self, bytes: u64) -> io::Result<bool> {
        let mut file = self.file.file();
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
        Ok(true)
    }

    fn finish(self: Box<Self>) -> Result<(), OutletError> {
        self.persist().map(drop)
    }

    fn finish_early(self: Box<Self>) -> Result<Option<PartialFile>, OutletError> {
        self.persist_beside()
    }
}

/// A pipe or a device.
struct Special(Unhurried<File>);

impl Write for Special {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Outlet for Special {
    fn cut_to(&mut self, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn finish(self: Box<Self>) -> Result<(), OutletError> {
        Ok(())
    }
}

/// Standard output, locked anew for each write, since a lock cannot move between threads.
struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Unhurried(io::stdout().lock()).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Unhurried(io::stdout().lock()).flush()
    }
}

impl Outlet for StandardOutput {
    fn cut_to(&mut self, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn finish(self: Box<Self>) -> Result<(), OutletError> {
        Ok(())
    }
}
