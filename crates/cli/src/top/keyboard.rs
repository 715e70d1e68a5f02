//! Waits for keys of the terminal.
//!
//! If the terminal is gone, waiting fails at once. Crossterm alone would then try to read from the terminal forever.
//!
//! A key that follows a resize is not lost. Crossterm waits for both by edge-triggered events; if both are there, it
//! returns the resize and forgets the key until another key comes.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};

#[cfg(unix)]
use std::{fs::File, io::IsTerminal as _, os::fd::AsFd as _, os::fd::BorrowedFd};

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(unix)]
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

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
        {
            if !self.has_more && !self.is_there_something(longest)? {
                return Ok(None);
            }
            let had_more = self.has_more;
            self.has_more = event::poll(Duration::ZERO)?;
            if !self.has_more && !had_more {
                self.remind();
            }
        }
        #[cfg(not(unix))]
        {
            self.has_more = event::poll(longest)?;
        }
        if self.has_more { event::read().map(Some) } else { Ok(None) }
    }

    /// Makes the terminal announce again that there is something to read. Linux does so whenever the modes of a
    /// terminal are set, even to what they are.
    #[cfg(unix)]
    fn remind(&self) {
        // If this fails, crossterm reads the key together with the next one.
        let _ = self.with_terminal(|terminal| tcsetattr(terminal, OptionalActions::Now, &tcgetattr(terminal)?));
    }

    #[cfg(unix)]
    fn is_there_something(&self, longest: Duration) -> io::Result<bool> {
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        let events = self.with_terminal(|terminal| {
            let mut polled = PollFd::from_borrowed_fd(terminal, PollFlags::IN);
            poll(std::slice::from_mut(&mut polled), Some(&longest)).map(|_| polled.revents())
        });
        let events = match events {
            // Interrupted by a signal, such as a window resize.
            Err(rustix::io::Errno::INTR) => return Ok(false),
            events => events?,
        };
        if events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the terminal is gone"));
        }
        Ok(events.contains(PollFlags::IN))
    }

    #[cfg(unix)]
    fn with_terminal<T>(&self, read: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match &self.terminal {
            Some(terminal) => read(terminal.as_fd()),
            None => read(io::stdin().as_fd()),
        }
    }
}
