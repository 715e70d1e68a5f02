//! Reading a file at an offset, independent of the file's cursor, so that several readers can share one open file.

use std::fs::File;
use std::io;

/// Reads from an offset until `into` is full or the file ends. Returns the number of bytes read.
pub(super) fn read_from(file: &File, start: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match read_some(file, start + filled as u64, &mut into[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(unix)]
fn read_some(file: &File, start: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, start)
}

#[cfg(windows)]
fn read_some(file: &File, start: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, start)
}
