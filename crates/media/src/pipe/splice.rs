//! Lending memory to a pipe without a copy (vmsplice), on Linux.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "the kernel reads the lent memory after the call"))]

use std::io::{self, PipeWriter};

/// Whether the system can lend memory to a pipe.
pub(super) const AVAILABLE: bool = cfg!(target_os = "linux");

/// Lends some of the bytes to the pipe and returns how many. The reader sees the bytes as they are when it reads.
#[cfg(target_os = "linux")]
pub(super) fn lend(pipe: &PipeWriter, bytes: &[u8]) -> io::Result<usize> {
    use rustix::pipe::{IoSliceRaw, SpliceFlags, vmsplice};
    // SAFETY: without SPLICE_F_GIFT the kernel only reads the memory, and keeps the pages until the reader has taken
    // them, even if they are unmapped. That the bytes do not change before is a matter of correct pictures, not of
    // memory safety; `WriteEnd::lend` asks its caller for it, and the sink holds its frames until then.
    let lent = unsafe { vmsplice(pipe, &[IoSliceRaw::from_slice(bytes)], SpliceFlags::NONBLOCK) };
    Ok(lent?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lend(_: &PipeWriter, _: &[u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
