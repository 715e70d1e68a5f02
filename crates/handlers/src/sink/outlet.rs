//! The output of a sink: a file, standard output, a pipe or a device.
//!
//! A file is written under a temporary name beside its target and renamed when it is complete. Until then an older file
//! at the target is untouched, and the older file stays if the new file is never finished. The directory is checked
//! before the first frame. A file without a whole frame is removed. Pipes and devices have no temporary name and are
//! never replaced by a file.
//!
//! A sink calls [`Outlet::finish`] from `stop`, after its stream has ended in a run without a failure. After any other
//! end the sink's `stop_early` calls [`Outlet::finish_early`], which leaves an older file as it was and keeps the new
//! file beside it. The report lists the new file in `partial_files`. With the setting `partial=replace`, `stop_early`
//! calls [`Outlet::finish`] instead.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use vramp_files::{PersistError, TemporaryFile};
use vramp_runtime::PartialFile;

use crate::Unhurried;

#[derive(Debug, thiserror::Error)]
pub(super) enum OutletError {
    #[error("`{path}` is a directory, expected a file to write; add a file name to the path")]
    Directory { path: String },
    #[error(
        "the directory `{folder}` of `{path}` does not exist; create that directory, for example with `mkdir -p \
         {folder}`"
    )]
    NoFolder { path: String, folder: String },
    #[error("`{path}` cannot be written: {error}; check the permissions, or choose another path")]
    Unwritable { path: String, error: io::Error },
    #[error("standard output is a terminal, which cannot take frames; pipe the output to a program, or give a file")]
    Terminal,
    #[error("`{part}` was written and cannot be renamed to `{path}`: {error}; rename `{part}` by hand")]
    Rename { part: String, path: String, error: io::Error },
}

/// The remedy for a write error.
pub(super) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space, or choose another path",
        io::ErrorKind::FileTooLarge => {
            "the file has reached the size limit; raise the limit (`ulimit -f`), write less, or choose another path"
        }
        _ => "check the disk, or the program that reads the output, or choose another path",
    }
}

/// A destination for consecutive frames.
pub(super) trait Outlet: Write + Send {
    /// Truncates the output to this many bytes; returns false if the output cannot be truncated.
    fn cut_to(&mut self, bytes: u64) -> io::Result<bool>;

    /// Finishes the output; gives a file its final name.
    fn finish(self: Box<Self>) -> Result<(), OutletError>;

    /// Finishes the output before all frames were written. An older file at the target stays; the new file is then kept
    /// beside it under the returned name. Without an older file, the new file gets its final name.
    fn finish_early(self: Box<Self>) -> Result<Option<PartialFile>, OutletError> {
        self.finish().map(|()| None)
    }
}

pub(super) fn open(path: &str) -> Result<Box<dyn Outlet>, OutletError> {
    if path == "-" && io::stdout().is_terminal() {
        return Err(OutletError::Terminal);
    }
    open_text(path)
}

/// Like [`open`], for text, which a terminal can show.
pub(super) fn open_text(path: &str) -> Result<Box<dyn Outlet>, OutletError> {
    if path == "-" {
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

pub(super) enum OutletTarget {
    /// A file that exists or can be created; not a link.
    File(PathBuf),
    Special(PathBuf),
}

impl OutletTarget {
    /// Resolves a path without changing anything. The result reuses the memory of `into`.
    pub(super) fn look(path: &str, into: PathBuf) -> Result<OutletTarget, OutletError> {
        let unwritable = |error| OutletError::Unwritable { path: path.to_owned(), error };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(OutletError::Directory { path: path.to_owned() }),
            Ok(found) if found.is_file() => {
                // Opening the file checks that it is writable, because renaming would replace even a file that is not
                // writable.
                OpenOptions::new().write(true).open(path).map_err(unwritable)?;
                // Renaming onto a link would replace the link, so links are resolved; a directory in the path may be a
                // link too.
                if is_link(path) {
                    return Ok(OutletTarget::File(fs::canonicalize(path).map_err(unwritable)?));
                }
                Ok(OutletTarget::File(rewritten(into, path)))
            }
            Ok(_) => Ok(OutletTarget::Special(rewritten(into, path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_link(path) => {
                // The target of the link does not exist yet. A loop of links gives another error and does not lead
                // here.
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

/// Writes `text` into the memory of `path`, so that a sink with a file per frame does not allocate.
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
    /// Creates an empty file beside the target; its temporary name reuses `memory`.
    pub(super) fn begin(target: PathBuf, memory: PathBuf) -> Result<OutputFile, OutletError> {
        match TemporaryFile::beside_with(&target, memory) {
            Ok(file) => Ok(OutputFile { file, target }),
            Err(error) => Err(OutletError::Unwritable { path: target.display().to_string(), error }),
        }
    }

    /// The temporary name.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Another file for the same target.
    pub(super) fn another(&self) -> Result<OutputFile, OutletError> {
        OutputFile::begin(self.target.clone(), PathBuf::new())
    }

    /// Renames the file to its target; returns the memory of both paths.
    pub(super) fn persist(self) -> Result<(PathBuf, PathBuf), OutletError> {
        if let Ok(old) = fs::metadata(&self.target) {
            // Keeps the permissions of the old file. A failure is ignored, because the content is more important.
            let _ = self.file.file().set_permissions(old.permissions());
        }
        match self.file.persist(&self.target) {
            Ok(memory) => Ok((self.target, memory)),
            Err(failed) => Err(not_renamed(failed, &self.target)),
        }
    }

    /// Renames the file to its target if no file is there, otherwise to a similar name that is free.
    pub(super) fn persist_beside(self) -> Result<Option<PartialFile>, OutletError> {
        let Ok(old) = fs::metadata(&self.target) else { return self.persist().map(|_| None) };
        let OutputFile { mut file, target } = self;
        // The new file gets the same permissions as if it replaced the old file.
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

/// Keeps the temporary file after a failed renaming, and returns an error that names that file.
fn not_renamed(failed: PersistError, path: &Path) -> OutletError {
    let part = failed.file.keep().display().to_string();
    OutletError::Rename { part, path: path.display().to_string(), error: failed.error }
}

/// The name of an unfinished file beside `clip.y4m`: `clip.partial.y4m` for number 1, `clip.partial-2.y4m` for number
/// 2, and so on.
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

/// Standard output, locked anew for each write, since a held lock could not move to another thread.
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
