//! The error of [`Pipeline`](crate::Pipeline), from text to run.
//!
//! Each part of vramp has its own error type with its own messages; most variants only wrap such an error.
//!
//! Invariant: `Debug` prints the same as `Display`, so that an error returned from `main` with `?` is readable.

use vramp_gpu::OpenError;
use vramp_handlers::app::{PullError, PushError};
use vramp_handlers::files::Clash;
use vramp_plan::catalog::{EntryError, ProbeError};
use vramp_plan::{CheckError, Mistakes, NoPlan, SourceText};
use vramp_runtime::{HandlerFailure, PrepareError, RunError};

/// Why a pipeline could not be built, or did not run to its end.
#[derive(thiserror::Error)]
pub enum Error {
    /// Every mistake in the text or the graph, each with its place in the text if the graph comes from text.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The graph is valid, but these sources could not be probed.
    #[error("{}", CheckError::Probe(.0.clone()))]
    Sources(Vec<(String, ProbeError)>),
    /// A handler could not be registered.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The run would overwrite a file that the run reads, or write one file twice.
    #[error(transparent)]
    Files(#[from] Clash),
    /// No plan satisfies the options.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    /// The plan needs a device, and no device could be opened.
    #[error(transparent)]
    NoDevice(#[from] OpenError),
    /// The engine could not be built from the plan.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("this pipeline has run already; to run it again, call `build` on its builder again")]
    HasRun,
    /// The pipeline has no app source or sink of this name.
    #[error("`{asked}` is not an app {what} of this pipeline; {}", ends(.what, .there))]
    NoEnd { asked: String, what: &'static str, there: Vec<String> },
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("this pipeline has been stepped; step it to its end and call `finish`, or build it again to run it")]
    HasBegun,
}

vramp_plan::debug_as_display!(Error);

fn ends(what: &str, there: &[String]) -> String {
    match there {
        [] => format!(
            "it has no app {what}: write `app` at the {} of a chain",
            if what == "source" { "start" } else { "end" }
        ),
        there => format!("its app {what}s: {}", there.join(", ")),
    }
}

impl From<HandlerFailure> for Error {
    fn from(failure: HandlerFailure) -> Error {
        Error::Run(RunError::Failed(failure))
    }
}

impl Error {
    /// The error of a check, with the text that the graph was read from.
    pub(crate) fn of_check(error: CheckError, source: Option<SourceText>) -> Error {
        match error {
            CheckError::Mistakes(list) => Error::Mistakes(Mistakes { source, list }),
            CheckError::Probe(failed) => Error::Sources(failed),
        }
    }

    /// The handler that the error is about, if any.
    pub fn handler(&self) -> Option<&str> {
        match self {
            Error::Sources(failed) => failed.first().map(|(handler, _)| handler.as_str()),
            Error::Prepare(error) => error.handler(),
            Error::Run(error) => error.handler(),
            _ => None,
        }
    }
}

/// The conversion does not know the pipeline's text, so messages of mistakes do not quote the text.
impl From<CheckError> for Error {
    fn from(error: CheckError) -> Error {
        Error::of_check(error, None)
    }
}
