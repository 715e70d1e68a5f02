//! The Python package `vramp`: pipelines whose frames are numpy arrays without a copy, handlers in Python, tensors.
//!
//! This crate translates between Python and the crate `vramp`. The package's Python files are in `python/vramp`; the
//! program `vramp` is part of the package ([`program`]).
//!
//! Invariants: the GIL is released during every wait, and no thread is joined with the GIL held. Every failure is an
//! exception.

#![cfg(feature = "extension")]
// To prove that an engine may be sent to a thread, the compiler descends through all types of wgpu.
#![recursion_limit = "256"]
#![expect(clippy::needless_pass_by_value, reason = "arguments of methods that Python calls are owned")]
#![expect(clippy::unused_self, reason = "methods of Python objects have a receiver")]
#![expect(
    clippy::cast_possible_wrap,
    reason = "lengths of memory that exists fit the signed types of Python's and DLPack's structures"
)]

mod buffer;
mod dlpack;
mod ends;
mod errors;
mod fork;
mod frame;
mod frames;
mod graph;
mod handler;
mod live;
mod model;
mod options;
mod picture;
mod pipeline;
mod plan;
mod report;
mod settings;
mod store;
mod tensor;
mod values;

use std::ffi::OsString;
use std::time::Duration;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;

/// Counts allocations per frame, for `allocs` in reports and budgets, as the program `vramp` does.
#[global_allocator]
static HEAP: vramp::runtime::CountingAllocator = vramp::runtime::CountingAllocator;

/// How long the end of the interpreter waits for Python handlers that do not return.
const PATIENCE: Duration = Duration::from_secs(2);

/// The program `vramp`. Returns the exit code.
#[pyfunction]
fn program(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    fork::check(py)?;
    let registry = handler::registry(py)?;
    errors::detached(py, || vramp_cli::run(&registry, args))
}

/// Stops every pipeline. Called before the interpreter ends.
#[pyfunction]
fn at_exit(py: Python<'_>) -> PyResult<bool> {
    // The threads are the parent's, and so are calls that they had begun.
    if fork::is_child() {
        return Ok(true);
    }
    live::stop_all(py)?;
    handler::end_for_interpreter();
    errors::detached(py, || handler::wait_for_calls(PATIENCE))
}

/// Ends the process at once, because a thread of a handler would be ended by force inside the interpreter.
#[pyfunction]
fn leave(code: u8) {
    vramp::runtime::leave_at_once(code);
}

/// Called in the child after a fork.
#[pyfunction]
fn after_fork_in_child() {
    fork::after_fork_in_child();
}

#[pymodule]
fn _vramp(module: &Bound<'_, PyModule>) -> PyResult<()> {
    if !handler::is_main_interpreter(module.py()) {
        let text = "vramp works in the main interpreter only; import it there, not in a sub-interpreter";
        return Err(PyImportError::new_err(text));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<frame::PyFrame>()?;
    module.add_class::<frame::PyPlane>()?;
    module.add_class::<frames::PyFrames>()?;
    module.add_class::<ends::PyLend>()?;
    module.add_class::<graph::PyGraph>()?;
    module.add_class::<graph::PyNode>()?;
    module.add_class::<graph::PyPort>()?;
    module.add_class::<graph::PyPorts>()?;
    module.add_class::<handler::PyContext>()?;
    module.add_class::<handler::PyTick>()?;
    module.add_class::<pipeline::PyPipeline>()?;
    module.add_class::<plan::PyPlan>()?;
    module.add_class::<report::PyReport>()?;
    module.add_class::<settings::PySettings>()?;
    module.add_class::<model::PyModel>()?;
    module.add_class::<store::PyStore>()?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<tensor::PyRecording>()?;
    module.add_function(wrap_pyfunction!(handler::register, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::tensor, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::zeros, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::begin_fuse, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::end_fuse, module)?)?;
    module.add_function(wrap_pyfunction!(tensor::is_recording, module)?)?;
    module.add_function(wrap_pyfunction!(program, module)?)?;
    module.add_function(wrap_pyfunction!(at_exit, module)?)?;
    module.add_function(wrap_pyfunction!(leave, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_child, module)?)?;
    Ok(())
}
