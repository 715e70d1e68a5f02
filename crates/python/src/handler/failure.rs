//! An exception in a handler, as the failure of a frame.

use std::fmt;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use vramp::runtime::HandlerError;

/// The exception, with its traceback as text for reports.
#[derive(Debug)]
pub(crate) struct PythonFailure {
    text: String,
    error: PyErr,
}

impl PythonFailure {
    pub(crate) fn new(py: Python<'_>, error: PyErr) -> PythonFailure {
        let traced = || -> PyResult<String> {
            if let Some(traceback) = error.traceback(py) {
                error.value(py).setattr("__traceback__", traceback)?;
            }
            let lines = py.import("traceback")?.call_method1("format_exception", (error.value(py),))?;
            Ok(lines.extract::<Vec<String>>()?.concat().trim_end().to_owned())
        };
        let text = traced().map_or_else(|_| error.to_string(), |lines| format!("{error}\n{lines}"));
        PythonFailure { text, error }
    }

    /// As the failure of a handler. Ctrl-C and `sys.exit` in a handler end the run, whatever `on-error` says.
    pub(crate) fn handler_error(py: Python<'_>, error: PyErr) -> HandlerError {
        let is_end = !error.is_instance_of::<PyException>(py);
        let failure = PythonFailure::new(py, error);
        if is_end { HandlerError::hopeless(failure) } else { HandlerError::failed(failure) }
    }

    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        self.error.clone_ref(py)
    }
}

impl fmt::Display for PythonFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PythonFailure {}
