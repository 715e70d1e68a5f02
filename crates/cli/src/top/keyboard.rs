//! The keyboard of the terminal, as long as it is there.
//!
//! Owns the waiting for keys.
//! Does not know what they mean.
//!
//! Always: a terminal that has gone is an error at once. Crossterm would read its end again and again, for ever.

use std::io;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};

#[cfg(unix)]
use std::{fs::File, io::IsTerminal as _};

/// Where keys come from.
pub(super) struct Keyboard {
    /// The terminal itself, where standard input is something else.
    #[cfg(unix)]
    terminal: Option<File>,
    /// Whether crossterm may have read more than it has told: then nothing is left to be seen from outside.
    has_more: bool,
}

impl Keyboard {
    /// The one that crossterm reads as well: that of standard input, or else of the process.
    pub(super) fn find() -> io::Result<Keyboard> {
        #[cfg(unix)]
        {
            let terminal = if io::stdin().is_terminal() { None } else { Some(File::open("/dev/tty")?) };
            Ok(Keyboard { terminal, has_more: false })
        }
        #[cfg(not(unix))]
        Ok(Keyboard { has_more: false })
    }

    /// What comes within this time.
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
        let mut asked = match &self.terminal {
            Some(terminal) => PollFd::new(terminal, PollFlags::IN),
            None => PollFd::new(&stdin, PollFlags::IN),
        };
        let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
        match poll(std::slice::from_mut(&mut asked), Some(&longest)) {
            // A signal, such as that of a resized window.
            Err(rustix::io::Errno::INTR) => return Ok(false),
            found => found?,
        };
        if asked.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "it has gone"));
        }
        Ok(asked.revents().contains(PollFlags::IN))
    }
}
