//! Handlers in Python: the process's registry of decorated classes, and the registry that pipelines are built with.
//!
//! Registering a name again replaces the class for pipelines that are built later. Entries are `'static` data of the
//! planner, so the entry of every different declaration is kept for the life of the process.

mod declare;
pub(crate) mod failure;
pub(crate) mod keeping;
mod lane;
mod results;
mod tick;
mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use vramp::plan::catalog::Entry;
use vramp::runtime::{Kind, Registry};

use crate::errors::raise;

pub(crate) use declare::Declaration;
pub(crate) use lane::{end_for_interpreter, is_main_interpreter, wait_for_calls};
pub(crate) use tick::{PyContext, PyTick};

/// A decorated class.
struct Registered {
    entry: &'static Entry,
    declaration: Arc<Declaration>,
    class: Arc<Py<PyAny>>,
}

/// By name, and whether the handler is a source: a source and another handler may share a name.
static HANDLERS: Mutex<BTreeMap<(String, bool), Registered>> = Mutex::new(BTreeMap::new());

fn handlers() -> MutexGuard<'static, BTreeMap<(String, bool), Registered>> {
    HANDLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a class as a kind of handler. Called by the decorator in `vramp.handler`.
#[pyfunction]
#[pyo3(signature = (declaration, class_, /))]
pub(crate) fn register(py: Python<'_>, declaration: &Bound<'_, PyAny>, class_: Py<PyAny>) -> PyResult<()> {
    let declaration = Declaration::read(py, declaration)?;
    let key = (declaration.name.clone(), declaration.inputs.is_empty());
    let entry = declaration.entry();
    let mut built_in = vramp::registry();
    built_in
        .add_kind(Kind::planned(entry))
        .map_err(|error| raise(py, "HandlerError", &format!("{}: {error}", declaration.name)))?;
    let class = Arc::new(class_);
    let old = handlers().insert(key, Registered { entry, declaration: Arc::new(declaration), class });
    // Dropped outside the lock, because dropping a class may run Python code.
    drop(old);
    Ok(())
}

/// The built-in handlers and those of this process.
pub(crate) fn registry(py: Python<'_>) -> PyResult<Registry> {
    let mut registry = vramp::registry();
    for Registered { entry, declaration, class } in handlers().values() {
        let (declaration, class) = (Arc::clone(declaration), Arc::clone(class));
        registry
            .add(entry, move |setup| worker::PythonHandler::make(setup, &declaration, &class))
            .map_err(|error| raise(py, "HandlerError", &error.to_string()))?;
    }
    Ok(registry)
}
