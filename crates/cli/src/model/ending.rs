//! Ctrl-C during `vramp model run`.
//!
//! An inference cannot be interrupted in the middle, so a request ends the program at once. The only exception is the
//! time in which results are written: temporary files would stay behind, so the writer is asked to stop and removes them.
//! A second request ends the program at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::failure::CliError;
use crate::{interrupt, screen};

/// The exit code that shells use for an interrupted program.
const EXIT_CODE: u8 = 130;

#[derive(Clone, Default)]
pub(super) struct Ending {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    is_requested: bool,
    is_writing: bool,
}

impl Ending {
    /// Installs the signal handler. Call this function once per program.
    pub(super) fn listen() -> Result<Ending, CliError> {
        let ending = Ending::default();
        let heard = ending.clone();
        interrupt::on_request(move || heard.request())?;
        Ok(ending)
    }

    /// Calls `write`, which stops soon after [`Ending::is_requested`] is true, and removes what it has written by then.
    pub(super) fn while_writing<T>(&self, write: impl FnOnce() -> Result<T, CliError>) -> Result<T, CliError> {
        self.state().is_writing = true;
        let written = write();
        let mut state = self.state();
        state.is_writing = false;
        if state.is_requested { Err(CliError::Interrupted) } else { written }
    }

    pub(super) fn is_requested(&self) -> bool {
        self.state().is_requested
    }

    pub(super) fn request(&self) {
        // The lock is held while the program exits, so that no file is created meanwhile.
        let mut state = self.state();
        if state.is_requested || !state.is_writing {
            screen::restore();
            vramp::runtime::leave_at_once(EXIT_CODE);
        }
        state.is_requested = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
