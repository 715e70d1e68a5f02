//! A tree of files for tests, as Linux would show it.
//!
//! Owns a fresh folder.
//! Does not know what the files mean.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn new(test: &str) -> Tree {
        let root = std::env::temp_dir().join(format!("vramp-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Tree(root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, path: &str, content: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A process that has a card open as file 5, with what its driver keeps for it.
    #[cfg(unix)]
    pub(crate) fn client(&self, process: u32, about: &str) {
        self.file(&format!("proc/{process}/fdinfo/5"), about);
        let folder = self.0.join(format!("proc/{process}/fd"));
        fs::create_dir_all(&folder).unwrap();
        let _ = std::os::unix::fs::symlink("/dev/dri/renderD128", folder.join("5"));
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
