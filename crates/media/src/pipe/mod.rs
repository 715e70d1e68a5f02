//! The pipes between vramp and ffmpeg: 1 MB, moved in few large steps.
//!
//! Linux pipes hold 64 KB by default, and two processes that fill and empty such a pipe wake each other for every few
//! pages. Here a pipe holds 1 MB if the system allows it, and a step waits until three quarters of the pipe, or the rest
//! of the frame, can be moved at once. Measured with 1080p frames of 3.1 MB, both ends together: 1.1 ms of processor
//! time per frame with 64 KB, 0.78 with 1 MB, 0.37 if frames are lent to the pipe instead of copied ([`splice`]).
//!
//! A step returns within [`TURN`], so that the caller can look whether the run has ended. On systems other than Unix a
//! step blocks until bytes can be moved.

mod splice;

use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write};
#[cfg(unix)]
use std::time::Duration;

/// The longest step.
#[cfg(unix)]
const TURN: Duration = Duration::from_millis(50);
/// The pause in which a pipe fills or empties further.
#[cfg(unix)]
const PAUSE: Duration = Duration::from_micros(200);
/// The most pauses of one step, so that slow streams are not delayed.
#[cfg(unix)]
const MOST_PAUSES: u32 = 8;
/// The requested capacity.
#[cfg(target_os = "linux")]
const WANTED_BYTES: usize = 1 << 20;
/// The capacity of a pipe if the system does not tell.
const USUAL_BYTES: usize = 64 << 10;

/// The end of a pipe from which vramp reads.
#[derive(Debug)]
pub(crate) struct ReadEnd {
    pipe: PipeReader,
    capacity: usize,
}

/// The end of a pipe into which vramp writes.
#[derive(Debug)]
pub(crate) struct WriteEnd {
    pipe: PipeWriter,
    capacity: usize,
    /// Whether frames are lent to the pipe.
    splices: bool,
    /// Bytes written so far.
    sent: u64,
}

impl ReadEnd {
    /// A pipe to read from, and the end for the process that writes.
    pub(crate) fn open() -> io::Result<(ReadEnd, PipeWriter)> {
        let (pipe, other) = io::pipe()?;
        let capacity = enlarged(&pipe);
        Ok((ReadEnd { pipe, capacity }, other))
    }

    /// Reads into these slices in order; `None` if nothing has arrived within a turn, `Some(0)` at the end. Waits for
    /// more than the first bytes if the pipe is filling and `wanted` bytes have not arrived.
    pub(crate) fn read(&mut self, into: &mut [IoSliceMut<'_>], wanted: usize) -> io::Result<Option<usize>> {
        #[cfg(unix)]
        {
            let goal = wanted.min(self.capacity / 4 * 3) as u64;
            if !wait(&self.pipe, rustix::event::PollFlags::IN)? {
                return Ok(None);
            }
            let mut before = 0;
            for _ in 0..MOST_PAUSES {
                let arrived = rustix::io::ioctl_fionread(&self.pipe)?;
                if arrived >= goal || arrived == before {
                    break;
                }
                before = arrived;
                std::thread::sleep(PAUSE);
            }
        }
        #[cfg(not(unix))]
        let _ = (wanted, self.capacity);
        match self.pipe.read_vectored(into) {
            Ok(read) => Ok(Some(read)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl WriteEnd {
    /// A pipe to write into, and the end for the process that reads.
    pub(crate) fn open() -> io::Result<(WriteEnd, PipeReader)> {
        let (other, pipe) = io::pipe()?;
        let capacity = enlarged(&pipe);
        #[cfg(unix)]
        rustix::io::ioctl_fionbio(&pipe, true)?;
        Ok((WriteEnd { pipe, capacity, splices: splice::AVAILABLE, sent: 0 }, other))
    }

    /// Writes some of the bytes; 0 if the pipe has no room within a turn.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.wait_for_room(bytes.len())? {
            return Ok(0);
        }
        let written = match (&self.pipe).write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written,
            Err(error) if is_pause(&error) => 0,
            Err(error) => return Err(error),
        };
        self.sent += written as u64;
        Ok(written)
    }

    /// Lends some of the bytes to the pipe; 0 if the pipe has no room within a turn. The bytes must not change before
    /// [`WriteEnd::consumed`] has passed them. Copies the bytes if the system cannot lend memory.
    pub(crate) fn lend(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.splices {
            return self.write(bytes);
        }
        if !self.wait_for_room(bytes.len())? {
            return Ok(0);
        }
        match splice::lend(&self.pipe, bytes) {
            Ok(lent) => {
                self.sent += lent as u64;
                Ok(lent)
            }
            Err(error) if is_pause(&error) => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
            Err(_) => {
                self.splices = false;
                self.write(bytes)
            }
        }
    }

    /// Bytes written so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// The number of bytes that the other process has taken.
    pub(crate) fn consumed(&self) -> u64 {
        #[cfg(unix)]
        if let Ok(waiting) = rustix::io::ioctl_fionread(&self.pipe) {
            return self.sent.saturating_sub(waiting);
        }
        self.sent
    }

    /// Waits until much of the pipe is empty or the bytes fit. Returns false if there is no room at all.
    fn wait_for_room(&self, bytes: usize) -> io::Result<bool> {
        #[cfg(unix)]
        {
            let goal = bytes.min(self.capacity / 4 * 3) as u64;
            if !wait(&self.pipe, rustix::event::PollFlags::OUT)? {
                return Ok(false);
            }
            let mut before = u64::MAX;
            for _ in 0..MOST_PAUSES {
                let waiting = rustix::io::ioctl_fionread(&self.pipe)?;
                if (self.capacity as u64).saturating_sub(waiting) >= goal || waiting == before {
                    break;
                }
                before = waiting;
                std::thread::sleep(PAUSE);
            }
        }
        #[cfg(not(unix))]
        let _ = (bytes, self.capacity);
        Ok(true)
    }
}

#[cfg(unix)]
fn wait(pipe: impl std::os::fd::AsFd, until: rustix::event::PollFlags) -> io::Result<bool> {
    use rustix::event::{PollFd, Timespec, poll};
    let turn = Timespec { tv_sec: 0, tv_nsec: TURN.subsec_nanos().into() };
    // A pipe whose other end is closed counts as ready.
    match poll(&mut [PollFd::new(&pipe, until)], Some(&turn)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Enlarges a pipe as far as the system allows, and returns its capacity.
#[cfg(target_os = "linux")]
fn enlarged(pipe: impl std::os::fd::AsFd) -> usize {
    let allowed = rustix::pipe::fcntl_setpipe_size(&pipe, WANTED_BYTES);
    allowed.or_else(|_| rustix::pipe::fcntl_getpipe_size(&pipe)).unwrap_or(USUAL_BYTES)
}

#[cfg(not(target_os = "linux"))]
fn enlarged<P>(_: &P) -> usize {
    USUAL_BYTES
}
