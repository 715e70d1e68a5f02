//! `vramp.fuse`: ops that are written down and computed together, and functions that are recorded once.
//!
//! A recording is the list of ops of one call of a function, by place: first the arguments, then a place per op. Later
//! calls repeat the list without calling Python.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;
use vramp::tensor::{Expr, Tensor};

use super::{PyTensor, Values};
use crate::errors::{detached, of_tensor};

type Op = Arc<dyn Fn(&[Expr]) -> Expr + Send + Sync>;

/// The place of a tensor in a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    recording: u64,
    at: usize,
}

enum Step {
    /// A tensor from outside the function.
    Constant(Expr),
    Op(Op, SmallVec<[usize; 3]>),
}

struct Open {
    id: u64,
    arguments: usize,
    steps: Vec<Step>,
}

thread_local! {
    /// Open fuses of this thread.
    static FUSING: Cell<usize> = const { Cell::new(0) };
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

pub(super) fn is_fusing() -> bool {
    FUSING.get() > 0
}

/// From now on, ops of this thread are only written down.
#[pyfunction]
pub(crate) fn begin_fuse() {
    FUSING.set(FUSING.get() + 1);
}

/// Whether a function is being recorded on this thread.
#[pyfunction]
pub(crate) fn is_recording() -> bool {
    OPEN.with_borrow(Option::is_some)
}

#[pyfunction]
pub(crate) fn end_fuse() {
    FUSING.set(FUSING.get().saturating_sub(1));
}

/// Adds an op to the recording of this thread, if there is one.
pub(super) fn note(inputs: &[&PyTensor], op: Op) -> PyResult<Option<Place>> {
    OPEN.with_borrow_mut(|open| {
        let Some(open) = open else {
            if inputs.iter().any(|input| input.place.is_some()) {
                return Err(PyRuntimeError::new_err("a tensor of a fused function was used after the function"));
            }
            return Ok(None);
        };
        let mut places = SmallVec::new();
        for input in inputs {
            match input.place {
                Some(place) if place.recording == open.id => places.push(place.at),
                Some(_) => return Err(PyRuntimeError::new_err("a tensor of another fused function was used")),
                None => {
                    open.steps.push(Step::Constant(input.expr()));
                    places.push(open.arguments + open.steps.len() - 1);
                }
            }
        }
        open.steps.push(Step::Op(op, places));
        Ok(Some(Place { recording: open.id, at: open.arguments + open.steps.len() - 1 }))
    })
}

/// A recorded function of tensors.
#[pyclass(frozen, module = "vramp", name = "Recording")]
pub(crate) struct PyRecording {
    arguments: usize,
    steps: Vec<Step>,
    results: Vec<usize>,
}

#[pymethods]
impl PyRecording {
    /// Calls a function once with stand-ins of these tensors. The function returns a list of tensors.
    #[new]
    fn new(py: Python<'_>, function: &Bound<'_, PyAny>, arguments: Vec<Py<PyTensor>>) -> PyResult<PyRecording> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        if OPEN.with_borrow(Option::is_some) {
            return Err(PyRuntimeError::new_err("a fused function was called by another before both were recorded"));
        }
        let stand_in = |(at, argument): (usize, &Py<PyTensor>)| {
            let state = std::sync::Mutex::new(Values::Lazy(argument.get().expr()));
            let place = Some(Place { recording: id, at });
            Py::new(py, PyTensor { state, place, shown: std::sync::OnceLock::new() })
        };
        let given = arguments.iter().enumerate().map(stand_in).collect::<PyResult<Vec<_>>>()?;
        OPEN.set(Some(Open { id, arguments: arguments.len(), steps: Vec::new() }));
        let returned = function.call1((given,)).and_then(|list| list.extract::<Vec<Py<PyTensor>>>());
        let open = OPEN.take();
        let returned = returned?;
        let Some(mut open) = open else { return Err(PyRuntimeError::new_err("the recording was ended elsewhere")) };
        let mut results = Vec::new();
        for result in returned {
            match result.get().place {
                Some(place) if place.recording == id => results.push(place.at),
                Some(_) => return Err(PyValueError::new_err("the function returned a tensor of another recording")),
                None => {
                    open.steps.push(Step::Constant(result.get().expr()));
                    results.push(open.arguments + open.steps.len() - 1);
                }
            }
        }
        Ok(PyRecording { arguments: open.arguments, steps: open.steps, results })
    }

    /// Repeats the ops with these tensors, and computes the results.
    fn run(&self, py: Python<'_>, arguments: Vec<Py<PyTensor>>) -> PyResult<Vec<PyTensor>> {
        if arguments.len() != self.arguments {
            return Err(PyValueError::new_err("the number of tensors differs from the recording"));
        }
        let mut values: Vec<Expr> = arguments.iter().map(|argument| argument.get().expr()).collect();
        for step in &self.steps {
            let value = match step {
                Step::Constant(expr) => expr.clone(),
                Step::Op(op, places) => {
                    let inputs: SmallVec<[Expr; 3]> = places.iter().map(|at| values[*at].clone()).collect();
                    op(&inputs)
                }
            };
            values.push(value);
        }
        let results: Vec<Expr> = self.results.iter().map(|at| values[*at].clone()).collect();
        if is_fusing() {
            let lazy = |expr| PyTensor {
                state: std::sync::Mutex::new(Values::Lazy(expr)),
                place: None,
                shown: std::sync::OnceLock::new(),
            };
            return Ok(results.into_iter().map(lazy).collect());
        }
        let run = || results.iter().map(Expr::run).collect::<Result<Vec<Tensor>, _>>();
        let tensors = detached(py, run)?.map_err(|error| of_tensor(py, &error))?;
        Ok(tensors.into_iter().map(PyTensor::ready).collect())
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Recording of {} ops>", self.steps.len())
    }
}
