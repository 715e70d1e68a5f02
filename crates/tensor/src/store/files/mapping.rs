//! Memory-mapped files, for callers that can promise that the file is not truncated.
//!
//! Stores and folders do not map files; they read files (`positioned`). The mapped bytes stay valid as long as the
//! mapping exists, even if the file is renamed or removed.
//!
//! Reading costs little more than mapping if values are copied anyway, as on the way to a device. Copying 256 MB from
//! the system's cache to 32 MB of staging took 25 ms of CPU time through a mapping. Reading the file instead took 30 ms
//! in parts of 1 or 4 MB, and 69 ms in parts of 32 MB, which do not fit a cache. Reading is safer: if another program
//! truncates the file, reading returns an error, while touching a mapping ends the process with SIGBUS. Locks do not
//! help because they are advisory, and a check of the length is outdated at once.

#![expect(
    unsafe_code,
    reason = "a mapping is memory that other processes could change; the caller promises that none does"
)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use super::error::FileError;
use super::file::TensorFile;

impl TensorFile {
    /// Maps a file and checks its header. Values can be used in place
    /// ([`FileTensor::shown`](super::FileTensor::shown)), and pages are loaded when they are touched.
    /// [`open`](TensorFile::open) is the safe alternative.
    ///
    /// # Safety
    ///
    /// No process may change or truncate the file while it is open here: touching a truncated part ends the process.
    /// [`write`](TensorFile::write) and [`TensorFolder`](super::TensorFolder) replace a file by renaming, which is
    /// allowed.
    // SAFETY: the caller keeps the promise above.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        // SAFETY: forwarded from the caller.
        TensorFile::over_mapping(path.as_ref(), |file| unsafe { map(file) })
    }
}

/// Maps a whole file for reading.
// SAFETY: the caller promises that no process changes or truncates the file while it is mapped.
unsafe fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: forwarded from the caller.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::super::TensorBytes;
    use super::*;
    use crate::ops::dtype::DType;
    use crate::ops::shape::Shape;

    #[test]
    fn a_mapped_file_shows_its_values_in_place_also_after_it_was_replaced() {
        let path = std::env::temp_dir().join(format!("vramp-mapped-{}", std::process::id()));
        let write = |bytes: &[u8]| {
            let shape = Shape::new(&[bytes.len() / 4]).unwrap();
            TensorFile::write(&path, &[TensorBytes { name: "a", dtype: DType::F32, shape, bytes }]).unwrap();
        };
        write(&[7; 12_000]);
        // SAFETY: the path is unique to this test, which only ever replaces the file.
        let file = unsafe { TensorFile::map(&path) }.unwrap();
        write(&[8; 4]);
        let found = file.tensor("a").unwrap();
        let shown = found.shown().unwrap();
        assert!(shown.len() == 12_000 && shown.iter().all(|byte| *byte == 7));
        assert_eq!(shown.as_ptr().align_offset(4), 0, "values can be used in place");
        assert_eq!(found.read().unwrap(), shown);
        std::fs::remove_file(&path).unwrap();
    }
}
