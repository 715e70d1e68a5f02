//! Files as memory.
//!
//! Owns the mapping, which is the one unsafe call here.
//! Does not know what is in it.
//!
//! Always: the bytes are there as long as the mapping is, whatever name the file has by then, or none.

#![expect(
    unsafe_code,
    reason = "a mapping is memory that others could change; the promise is kept by how files are written"
)]

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a whole file, to be read.
///
/// No lock would help: they are advisory, and a writer that ignores them cuts the file under our feet, which ends the
/// process with SIGBUS. Files that somebody else may change in place are copied instead (`TensorFile::read`).
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: nobody may change or shorten the file while it is mapped. This module's writers keep that: they write
    // under another name and rename, so that a mapped file loses its name and never its bytes. `TensorFile::open` asks
    // it of whoever names another file.
    unsafe { Mmap::map(file) }
}
