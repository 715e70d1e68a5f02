//! Reading, in turns of bounded duration, from streams that may stay silent, such as a pipe without a writer.
//!
//! A turn returns within [`TURN`]: with bytes, with the end of the stream, or with `WouldBlock`. No bytes are lost.
//! Between two turns the caller decides whether to continue: `raw` and `y4m` check `Call::is_ending`, since a thread
//! that waits in a read cannot be ended. On systems other than Unix, a read blocks until there are bytes.
//!
//! The module also holds the buffer that all readers of standard input share.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::{Mutex, OnceLock};
#[cfg(unix)]
use std::{os::fd::AsFd, time::Duration};

/// Duration of a turn: short enough for a run to end soon after Ctrl-C, and long enough that an idle pipe causes only
/// twenty wake-ups a second.
#[cfg(unix)]
const TURN: Duration = Duration::from_millis(50);
/// Size of the buffer for reading ahead. Planes larger than this buffer are read directly into the frame. Several short
/// rows and frame lines share one read.
const BUFFER_BYTES: usize = 256 << 10;

#[cfg(unix)]
type StandardInput = File;
#[cfg(not(unix))]
type StandardInput = io::Stdin;

#[derive(Debug)]
pub(crate) struct Patient<R> {
    from: R,
    /// Whether a read may block. A read from a regular file does not block.
    waits: bool,
}

impl Patient<File> {
    /// Opens a file with a buffer. Opening does not block, not even on a named pipe without a writer.
    pub(crate) fn open(path: &str) -> io::Result<BufReader<Patient<File>>> {
        let mut options = File::options();
        #[cfg(unix)]
        if !std::fs::metadata(path)?.is_file() {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        }
        let from = options.read(true).open(path)?;
        let waits = !from.metadata()?.is_file();
        Ok(BufReader::with_capacity(BUFFER_BYTES, Patient { from, waits }))
    }
}

/// Standard input, shared by all its readers, so that bytes that one reader has read ahead go to the next reader.
pub(crate) type SharedStandardInput = Mutex<BufReader<Patient<StandardInput>>>;

pub(crate) fn standard_input() -> io::Result<&'static SharedStandardInput> {
    static INPUT: OnceLock<SharedStandardInput> = OnceLock::new();
    if let Some(input) = INPUT.get() {
        return Ok(input);
    }
    #[cfg(unix)]
    let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    #[cfg(not(unix))]
    let from = io::stdin();
    let reader = BufReader::with_capacity(BUFFER_BYTES, Patient { from, waits: true });
    Ok(INPUT.get_or_init(|| Mutex::new(reader)))
}

#[cfg(unix)]
impl<R: Read + AsFd> Read for Patient<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if self.waits {
            let turn = Timespec { tv_sec: 0, tv_nsec: TURN.subsec_nanos().into() };
            // A stream whose other end is closed counts as ready too; a read then returns the end of the stream.
            if poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&turn))? == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.from.read(into)
    }
}

#[cfg(not(unix))]
impl<R: Read> Read for Patient<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let _ = self.waits;
        self.from.read(into)
    }
}

/// Whether an error is only a pause: a signal came, or a turn ended.
pub(crate) fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::{BufRead, Write};

    use super::*;

    #[test]
    fn a_named_pipe_without_a_writer_is_opened_without_blocking() {
        let path = std::env::temp_dir().join(format!("vramp-fifo-{}", std::process::id()));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR.union(rustix::fs::Mode::WUSR),
            0,
        )
        .unwrap();
        let mut reader = Patient::open(path.to_str().unwrap()).unwrap();
        assert!(is_pause(&reader.fill_buf().unwrap_err()));
        let mut write = File::options().write(true).open(&path).unwrap();
        write.write_all(b"ab").unwrap();
        assert_eq!(reader.fill_buf().unwrap(), b"ab");
        reader.consume(2);
        assert!(is_pause(&reader.fill_buf().unwrap_err()), "a writer is there and says nothing");
        drop(write);
        assert_eq!(reader.fill_buf().unwrap(), b"");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_silent_pipe_comes_back_and_loses_nothing() {
        let (read, mut write) = io::pipe().unwrap();
        let mut reader = BufReader::new(Patient { from: read, waits: true });
        assert!(is_pause(&reader.fill_buf().unwrap_err()));
        write.write_all(b"abc").unwrap();
        let mut line = Vec::new();
        assert!(is_pause(&reader.read_until(b'\n', &mut line).unwrap_err()));
        assert_eq!(line, b"abc");
        write.write_all(b"d\n").unwrap();
        drop(write);
        reader.read_until(b'\n', &mut line).unwrap();
        assert_eq!(line, b"abcd\n");
        assert_eq!(reader.fill_buf().unwrap(), b"", "an end is an end, not a pause");
    }
}
