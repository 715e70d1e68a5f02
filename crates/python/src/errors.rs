//! Errors as Python exceptions: one class per kind. The classes are in `vramp.errors`, written in Python, because some of
//! them have two bases.
//!
//! Invariant: a panic becomes an exception too ([`detached`], [`guarded`]).

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::marker::Ungil;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use vramp::handlers::app::{PullError, PushError};
use vramp::model::ModelError;
use vramp::plan::Mistakes;
use vramp::runtime::{HandlerError, HandlerFailure, RunError};
use vramp::tensor::{ErrorKind, StoreError, TensorError};

use crate::handler::failure::PythonFailure;
use crate::handler::keeping::keepers;

/// An exception of this class of `vramp.errors`.
pub(crate) fn raise(py: Python<'_>, class: &str, message: &str) -> PyErr {
    with_facts(py, class, message, |_| Ok(()))
}

/// An exception with attributes.
pub(crate) fn with_facts(
    py: Python<'_>,
    class: &str,
    message: &str,
    facts: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyErr {
    let made = || -> PyResult<PyErr> {
        let error = classes(py)?.getattr(class)?.call1((message,))?;
        facts(&error)?;
        Ok(PyErr::from_value(error))
    };
    made().unwrap_or_else(|_| PyRuntimeError::new_err(message.to_owned()))
}

fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE.get_or_try_init(py, || py.import("vramp.errors").map(Bound::unbind)).map(|module| module.bind(py))
}

/// Runs work without the GIL. A panic becomes a `PanicError`.
pub(crate) fn detached<T: Ungil + Send>(py: Python<'_>, work: impl FnOnce() -> T + Ungil + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|panic| panicked(py, &*panic))
}

/// Runs work. A panic becomes a `PanicError`.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panicked(py, &*panic))
}

fn panicked(py: Python<'_>, panic: &(dyn std::any::Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message");
    raise(py, "PanicError", &format!("vramp panicked: {text}"))
}

/// The exception of a pipeline's error.
pub(crate) fn of_pipeline(py: Python<'_>, error: vramp::Error) -> PyErr {
    let message = error.to_string();
    let handler = error.handler().map(str::to_owned);
    let named = |class: &str| with_facts(py, class, &message, |made| made.setattr("handler", handler.as_deref()));
    match error {
        vramp::Error::Mistakes(mistakes) => of_mistakes(py, &mistakes),
        vramp::Error::Sources(_) => named("SourceError"),
        vramp::Error::Entry(_) => raise(py, "HandlerError", &message),
        vramp::Error::Files(_) => raise(py, "FilesError", &message),
        vramp::Error::NoPlan(_) => raise(py, "PlanError", &message),
        vramp::Error::NoDevice(_) => raise(py, "DeviceError", &message),
        vramp::Error::Prepare(error) => {
            let cause = prepare_cause(py, &error);
            with_cause(py, named("PrepareError"), cause)
        }
        vramp::Error::Run(error) => of_run(py, &error),
        vramp::Error::HasRun | vramp::Error::HasBegun | vramp::Error::NoEnd { .. } => raise(py, "StateError", &message),
        vramp::Error::Push(error) => of_push(py, &error),
        vramp::Error::Pull(error) => of_pull(py, &error),
    }
}

fn of_mistakes(py: Python<'_>, mistakes: &Mistakes) -> PyErr {
    let text = mistakes.source.as_ref().map(|source| &*source.text);
    with_facts(py, "MistakeError", &mistakes.render(false), |error| {
        let class = classes(py)?.getattr("Mistake")?;
        let list = mistakes.list.iter().map(|mistake| {
            let place = text.zip(mistake.span.as_ref()).map(|(text, span)| Place::of(text, span));
            let Place { line, column, start, end } = place.unwrap_or_default();
            class.call1((&mistake.title, &mistake.expected, mistake.help.as_deref(), line, column, start, end))
        });
        error.setattr("mistakes", list.collect::<PyResult<Vec<_>>>()?)?;
        error.setattr("text", text)
    })
}

/// A place in a text, in characters.
#[derive(Default)]
struct Place {
    line: Option<usize>,
    column: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Place {
        let before = |at: usize| text.get(..at).unwrap_or(text);
        let (start, end) = (before(span.start), before(span.end));
        let line = start.rsplit('\n').next().unwrap_or_default();
        Place {
            line: Some(start.matches('\n').count() + 1),
            column: Some(line.chars().count() + 1),
            start: Some(start.chars().count()),
            end: Some(end.chars().count()),
        }
    }
}

pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    let (frame, cause) = match error {
        RunError::Failed(HandlerFailure { frame, error, .. }) => (Some(*frame), cause_of(py, error)),
        RunError::Unresponsive { .. } => (None, None),
    };
    let made = with_facts(py, "RunError", &words_of(error), |made| {
        made.setattr("handler", error.handler())?;
        made.setattr("frame", frame)
    });
    with_cause(py, made, cause)
}

/// The message, which also says which handlers in Python keep frames if there is no memory left.
fn words_of(error: &RunError) -> String {
    let text = error.to_string();
    let RunError::Failed(HandlerFailure { error: HandlerError::OutOfMemory(_), .. }) = error else { return text };
    let keepers = keepers().into_iter().map(|(name, frames)| format!("{name} keeps {frames} frames"));
    let keepers = keepers.collect::<Vec<_>>().join(", ");
    if keepers.is_empty() {
        text
    } else {
        format!("{text}\nhelp: in Python, {keepers}; keep copies of their arrays instead")
    }
}

/// The exception of the Python handler that failed.
fn cause_of(py: Python<'_>, error: &HandlerError) -> Option<PyErr> {
    let (HandlerError::Failed(inner) | HandlerError::Hopeless(inner)) = error else { return None };
    inner.downcast_ref::<PythonFailure>().map(|failure| failure.exception(py))
}

fn prepare_cause(py: Python<'_>, error: &vramp::runtime::PrepareError) -> Option<PyErr> {
    match error {
        vramp::runtime::PrepareError::Make { error, .. } => cause_of(py, error),
        _ => None,
    }
}

/// The error with its cause. Ctrl-C and `sys.exit` in a handler stay what they are.
fn with_cause(py: Python<'_>, error: PyErr, cause: Option<PyErr>) -> PyErr {
    if let Some(end) = cause.as_ref().filter(|cause| !cause.is_instance_of::<PyException>(py)) {
        return end.clone_ref(py);
    }
    if cause.is_some() {
        error.set_cause(py, cause);
    }
    error
}

pub(crate) fn of_push(py: Python<'_>, error: &PushError) -> PyErr {
    let class = match error {
        PushError::Timeout { .. } | PushError::WouldBlock { .. } => "Timeout",
        PushError::NotStarted { .. } | PushError::Closed { .. } | PushError::Ended { .. } => "StateError",
        _ => "PushError",
    };
    raise(py, class, &error.to_string())
}

pub(crate) fn of_pull(py: Python<'_>, error: &PullError) -> PyErr {
    let class = match error {
        PullError::Timeout { .. } | PullError::WouldBlock { .. } => "Timeout",
        PullError::NotStarted { .. } => "StateError",
        PullError::AllHeld { .. } => "HoldError",
    };
    raise(py, class, &error.to_string())
}

pub(crate) fn of_tensor(py: Python<'_>, error: &TensorError) -> PyErr {
    tensor_error(py, "TensorError", &error.to_string(), error.kind())
}

pub(crate) fn of_store(py: Python<'_>, error: &StoreError) -> PyErr {
    raise(py, "StoreError", &error.to_string())
}

pub(crate) fn of_model(py: Python<'_>, error: &ModelError) -> PyErr {
    raise(py, "ModelError", &error.to_string())
}

/// An element type or a shape that cannot become a tensor.
pub(crate) fn tensor_error(py: Python<'_>, class: &str, message: &str, kind: ErrorKind) -> PyErr {
    let kind = match kind {
        ErrorKind::DimensionMismatch => "dimension",
        ErrorKind::NotSupported => "unsupported",
        ErrorKind::OutOfMemory => "memory",
        ErrorKind::Gone => "gone",
        ErrorKind::Other => "other",
    };
    with_facts(py, class, message, |made| made.setattr("kind", kind))
}
