//! How the program ends when it does not end well.
//!
//! Owns the exit codes and the one place where an error is printed.
//! Does not word errors: they come worded.
//!
//! Always: a failure is reported once, here; a reader that went away is no failure.

use std::process::ExitCode;

use vramp::plan::{Mistakes, NoPlan};

use crate::page;

/// Why a command did not do what was asked.
pub(crate) enum Failure {
    /// Something outside failed: a file, a disk.
    Failed(anyhow::Error),
    /// The command line is wrong.
    Wrong(anyhow::Error),
    /// The pipeline is wrong.
    Mistakes(Mistakes),
    /// The graph cannot be planned.
    NoPlan(NoPlan),
    /// Whoever read standard output has gone.
    ReaderGone,
}

impl Failure {
    /// Prints it and says the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Failed(error) | Failure::Wrong(error) => error_line(&format!("{error:#}")),
            Failure::Mistakes(mistakes) => page::words(&mistakes.render(page::colour_on_stderr())),
            Failure::NoPlan(why) => error_line(&why.to_string()),
            Failure::ReaderGone => {}
        }
        ExitCode::from(match self {
            Failure::ReaderGone => 0,
            Failure::Failed(_) => 1,
            Failure::Wrong(_) | Failure::Mistakes(_) => 2,
            Failure::NoPlan(_) => 3,
        })
    }
}

fn error_line(words: &str) {
    let head = if page::colour_on_stderr() { "\x1b[1;31merror\x1b[0m" } else { "error" };
    page::words(&format!("{head}: {words}"));
}
