//! Puts the terminal into full-screen mode, and restores the terminal.
//!
//! Restoring leaves the alternate screen, turns raw mode off and shows the cursor. The terminal is restored once,
//! before any message is printed: when the view ends, after a panic, or after a second Ctrl-C.

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

/// The terminal in full-screen mode. Dropping a `TerminalScreen` restores the terminal.
pub(crate) struct TerminalScreen {
    /// Never dropped: dropping a `Terminal` whose terminal is gone writes to standard error, and panics if standard
    /// error is gone too.
    pub(crate) terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl TerminalScreen {
    pub(crate) fn take() -> Result<TerminalScreen, CliError> {
        let taken = || {
            enable_raw_mode()?;
            TAKEN.store(true, Ordering::Relaxed);
            execute!(io::stdout(), EnterAlternateScreen)?;
            Terminal::new(CrosstermBackend::new(io::stdout()))
        };
        let terminal = taken().inspect_err(|_| restore()).context("the terminal cannot show the view");
        Ok(TerminalScreen { terminal: ManuallyDrop::new(terminal.map_err(CliError::Failed)?) })
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal if this program has changed it.
pub(crate) fn restore() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        // A terminal that is gone needs no restoring.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
    vramp::handlers::sink::terminal::restore();
}
