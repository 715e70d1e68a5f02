//! The terminal as a whole screen, and giving it back.
//!
//! Owns what has to be undone before the program ends or says something: the other screen, keys without echo, a hidden
//! cursor.
//! Does not draw.
//!
//! Always: it is given back once, whoever comes first: the end of the view, a panic, a second Ctrl-C.

use std::io::{self, Stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use crate::failure::CliError;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The screen, until it is dropped.
pub(crate) struct Screen {
    /// Not dropped: that writes to standard error where the terminal has gone, and panics where that has gone as well.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    /// Takes the terminal on standard output.
    pub(crate) fn take() -> Result<Screen, CliError> {
        let taken = || {
            enable_raw_mode()?;
            TAKEN.store(true, Ordering::Relaxed);
            execute!(io::stdout(), EnterAlternateScreen)?;
            Terminal::new(CrosstermBackend::new(io::stdout()))
        };
        let terminal = taken().inspect_err(|_| give_back()).context("the terminal cannot show a view");
        Ok(Screen { terminal: ManuallyDrop::new(terminal.map_err(CliError::Failed)?) })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal what it was, where anything of this program has changed it.
pub(crate) fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        // A terminal that has gone needs nothing back.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
    vramp::handlers::sink::terminal::restore();
}
