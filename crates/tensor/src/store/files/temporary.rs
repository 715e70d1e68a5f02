//! The names of unfinished files, and syncing files to disk. [`TemporaryFile`] creates, renames and removes unfinished
//! files.
//!
//! Invariant: a file gets its final name only after all of it is on disk. If a [`TemporaryFile`] is dropped earlier,
//! the unfinished file is removed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use vramp_files::TemporaryFile;

/// The prefix of files that a folder's puts have not finished. A folder removes such files when it has the writer lock.
pub(super) const OF_A_PUT: &str = ".unfinished-put-";
/// The prefix of all other unfinished files. A folder leaves these files, because the process that writes them may
/// still be running.
pub(super) const OF_OTHERS: &str = ".unfinished-";

/// Sets the modification time, if given, and waits until all of a file is on disk.
pub(super) fn settle(file: &TemporaryFile, used: Option<SystemTime>) -> io::Result<()> {
    if let Some(used) = used {
        file.file().set_modified(used)?;
    }
    file.file().sync_all()
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder, which holds the file's name. Only Unix can open folders.
#[cfg(unix)]
pub(super) fn sync_folder_of(target: &Path) -> io::Result<()> {
    File::open(folder_of(target))?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
pub(super) fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
