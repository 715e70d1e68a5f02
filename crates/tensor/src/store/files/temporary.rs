//! Files that are not finished.
//!
//! Owns their names, and the wait until they are on the disk.
//! Does not know what is written; [`TemporaryFile`] creates, renames and removes them.
//!
//! Always: a file has its final name only when all of it is on the disk; one that is dropped before that is gone.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use vramp_files::TemporaryFile;

/// How the names of unfinished files start: of those that a folder's puts began, and of all others. A folder tidies its own
/// away; the others may be somebody's who is at it.
pub(super) const OF_A_PUT: &str = ".unfinished-put-";
pub(super) const OF_OTHERS: &str = ".unfinished-";

/// Waits until all of a file is on the disk.
pub(super) fn settle(file: &TemporaryFile, used: Option<SystemTime>) -> io::Result<()> {
    if let Some(used) = used {
        file.file().set_modified(used)?;
    }
    file.file().sync_all()
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
