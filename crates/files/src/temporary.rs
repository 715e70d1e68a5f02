//! Files that are written under a temporary name, in the target's directory, until they are complete.
//!
//! The `tempfile` crate does the same, but allocates several times per file, whereas sinks that write a file per frame
//! must not allocate in steady state. The operations have the same names as in `tempfile`.
//!
//! Invariants: the target is untouched until [`TemporaryFile::persist`], which replaces the target in one step. A
//! temporary file that is dropped before `persist` is removed. A process that is killed leaves its temporary files
//! behind.
//!
//! ```
//! # use std::io::Write as _;
//! # let target = std::env::temp_dir().join(format!("vramp-example-{}", std::process::id()));
//! let mut file = vramp_files::TemporaryFile::beside(&target)?;
//! file.write_all(b"complete")?;
//! file.persist(&target)?;
//! # std::fs::remove_file(target)?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::fmt::{self, Write as _};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// The temporary name starts with at most this many characters of the target's name, because file systems limit names
/// to 255 bytes.
const NAME_CHARS: usize = 50;

/// A file under a temporary name. Dropping this value removes the file.
#[derive(Debug)]
pub struct TemporaryFile {
    file: File,
    path: PathBuf,
    is_kept: bool,
}

/// A temporary file could not get its final name.
#[derive(Debug)]
pub struct PersistError {
    /// Dropping this value removes the file; [`TemporaryFile::keep`] leaves the file under its temporary name.
    pub file: TemporaryFile,
    pub error: io::Error,
}

impl TemporaryFile {
    /// Creates an empty file in the directory of `target`. Its name starts with the target's name, for example
    /// `clip.y4m.4711-0.part`.
    pub fn beside(target: &Path) -> io::Result<TemporaryFile> {
        TemporaryFile::beside_with(target, PathBuf::new())
    }

    /// Like [`TemporaryFile::beside`], but writes the temporary path into `memory`, whose content is discarded, to save
    /// an allocation.
    pub fn beside_with(target: &Path, memory: PathBuf) -> io::Result<TemporaryFile> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let end = name.char_indices().nth(NAME_CHARS).map_or(name.len(), |(at, _)| at);
        TemporaryFile::create(target, memory, [&name[..end], ".", ".part"])
    }

    /// Creates an empty file in the directory of `target`. The file's name is the prefix followed by a unique number.
    pub fn with_prefix(target: &Path, prefix: &str) -> io::Result<TemporaryFile> {
        TemporaryFile::create(target, PathBuf::new(), [prefix, "", ""])
    }

    fn create(target: &Path, memory: PathBuf, [start, separator, end]: [&str; 3]) -> io::Result<TemporaryFile> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = memory.into_os_string();
        loop {
            name.clear();
            name.push(directory(target));
            name.push("/");
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            write!(name, "{start}{separator}{}-{count}{end}", process::id()).expect("text can be added to text");
            match OpenOptions::new().read(true).write(true).create_new(true).open(&name) {
                Ok(file) => return Ok(TemporaryFile { file, path: name.into(), is_kept: false }),
                // The name is taken by a file that a killed process with the same process number left.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the file to `target`, replacing any file of that name in one step. Returns the temporary path, whose
    /// memory can be reused by [`TemporaryFile::beside_with`].
    pub fn persist(mut self, target: &Path) -> Result<PathBuf, PersistError> {
        match fs::rename(&self.path, target) {
            Ok(()) => Ok(self.take_path()),
            Err(error) => Err(PersistError { file: self, error }),
        }
    }

    /// Renames the file to `target`. If the target exists, the result is an error of the kind
    /// [`io::ErrorKind::AlreadyExists`].
    pub fn persist_noclobber(mut self, target: &Path) -> Result<PathBuf, PersistError> {
        let renamed = match fs::hard_link(&self.path, target) {
            Ok(()) => {
                // The file has its final name. If the temporary name cannot be removed, nothing is lost.
                let _ = fs::remove_file(&self.path);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // Some file systems have no hard links. There, another process could create the target between this check
            // and the rename.
            Err(_) if fs::symlink_metadata(target).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(&self.path, target),
        };
        match renamed {
            Ok(()) => Ok(self.take_path()),
            Err(error) => Err(PersistError { file: self, error }),
        }
    }

    /// Leaves the file under its temporary name, and returns the temporary path.
    pub fn keep(mut self) -> PathBuf {
        self.take_path()
    }

    fn take_path(&mut self) -> PathBuf {
        self.is_kept = true;
        std::mem::take(&mut self.path)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // If the removal fails, only a file with a temporary name is left.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl fmt::Display for PersistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be renamed: {}", self.file.path.display(), self.error)
    }
}

impl std::error::Error for PersistError {}

/// Drops the temporary file, which removes the file from the disk.
impl From<PersistError> for io::Error {
    fn from(failed: PersistError) -> io::Error {
        failed.error
    }
}

fn directory(target: &Path) -> &Path {
    target.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty directory that is removed when this value is dropped.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("vramp-temporary-{}-{name}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Directory(path)
        }

        fn names(&self) -> Vec<String> {
            let found = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<String> = found.map(|name| name.into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_file_replaces_its_target_only_when_it_is_persisted() {
        let directory = Directory::new("replace");
        let target = directory.0.join("clip.y4m");
        fs::write(&target, "old").unwrap();
        let mut file = TemporaryFile::beside(&target).unwrap();
        file.write_all(b"new").unwrap();
        let name = file.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with("clip.y4m.") && file.path().extension().is_some_and(|end| end == "part"), "{name}");
        assert_eq!(directory.names(), ["clip.y4m", &name]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        file.persist(&target).unwrap();
        assert_eq!(directory.names(), ["clip.y4m"]);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn a_dropped_file_is_removed_and_a_kept_one_stays() {
        let directory = Directory::new("drop");
        let target = directory.0.join("a");
        drop(TemporaryFile::with_prefix(&target, ".unfinished-").unwrap());
        assert!(directory.names().is_empty());
        let path = TemporaryFile::with_prefix(&target, ".unfinished-").unwrap().keep();
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with(".unfinished-"), "{}", path.display());
        assert!(path.is_file());
    }

    #[test]
    fn a_target_that_exists_is_not_clobbered() {
        let directory = Directory::new("noclobber");
        let [taken, free] = ["taken", "free"].map(|name| directory.0.join(name));
        fs::write(&taken, "old").unwrap();
        let failed = TemporaryFile::beside(&taken).unwrap().persist_noclobber(&taken).unwrap_err();
        assert_eq!(failed.error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&taken).unwrap(), "old");
        failed.file.persist_noclobber(&free).unwrap();
        assert_eq!(directory.names(), ["free", "taken"]);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_is_returned() {
        let directory = Directory::new("failed");
        let target = directory.0.join("a");
        fs::create_dir(&target).unwrap();
        let failed = TemporaryFile::beside(&target).unwrap().persist(&target).unwrap_err();
        assert!(failed.file.path().is_file());
        drop(failed);
        assert_eq!(directory.names(), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_it_as_far_as_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = Directory::new("mode");
        let target = directory.0.join("a");
        fs::write(directory.0.join("plain"), "").unwrap();
        TemporaryFile::beside(&target).unwrap().persist(&target).unwrap();
        let mode = |name: &str| fs::metadata(directory.0.join(name)).unwrap().permissions().mode();
        assert_eq!(mode("a"), mode("plain"));
    }
}
