//! Why a pipeline was not built, or did not run to its end.
//!
//! Owns the one error of [`Pipeline`](crate::Pipeline), from text to run.
//! Does not word problems: each part words its own.
//!
//! Invariants: `Debug` prints what `Display` prints, so that an error that leaves `main` by `?` can be read.

use vramp_gpu::OpenError;
use vramp_handlers::files::Clash;
use vramp_plan::catalog::{EntryError, ProbeError};
use vramp_plan::{CheckError, Mistakes, NoPlan, SourceText};
use vramp_runtime::{HandlerFailure, PrepareError, RunError};

/// Why a pipeline was not built, or did not run to its end.
#[derive(thiserror::Error)]
pub enum Error {
    /// The text or the graph is wrong: every mistake, with its place in the text if there is one.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The graph is right, but these sources could not be looked at.
    #[error("{}", CheckError::Probe(.0.clone()))]
    Sources(Vec<(String, ProbeError)>),
    /// A handler of one's own could not be registered.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The run would write over a file that it reads, or write one file twice.
    #[error(transparent)]
    Files(#[from] Clash),
    /// The graph cannot be planned as asked.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    /// The plan needs a device and none could be opened.
    #[error(transparent)]
    NoDevice(#[from] OpenError),
    /// The plan could not be made ready.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was run or finished before.
    #[error("this pipeline has run already; build it again from its builder to run it once more")]
    HasRun,
    /// It was stepped before.
    #[error("this pipeline has been stepped; step it to its end and call `finish`, or build it again to run it")]
    HasBegun,
}

vramp_plan::debug_as_display!(Error);

impl From<HandlerFailure> for Error {
    fn from(failure: HandlerFailure) -> Error {
        Error::Run(RunError::Failed(failure))
    }
}

impl Error {
    /// What is wrong with a graph, shown in the text that it was read from.
    pub(crate) fn of_check(error: CheckError, source: Option<SourceText>) -> Error {
        match error {
            CheckError::Mistakes(list) => Error::Mistakes(Mistakes { source, list }),
            CheckError::Probe(failed) => Error::Sources(failed),
        }
    }

    /// The handler that it is about, if it is about one.
    pub fn handler(&self) -> Option<&str> {
        match self {
            Error::Sources(failed) => failed.first().map(|(handler, _)| handler.as_str()),
            Error::Prepare(error) => error.handler(),
            Error::Run(error) => error.handler(),
            _ => None,
        }
    }
}

/// Without a source text, mistakes have no caret.
impl From<CheckError> for Error {
    fn from(error: CheckError) -> Error {
        Error::of_check(error, None)
    }
}
