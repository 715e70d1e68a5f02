//! Files as memory, for those who can promise that nobody cuts them short.
//!
//! Owns the mapping, which is the one unsafe call here.
//! Does not know what is in it, and is used by nobody else here: stores and folders read (`positioned`).
//!
//! Always: the bytes are there as long as the mapping is, whatever name the file has by then, or none.
//!
//! Reading costs little where values are copied anyway, as they are on their way to a device: 256 MB out of the system's
//! cache into 32 MB of staging took 25 ms of CPU time through a mapping, 30 by reading 1 or 4 MB at a time, and 69 by 32
//! MB, which no cache holds. In return, a file that another program cuts short is an error, where touching a mapping of it
//! ends the process with SIGBUS. No lock would help: they are advisory; and a look at its length is old at once.

#![expect(
    unsafe_code,
    reason = "a mapping is memory that others could change; whoever asks for one promises that nobody does"
)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

use super::error::FileError;
use super::file::TensorFile;

impl TensorFile {
    /// Maps a file and checks it: values can be used where they lie ([`Found::shown`](super::Found::shown)), and none of it
    /// is in this process's memory before it is looked at. [`open`](TensorFile::open) needs no promise.
    ///
    /// # Safety
    ///
    /// Nobody, in any process, may change the file in place or cut it short as long as it is open here: what was cut off
    /// ends the process when it is looked at. Replacing it by renaming is fine, as [`write`](TensorFile::write) and
    /// [`Folder`](super::Folder) do.
    // SAFETY: the promise above is the caller's to keep.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        // SAFETY: as above.
        TensorFile::over_mapping(path.as_ref(), |file| unsafe { map(file) })
    }
}

/// Maps a whole file, to be read.
// SAFETY: nobody may change or shorten the file while it is mapped; whoever calls says so.
unsafe fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: as above.
    unsafe { Mmap::map(file) }
}

#[cfg(test)]
mod tests {
    use super::super::TensorBytes;
    use super::*;
    use crate::ops::dtype::DType;
    use crate::ops::shape::Shape;

    #[test]
    fn a_mapped_file_shows_its_values_where_they_lie_also_after_it_was_replaced() {
        let path = std::env::temp_dir().join(format!("vramp-mapped-{}", std::process::id()));
        let write = |bytes: &[u8]| {
            let shape = Shape::new(&[bytes.len() / 4]).unwrap();
            TensorFile::write(&path, &[TensorBytes { name: "a", dtype: DType::F32, shape, bytes }]).unwrap();
        };
        write(&[7; 12_000]);
        // SAFETY: the file is of this test's own name, and only ever replaced.
        let file = unsafe { TensorFile::map(&path) }.unwrap();
        write(&[8; 4]);
        let found = file.tensor("a").unwrap();
        let shown = found.shown().unwrap();
        assert!(shown.len() == 12_000 && shown.iter().all(|byte| *byte == 7));
        assert_eq!(shown.as_ptr().align_offset(4), 0, "values can be used where they lie");
        assert_eq!(found.read().unwrap(), shown);
        std::fs::remove_file(&path).unwrap();
    }
}
