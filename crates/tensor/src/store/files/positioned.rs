//! Reading of a file from a place on, whoever else reads it.
//!
//! Owns the one call that systems name differently.
//! Does not move anything that others could see: a file has one place of its own, and it stays.
//!
//! Always: fewer bytes than were asked for means that the file ends there.

use std::fs::File;
use std::io;

/// Reads from a byte on until `into` is full or the file ends; says how many bytes there were.
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
