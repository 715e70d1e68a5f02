//! Notices that a file was saved, by its modification time, length and number.
//!
//! The caller polls. Polling costs less than a notification library and works on every file system. A file that an
//! editor replaces by a new file is noticed too.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Watches one file.
#[derive(Debug, Clone)]
pub struct Saves {
    path: PathBuf,
    /// The stamp at the last look.
    seen: Option<Stamp>,
    /// The stamp of the last save that was reported.
    reported: Option<Stamp>,
}

/// Changes with every save, even if an editor saves by replacing the file.
type Stamp = (SystemTime, u64, u64);

impl Saves {
    pub fn new(path: impl Into<PathBuf>) -> Saves {
        Saves { path: path.into(), seen: None, reported: None }
    }

    /// Whether the file was saved since the last `true`, and has not changed since the last call: a file that is being
    /// written is not reported. A file that exists at the second call counts as saved.
    pub fn saved(&mut self) -> bool {
        let now = stamp(&self.path);
        let is_settled = now.is_some() && now == self.seen;
        self.seen = now;
        if !is_settled || self.reported == self.seen {
            return false;
        }
        self.reported = self.seen;
        true
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    Some((found.modified().ok()?, found.len(), number))
}
