//! Handles Ctrl-C, SIGTERM and SIGHUP as requests to end, and keeps SIGXFSZ from ending the program.
//!
//! Before the first pipeline is ready, a request restores the terminal and exits at once. Afterwards, the first request
//! stops the pipeline, which finishes its files. If that pipeline has already ended, the first request stops the next
//! pipeline, if there is one. The second request exits at once.
//!
//! If SIGHUP was ignored when the program started (`nohup`), the signal stays ignored.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use vramp::runtime::Stopper;

use crate::failure::CliError;
use crate::screen;

/// The exit code that shells use for an interrupted program.
const EXIT_CODE: u8 = 130;

/// Handles requests to end for as long as the program lives.
#[derive(Clone)]
pub(crate) struct Interrupts {
    state: Arc<Mutex<InterruptState>>,
}

#[derive(Default)]
struct InterruptState {
    requested: bool,
    running: Option<Stopper>,
}

impl Interrupts {
    /// Installs the signal handler. Call this function once per program.
    pub(crate) fn listen() -> Result<Interrupts, CliError> {
        let interrupts = Interrupts { state: Arc::default() };
        let heard = interrupts.clone();
        on_request(move || heard.request())?;
        Ok(interrupts)
    }

    /// From now on, the first request stops this pipeline. If there was a request before, stops the pipeline now.
    pub(crate) fn stop_instead(&self, stopper: Stopper) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.requested {
            stopper.stop();
        }
        state.running = Some(stopper);
    }

    pub(crate) fn requested(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).requested
    }

    /// Handles a request: stops the pipeline if there is one and this is the first request, otherwise exits at once.
    pub(crate) fn request(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.running {
            Some(stopper) if !state.requested => stopper.stop(),
            _ => {
                screen::restore();
                vramp::runtime::leave_at_once(EXIT_CODE)
            }
        }
        state.requested = true;
    }
}

/// From now on, calls `act` for every request to end. Call this function once per program.
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

/// Makes a write beyond the file size limit fail with an error, like a write to a full disk. By default the system ends
/// the program with SIGXFSZ, and no file is finished.
#[cfg(unix)]
pub(crate) fn keep_large_files_from_ending_it() {
    // The flag is never read. If registering it fails, the system still ends the program.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Whether a signal was ignored when this program started. Without unsafe code, a program can find this out only on
/// Linux. On other systems the result is false.
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
