//! Writing to the two streams.
//!
//! Owns how results and words leave the program, and when they are coloured.
//! Does not know what they say.
//!
//! Always: a closed stream ends the program quietly; nothing here panics.

use std::io::{self, ErrorKind, IsTerminal, Write};

use vramp::handlers::Unhurried;

use crate::failure::CliError;

/// Writes a result to standard output.
pub(crate) fn result(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = Unhurried(io::stdout().lock());
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::ReaderGone),
        Err(error) => Err(CliError::Failed(anyhow::Error::new(error).context("standard output"))),
    }
}

/// Writes words for people to standard error. There is nobody left to tell if that fails.
pub(crate) fn words(text: &str) {
    let _ = writeln!(Unhurried(io::stderr().lock()), "{}", text.trim_end());
}

/// Writes a warning.
pub(crate) fn warning(text: &str) {
    let head = if colour_on_stderr() { "\x1b[1;33mwarning\x1b[0m" } else { "warning" };
    words(&format!("{head}: {text}"));
}

/// Writes a note: something worth knowing that is not a problem.
pub(crate) fn note(text: &str) {
    words(&format!("note: {text}"));
}

/// Whether results may be coloured.
pub(crate) fn colour_on_stdout() -> bool {
    wants_colour() && io::stdout().is_terminal()
}

/// Whether words may be coloured.
pub(crate) fn colour_on_stderr() -> bool {
    wants_colour() && io::stderr().is_terminal()
}

/// Whether somebody watches standard error who can be shown a line that changes.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}
