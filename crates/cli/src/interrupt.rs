//! Ctrl-C, and other signals that the program does not leave to the system.
//!
//! Owns what the first and the second request to end do.
//! Does not finish anything itself: the pipeline does when it is stopped.
//!
//! Always: if nothing runs, and at the second time, the program ends at once, with the terminal as it was; a SIGHUP that
//! was ignored when the program started (`nohup`) stays ignored.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use vramp::runtime::Stopper;

use crate::failure::CliError;
use crate::screen;

/// What a shell calls interrupted.
const EXIT_CODE: i32 = 130;

/// Listens for as long as the program lives.
#[derive(Clone)]
pub(crate) struct Interrupts {
    state: Arc<Mutex<InterruptState>>,
}

#[derive(Default)]
struct InterruptState {
    asked: bool,
    running: Option<Stopper>,
}

impl Interrupts {
    /// Begins to listen; once in a program.
    pub(crate) fn listen() -> Result<Interrupts, CliError> {
        let interrupts = Interrupts { state: Arc::default() };
        let heard = interrupts.clone();
        on_request(move || heard.ask())?;
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

/// Calls this for every Ctrl-C and every request to end; once in a program.
pub(crate) fn on_request(act: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    listen(act).context("cannot listen for Ctrl-C").map_err(CliError::Failed)
}

#[cfg(not(unix))]
fn listen(act: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    Ok(ctrlc::set_handler(act)?)
}

#[cfg(unix)]
fn listen(mut act: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut wanted = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            act();
        }
    })?;
    Ok(())
}

/// Makes a file that reaches the limit on its size an error of the write, like a full disk: unasked, the system ends the
/// program with SIGXFSZ, and nothing is finished.
#[cfg(unix)]
pub(crate) fn keep_large_files_from_ending_it() {
    // What it is set to does not matter. If this fails, the system does what it did before.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Whether a signal was ignored when this program was started. Only Linux tells without being asked in unsafe code.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(unix)]
fn ignored_in(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert_eq!(ignored_in("Name:\tvramp\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), Some(0x1001));
        assert_eq!(ignored_in("Name:\tvramp\n"), None);
        assert_eq!(ignored_in("SigIgn:\tx\n"), None);
    }
}
