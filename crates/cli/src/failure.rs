//! [`CliError`]: why a command failed, with the exit code of the program.
//!
//! Every failure is printed once, by [`CliError::report`]. A reader that closes standard output is not a failure.

use std::ops::Range;

use vramp::Error;
use vramp::handlers::files::Clash;
use vramp::plan::{Mistakes, NoPlan, SourceText};
use vramp::runtime::PrepareError;
use vramp::verify::VerifyError;

use crate::page;

pub(crate) enum CliError {
    /// A file, a disk or a handler failed.
    Failed(anyhow::Error),
    /// The command line is invalid.
    Wrong(anyhow::Error),
    /// The pipeline is invalid.
    Mistakes(Mistakes),
    /// The graph cannot be planned with these options or on this machine.
    NoPlan(anyhow::Error),
    /// A budget was exceeded or could not be checked, or a run left the GPU under `--require-gpu`. There is one line for
    /// each such limit.
    Budget(Vec<String>),
    /// A verification found differences. There is one line for each difference.
    Different(Vec<String>),
    /// Ended by Ctrl-C or a signal.
    Interrupted,
    /// The reader of standard output is gone.
    ReaderGone,
    /// An error about the handler of this name.
    Of(Box<CliError>, String),
    /// An error with the position of a handler or setting in the text of the pipeline.
    At(Box<CliError>, SourceText, Range<usize>),
}

impl CliError {
    /// Prints the error and returns the exit code.
    pub(crate) fn report(&self) -> u8 {
        match self {
            CliError::Failed(_) | CliError::Wrong(_) | CliError::NoPlan(_) => {
                error_line(&self.words().unwrap_or_default());
            }
            CliError::Mistakes(mistakes) => page::words(&mistakes.render(page::colour_on_stderr())),
            CliError::Budget(all) | CliError::Different(all) => all.iter().for_each(|words| error_line(words)),
            CliError::Interrupted | CliError::ReaderGone => {}
            CliError::Of(why, _) => {
                why.report();
            }
            CliError::At(why, source, place) => {
                why.report();
                page::words(&source.show(place, "from here", page::colour_on_stderr()));
            }
        }
        self.code()
    }

    /// Adds the name of the handler that the error is about, if there is such a handler.
    #[must_use]
    pub(crate) fn of(self, handler: Option<&str>) -> CliError {
        match handler {
            Some(handler) => CliError::Of(Box::new(self), handler.to_owned()),
            None => self,
        }
    }

    /// The text of the error, if it has a single text.
    pub(crate) fn words(&self) -> Option<String> {
        match self {
            CliError::Failed(error) | CliError::Wrong(error) | CliError::NoPlan(error) => Some(format!("{error:#}")),
            CliError::Of(why, _) | CliError::At(why, ..) => why.words(),
            _ => None,
        }
    }

    /// All texts of the error.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            CliError::Budget(all) | CliError::Different(all) => all.clone(),
            CliError::Interrupted => vec!["the run was interrupted".to_owned()],
            CliError::Of(why, _) | CliError::At(why, ..) => why.lines(),
            CliError::Mistakes(mistakes) => vec![mistakes.render(false)],
            _ => self.words().into_iter().collect(),
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            CliError::ReaderGone => 0,
            CliError::Failed(_) => 1,
            CliError::Wrong(_) | CliError::Mistakes(_) => 2,
            CliError::NoPlan(_) => 3,
            CliError::Budget(_) => 4,
            CliError::Different(_) => 5,
            CliError::Interrupted => 130,
            CliError::Of(why, _) | CliError::At(why, ..) => why.code(),
        }
    }
}

impl From<NoPlan> for CliError {
    fn from(why: NoPlan) -> CliError {
        let handler = why.handler().map(str::to_owned);
        let failure = match why {
            // An unknown name is a typing error on the command line, not a property of the graph.
            NoPlan::UnknownPin { .. } => CliError::Wrong(why.into()),
            _ => CliError::NoPlan(why.into()),
        };
        failure.of(handler.as_deref())
    }
}

impl From<PrepareError> for CliError {
    fn from(why: PrepareError) -> CliError {
        let handler = why.handler().map(str::to_owned);
        let failure = match why {
            PrepareError::NotBuilt { .. } | PrepareError::NoDevice { .. } => CliError::NoPlan(why.into()),
            _ => CliError::Failed(chainless(&why)),
        };
        failure.of(handler.as_deref())
    }
}

impl From<Clash> for CliError {
    fn from(clash: Clash) -> CliError {
        let handler = clash.at.as_ref().map(|(handler, _)| handler.clone());
        CliError::Wrong(clash.into()).of(handler.as_deref())
    }
}

impl From<Error> for CliError {
    fn from(why: Error) -> CliError {
        match why {
            Error::Files(clash) => clash.into(),
            Error::NoPlan(why) => why.into(),
            Error::NoDevice(why) => CliError::NoPlan(why.into()),
            Error::Prepare(why) => why.into(),
            Error::Mistakes(mistakes) => CliError::Mistakes(mistakes),
            Error::Entry(_) => CliError::Wrong(why.into()),
            Error::Sources(_)
            | Error::Run(_)
            | Error::HasRun
            | Error::HasBegun
            | Error::NoEnd { .. }
            | Error::Push(_)
            | Error::Pull(_) => CliError::Failed(chainless(&why)).of(why.handler()),
        }
    }
}

impl From<VerifyError> for CliError {
    fn from(why: VerifyError) -> CliError {
        match why {
            VerifyError::Pipeline(why) => why.into(),
            _ => CliError::Failed(chainless(&why)),
        }
    }
}

/// Drops the source chain of an error whose message already contains its causes.
pub(crate) fn chainless(error: &impl std::error::Error) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

fn error_line(words: &str) {
    let head = if page::colour_on_stderr() { "\x1b[1;31merror\x1b[0m" } else { "error" };
    page::words(&format!("{head}: {words}"));
}
