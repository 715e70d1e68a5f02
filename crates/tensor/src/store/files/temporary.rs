//! Files that are not finished.
//!
//! Owns a file under a name of its own, beside where it will be, until it is renamed or removed.
//! Does not know what is written.
//!
//! Always: a file has its final name only when all of it is on the disk; one that is dropped before that is gone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How the names of unfinished files start: of those that a folder's puts began, and of all others. A folder tidies its own
/// away; the others may be somebody's who is at it.
pub(super) const OF_A_PUT: &str = ".unfinished-put-";
pub(super) const OF_OTHERS: &str = ".unfinished-";

/// An unfinished file.
#[derive(Debug)]
pub(super) struct Temporary {
    pub(super) file: File,
    place: PathBuf,
    kept: bool,
}

impl Temporary {
    /// A new file in the folder of what it will become, with a name that starts like this.
    pub(super) fn beside(target: &Path, prefix: &str) -> io::Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let place = folder_of(target).join(format!("{prefix}{}-{count}", process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&place) {
                Ok(file) => return Ok(Temporary { file, place, kept: false }),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until all of it is on the disk.
    pub(super) fn settle(&self, used: Option<SystemTime>) -> io::Result<()> {
        if let Some(used) = used {
            self.file.set_modified(used)?;
        }
        self.file.sync_all()
    }

    /// Gives it its name, in place of what had it: all of it, or nothing has changed.
    pub(super) fn keep_as(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.place, target)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // There is nobody left to tell; a folder tries again when it is opened.
            let _ = fs::remove_file(&self.place);
        }
    }
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name is in its folder, which has to reach the disk as well. Only Unix opens folders.
#[cfg(unix)]
pub(super) fn sync_folder_of(target: &Path) -> io::Result<()> {
    File::open(folder_of(target))?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub(super) fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
