//! How the program ends when it does not end well.
//!
//! Owns the exit codes and the one place where an error is printed.
//! Does not word errors: they come worded.
//!
//! Always: a failure is reported once, here; a reader that went away is no failure.

use std::ops::Range;
use std::process::ExitCode;

use vramp::Error;
use vramp::handlers::files::Clash;
use vramp::plan::{Mistakes, NoPlan, SourceText};
use vramp::runtime::PrepareError;
use vramp::verify::VerifyError;

use crate::page;

/// Why a command did not do what was asked.
pub(crate) enum Failure {
    /// Something failed: a file, a disk, a handler.
    Failed(anyhow::Error),
    /// The command line is wrong.
    Wrong(anyhow::Error),
    /// The pipeline is wrong.
    Mistakes(Mistakes),
    /// The graph cannot be planned, or not on this machine.
    NoPlan(anyhow::Error),
    /// Frames needed more than they may.
    Budget(Vec<String>),
    /// What should be equal is not.
    Different(Vec<String>),
    /// Somebody ended it.
    Interrupted,
    /// Whoever read standard output has gone.
    ReaderGone,
    /// One of these, about the handler of this name.
    Of(Box<Failure>, String),
    /// One of these, and where in the pipeline that handler stands.
    At(Box<Failure>, SourceText, Range<usize>),
}

impl Failure {
    /// Prints it and says the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Failure::Failed(_) | Failure::Wrong(_) | Failure::NoPlan(_) => {
                error_line(&self.words().unwrap_or_default());
            }
            Failure::Mistakes(mistakes) => page::words(&mistakes.render(page::colour_on_stderr())),
            Failure::Budget(all) | Failure::Different(all) => all.iter().for_each(|words| error_line(words)),
            Failure::Interrupted | Failure::ReaderGone => {}
            Failure::Of(why, _) => {
                why.report();
            }
            Failure::At(why, source, place) => {
                why.report();
                page::words(&source.show(place, "from here", page::colour_on_stderr()));
            }
        }
        ExitCode::from(self.code())
    }

    /// Says which handler it is about, where it is about one.
    #[must_use]
    pub(crate) fn of(self, handler: Option<&str>) -> Failure {
        match handler {
            Some(handler) => Failure::Of(Box::new(self), handler.to_owned()),
            None => self,
        }
    }

    /// Its words, where they are an error's.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            Failure::Failed(error) | Failure::Wrong(error) | Failure::NoPlan(error) => Some(format!("{error:#}")),
            Failure::Of(why, _) | Failure::At(why, ..) => why.words(),
            _ => None,
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::ReaderGone => 0,
            Failure::Failed(_) => 1,
            Failure::Wrong(_) | Failure::Mistakes(_) => 2,
            Failure::NoPlan(_) => 3,
            Failure::Budget(_) => 4,
            Failure::Different(_) => 5,
            Failure::Interrupted => 130,
            Failure::Of(why, _) | Failure::At(why, ..) => why.code(),
        }
    }
}

impl From<NoPlan> for Failure {
    fn from(why: NoPlan) -> Failure {
        let handler = why.handler().map(str::to_owned);
        let failure = match why {
            // A name that does not exist is a slip on the command line, not a property of the graph.
            NoPlan::UnknownPin { .. } => Failure::Wrong(why.into()),
            _ => Failure::NoPlan(why.into()),
        };
        failure.of(handler.as_deref())
    }
}

impl From<PrepareError> for Failure {
    fn from(why: PrepareError) -> Failure {
        let handler = why.handler().map(str::to_owned);
        let failure = match why {
            PrepareError::NotBuilt { .. } | PrepareError::NoDevice { .. } => Failure::NoPlan(why.into()),
            _ => Failure::Failed(chainless(&why)),
        };
        failure.of(handler.as_deref())
    }
}

impl From<Clash> for Failure {
    fn from(clash: Clash) -> Failure {
        let handler = clash.at.as_ref().map(|(handler, _)| handler.clone());
        Failure::Wrong(clash.into()).of(handler.as_deref())
    }
}

impl From<Error> for Failure {
    fn from(why: Error) -> Failure {
        match why {
            Error::Files(clash) => clash.into(),
            Error::NoPlan(why) => why.into(),
            Error::NoDevice(why) => Failure::NoPlan(why.into()),
            Error::Prepare(why) => why.into(),
            Error::Mistakes(mistakes) => Failure::Mistakes(mistakes),
            Error::Entry(_) => Failure::Wrong(why.into()),
            Error::Sources(_) | Error::Run(_) | Error::HasRun | Error::HasBegun => {
                Failure::Failed(chainless(&why)).of(why.handler())
            }
        }
    }
}

impl From<VerifyError> for Failure {
    fn from(why: VerifyError) -> Failure {
        match why {
            VerifyError::Pipeline(why) => why.into(),
            _ => Failure::Failed(chainless(&why)),
        }
    }
}

/// An error whose words already hold those of its causes.
pub(crate) fn chainless(error: &impl std::error::Error) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

fn error_line(words: &str) {
    let head = if page::colour_on_stderr() { "\x1b[1;31merror\x1b[0m" } else { "error" };
    page::words(&format!("{head}: {words}"));
}
