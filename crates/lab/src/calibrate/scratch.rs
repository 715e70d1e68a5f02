//! A temporary folder for the files that sinks write while the sinks are measured.
//!
//! The folder is deleted when the calibration ends, even if the calibration fails.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    /// Creates a folder among the system's temporary files. `None` if that fails.
    pub fn make() -> Option<ScratchFolder> {
        // A process may run several calibrations at once.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("vramp-calibrate-{}-{number}", std::process::id()));
        let text = path.to_str()?;
        // The path becomes part of a pipeline's text, in quotes, so the path must not contain characters with a special
        // meaning.
        if text.contains(['"', '\\', '%']) {
            return None;
        }
        fs::create_dir(&path).ok()?;
        Some(ScratchFolder(path))
    }

    /// The path of a file in the folder, in quotes, as a setting's value.
    pub fn file(&self, name: &str) -> String {
        format!("\"{}\"", self.0.join(name).display())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
