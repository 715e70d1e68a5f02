//! Output to standard output and standard error, with colours on a terminal. If the reader of standard output is gone,
//! the program ends without a message.

use std::io::{self, ErrorKind, IsTerminal, Write};

use vramp::handlers::Unhurried;

use crate::failure::CliError;

pub(crate) fn result(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = Unhurried(io::stdout().lock());
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::ReaderGone),
        Err(error) => Err(CliError::Failed(anyhow::Error::new(error).context("standard output"))),
    }
}

/// Writes a message to standard error. A failure is ignored, since there is no other place to report it.
pub(crate) fn words(text: &str) {
    let _ = writeln!(Unhurried(io::stderr().lock()), "{}", text.trim_end());
}

pub(crate) fn warning(text: &str) {
    let head = if colour_on_stderr() { "\x1b[1;33mwarning\x1b[0m" } else { "warning" };
    words(&format!("{head}: {text}"));
}

/// Writes a note: useful to know, but not a problem.
pub(crate) fn note(text: &str) {
    words(&format!("note: {text}"));
}

pub(crate) fn colour_on_stdout() -> bool {
    wants_colour() && io::stdout().is_terminal()
}

pub(crate) fn colour_on_stderr() -> bool {
    wants_colour() && io::stderr().is_terminal()
}

/// Whether standard error can show a live line.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}

fn wants_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && std::env::var_os("TERM").is_none_or(|v| v != "dumb")
}
