//! A file tree for tests, with the layout of Linux's `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct FileTree(PathBuf);

impl FileTree {
    pub(crate) fn new(test: &str) -> FileTree {
        let root = std::env::temp_dir().join(format!("vramp-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a folder for tests can be written");
        FileTree(root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, path: &str, content: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("the file is below the root"))
            .expect("a folder for tests can be written");
        fs::write(path, content).expect("a folder for tests can be written");
    }

    /// Adds a process that has a card open as file 5. `about` is the driver's text in `fdinfo`.
    #[cfg(unix)]
    pub(crate) fn client(&self, process: u32, about: &str) {
        self.file(&format!("proc/{process}/fdinfo/5"), about);
        let folder = self.0.join(format!("proc/{process}/fd"));
        fs::create_dir_all(&folder).expect("a folder for tests can be written");
        let _ = std::os::unix::fs::symlink("/dev/dri/renderD128", folder.join("5"));
    }
}

impl Drop for FileTree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
