//! Ctrl-C, and a request to end from the system.
//!
//! Owns what the first and the second of them do.
//! Does not finish anything itself: the pipeline does when it is stopped.
//!
//! Always: where nothing runs, and at the second time, the program ends at once, with the terminal as it was.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use vramp::runtime::Stopper;

use crate::failure::Failure;
use crate::screen;

/// What a shell calls interrupted.
const EXIT_CODE: i32 = 130;

/// Listens for as long as the program lives.
#[derive(Clone)]
pub(crate) struct Interrupts {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    asked: bool,
    running: Option<Stopper>,
}

impl Interrupts {
    /// Begins to listen; once in a program.
    pub(crate) fn listen() -> Result<Interrupts, Failure> {
        let interrupts = Interrupts { state: Arc::default() };
        let heard = interrupts.clone();
        let listening = ctrlc::set_handler(move || heard.ask());
        listening.context("cannot listen for Ctrl-C").map_err(Failure::Failed)?;
        Ok(interrupts)
    }

    /// Stops this from now on.
    pub(crate) fn stop_instead(&self, stopper: Stopper) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.asked {
            stopper.stop();
        }
        state.running = Some(stopper);
    }

    /// Whether somebody asked.
    pub(crate) fn were_there(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).asked
    }

    /// Somebody asks: the first time everything is stopped, the second time the program ends at once.
    pub(crate) fn ask(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.running {
            Some(stopper) if !state.asked => stopper.stop(),
            _ => {
                screen::give_back();
                std::process::exit(EXIT_CODE)
            }
        }
        state.asked = true;
    }
}
