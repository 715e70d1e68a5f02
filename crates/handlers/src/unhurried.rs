//! Writing to streams that at times accept no bytes.
//!
//! Another program can make a shared stream non-blocking, so that a write fails with `WouldBlock` instead of waiting.
//! [`Unhurried`] waits until the stream accepts bytes. The wait has no time limit: if the reader is gone, the next
//! write fails, and a second Ctrl-C ends the program. Every byte is written once, in order, and on Unix `WouldBlock`
//! never reaches the caller.

use std::io::{self, Write};
#[cfg(unix)]
use std::os::fd::AsFd;

/// A stream whose writes wait until the stream accepts the bytes.
#[derive(Debug)]
pub struct Unhurried<W>(pub W);

#[cfg(unix)]
impl<W: Write + AsFd> Unhurried<W> {
    fn patiently<R>(&mut self, mut act: impl FnMut(&mut W) -> io::Result<R>) -> io::Result<R> {
        use rustix::event::{PollFd, PollFlags, poll};
        loop {
            match act(&mut self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            // A stream whose other end is closed counts as ready too; the next write then fails.
            match poll(&mut [PollFd::new(&self.0, PollFlags::OUT)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(unix)]
impl<W: Write + AsFd> Write for Unhurried<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.patiently(W::flush)
    }
}

#[cfg(not(unix))]
impl<W: Write> Write for Unhurried<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_full_pipe_that_does_not_block_is_waited_for_and_loses_nothing() {
        let (mut read, write) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&write, true).unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
        let expected = sent.clone();
        let writing = std::thread::spawn(move || {
            Unhurried(write).write_all(&sent).unwrap();
        });
        let mut got = Vec::new();
        read.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert!(got == expected);
    }

    #[test]
    fn a_reader_that_has_gone_is_an_error() {
        let (read, write) = io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&write, true).unwrap();
        let mut to = Unhurried(write);
        let writing = std::thread::spawn(move || to.write_all(&vec![0; 1_000_000]).unwrap_err());
        drop(read);
        assert_eq!(writing.join().unwrap().kind(), io::ErrorKind::BrokenPipe);
    }
}
