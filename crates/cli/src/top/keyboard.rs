//! Waits for keys of the terminal.
//!
//! If the terminal is gone, waiting fails at once. Crossterm alone would then try to read from the terminal forever.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};

#[cfg(unix)]
use std::{fs::File, io::IsTerminal as _};

pub(super) struct Keyboard {
    /// The terminal of the process, if standard input is not a terminal.
    #[cfg(unix)]
    terminal: Option<File>,
    /// Whether crossterm may have buffered further events, which polling the file descriptor would miss.
    has_more: bool,
}

impl Keyboard {
    /// Opens the terminal that crossterm also reads: standard input, or else the terminal of the process.
    pub(super) fn find() -> io::Result<Keyboard> {
        #[cfg(unix)]
        {
            let terminal = if io::stdin().is_terminal() { None } else { Some(File::open("/dev/tty")?) };
            Ok(Keyboard { terminal, has_more: false })
        }
        #[cfg(not(unix))]
        Ok(Keyboard { has_more: false })
    }

    /// The next event; `None` if no event arrives within this time.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<Option<Event>> {
        #[cfg(unix)]
        let longest = {
            if !self.has_more && !self.is_there_something(longest)? {
                return Ok(None);
            }
            Duration::ZERO
        };
        self.has_more = event::poll(longest)?;
        if self.has_more { event::read().map(Some) } else { Ok(None) }
    }

    #[cfg(unix)]
    fn is_there_something(&self, longest: Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let stdin = io::stdin();
        let mut polled = match &self.terminal {
            Some(terminal) => PollFd::new(terminal, PollFlags::IN),
            None => PollFd::new(&stdin, PollFlags::IN),
        };
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(std::slice::from_mut(&mut polled), Some(&longest)) {
            // Interrupted by a signal, such as a window resize.
            Err(rustix::io::Errno::INTR) => return Ok(false),
            found => found?,
        };
        if polled.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the terminal is gone"));
        }
        Ok(polled.revents().contains(PollFlags::IN))
    }
}
