//! A folder for files that sinks write while they are measured.
//!
//! Owns the folder: it is gone when the calibration is over, however that ends.
//! Does not know which files there will be.

use std::fs;
use std::path::PathBuf;

pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// A new folder among the system's temporary files; none where there is no room for one.
    pub fn make() -> Option<ScratchFolder> {
        let path = std::env::temp_dir().join(format!("vramp-calibrate-{}", std::process::id()));
        let text = path.to_str()?;
        // Its name becomes a part of pipelines, in quotes.
        if text.contains(['"', '\\', '%']) {
            return None;
        }
        fs::create_dir(&path).ok()?;
        Some(ScratchFolder(path))
    }

    /// A file in it, as a setting's value.
    pub fn file(&self, name: &str) -> String {
        format!("\"{}\"", self.0.join(name).display())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
