//! A Python object as a handler of the runtime.
//!
//! The interpreter is attached only while the object's methods run. Memory for an output is lent before the call and
//! before the inputs are taken, so that a call that finds no memory can be repeated without calling Python twice.

use std::sync::Arc;

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::types::PyString;
use smallvec::SmallVec;
use vramp::plan::catalog::Value;
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext};

use super::declare::Declaration;
use super::failure::PythonFailure;
use super::keeping::Keeper;
use super::lane;
use super::results::{self, Sent};
use super::tick::{Ports, PyContext, PyTick, TickFrames};

pub(crate) struct PythonHandler {
    ports: Arc<Ports>,
    /// The instance. `None` only after the handler was dropped.
    instance: Option<Py<PyAny>>,
    /// The bound method `process`.
    process: Option<Py<PyAny>>,
    /// The event loop of a handler whose `process` is a coroutine function.
    event_loop: Option<Py<PyAny>>,
    is_async: bool,
    /// Whether the last call needed memory for an output.
    lends: bool,
}

/// What a call of `process` has done.
#[expect(clippy::large_enum_variant, reason = "it is moved once per call, and boxing it would allocate")]
enum Done {
    Sent(Sent),
    Ended,
}

impl PythonHandler {
    /// Makes an instance of the class and gives it its settings as attributes.
    pub(crate) fn make(
        setup: &Setup<'_>,
        declaration: &Arc<Declaration>,
        class: &Py<PyAny>,
    ) -> Result<PythonHandler, HandlerError> {
        let ports = Ports {
            declaration: Arc::clone(declaration),
            outputs: setup.outputs.to_vec(),
            keeper: Keeper::new(setup.name),
        };
        let made = lane::attached(|py| {
            let made = || -> PyResult<PythonHandler> {
                let instance = class.bind(py).call0()?;
                give_settings(&instance, setup)?;
                let process = instance.getattr("process")?;
                let is_async = py.import("inspect")?.call_method1("iscoroutinefunction", (&process,))?.extract()?;
                Ok(PythonHandler {
                    ports: Arc::new(ports),
                    instance: Some(instance.unbind()),
                    process: Some(process.unbind()),
                    event_loop: None,
                    is_async,
                    lends: true,
                })
            };
            made().map_err(|error| PythonFailure::handler_error(py, error))
        });
        made.unwrap_or_else(|| Err(ending()))
    }

    /// Calls a method, and runs it to its end if it is a coroutine function.
    fn lifecycle(&mut self, py: Python<'_>, name: &str, context: Option<PyContext>) -> PyResult<()> {
        let Some(instance) = &self.instance else { return Ok(()) };
        let Some(method) = instance.bind(py).getattr_opt(name)? else { return Ok(()) };
        let result = match context {
            Some(context) => method.call1((Py::new(py, context)?,))?,
            None => method.call0()?,
        };
        if result.hasattr("__await__")? {
            self.finish_coroutine(&result)?;
        }
        Ok(())
    }

    fn finish_coroutine<'py>(&mut self, coroutine: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        if self.event_loop.is_none() {
            self.event_loop = Some(py.import("asyncio")?.call_method0("new_event_loop")?.unbind());
        }
        let own = self.event_loop.as_ref().expect("it was made above").bind(py);
        own.call_method1("run_until_complete", (coroutine,))
    }

    fn close_loop(&mut self, py: Python<'_>) -> PyResult<()> {
        match self.event_loop.take() {
            Some(own) => own.bind(py).call_method0("close").map(drop),
            None => Ok(()),
        }
    }

    fn call_python(&mut self, py: Python<'_>, tick: &Bound<'_, PyTick>) -> PyResult<Done> {
        let Some(process) = &self.process else { return Ok(Done::Sent(Sent::new())) };
        let mut result = process.bind(py).call1((tick,));
        if self.is_async {
            result = result.and_then(|coroutine| self.finish_coroutine(&coroutine));
        }
        let is_end = |error: &PyErr| {
            error.is_instance_of::<PyStopIteration>(py) || error.is_instance_of::<PyStopAsyncIteration>(py)
        };
        match result {
            Ok(result) => results::of(&result, tick.get(), &self.ports).map(Done::Sent),
            Err(error) if self.ports.declaration.inputs.is_empty() && is_end(&error) => Ok(Done::Ended),
            Err(error) => Err(error),
        }
    }

    fn end(&mut self) -> Result<(), HandlerError> {
        let ended = lane::attached(|py| {
            let ended = self.lifecycle(py, "stop", None);
            let closed = self.close_loop(py);
            ended.and(closed).map_err(|error| PythonFailure::handler_error(py, error))
        });
        // While the interpreter ends, there is nothing left to stop.
        ended.unwrap_or(Ok(()))
    }
}

/// The error of a call while the interpreter ends.
fn ending() -> HandlerError {
    HandlerError::hopeless("the Python interpreter is ending")
}

fn give_settings(instance: &Bound<'_, PyAny>, setup: &Setup<'_>) -> PyResult<()> {
    for (key, value) in setup.settings.iter() {
        let py = instance.py();
        let name = PyString::new(py, &key.replace('-', "_"));
        match value {
            Value::Int(number) => instance.setattr(name, number)?,
            Value::Number(number) => instance.setattr(name, number)?,
            Value::Numbers(numbers) => instance.setattr(name, numbers.clone())?,
            Value::Bool(flag) => instance.setattr(name, flag)?,
            Value::Text(text) => instance.setattr(name, text)?,
            Value::Size(size) => instance.setattr(name, (size.width, size.height))?,
            Value::Rate(rate) => instance.setattr(name, rate.per_second())?,
            Value::Color([r, g, b, a]) => instance.setattr(name, (*r, *g, *b, *a))?,
            Value::Format(format) => instance.setattr(name, format.name())?,
        }
    }
    Ok(())
}

impl FrameHandler for PythonHandler {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let given = PyContext::new(context, &self.ports.declaration);
        let started = lane::attached(|py| {
            self.lifecycle(py, "start", Some(given)).map_err(|error| PythonFailure::handler_error(py, error))
        });
        started.unwrap_or_else(|| Err(ending()))
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let (count, lead) = (self.ports.declaration.inputs.len(), call.lead_port());
        let lead_meta = call.input(lead).map(|frame| *frame.meta());
        if count > 0 && lead_meta.is_none() {
            return Ok(Flow::Filtered);
        }
        let mut frames = TickFrames { pool: Some(call.pool().clone()), ..TickFrames::default() };
        if self.lends
            && let Some(meta) = self.ports.meta(0, lead_meta.as_ref())
        {
            frames.spare = Some(call.lend_frame(meta)?);
        }
        frames.given = (0..count)
            .map(|port| if port == lead { call.take(port) } else { call.input(port).cloned() })
            .collect::<SmallVec<[_; 2]>>();
        let (now, ports) = (call.now(), Arc::clone(&self.ports));
        let done = lane::attached(|py| -> Result<(Done, TickFrames), HandlerError> {
            let tick = Bound::new(py, PyTick::new(now, lead, &ports, frames));
            let outcome = tick.and_then(|tick| {
                let done = self.call_python(py, &tick);
                // Closed also after an error, so that a tick that the handler keeps holds no frame.
                let left = tick.get().close();
                done.map(|done| (done, left))
            });
            outcome.map_err(|error| PythonFailure::handler_error(py, error))
        });
        let (done, left) = done.unwrap_or_else(|| Err(ending()))?;
        self.lends = left.lent || count == 0;
        for (key, value) in &left.notes {
            call.note(key, value.as_note().map_err(HandlerError::failed)?)?;
        }
        drop(left);
        match done {
            Done::Ended => Ok(Flow::Ended),
            Done::Sent(sent) if sent.is_empty() && !self.ports.declaration.outputs.is_empty() => Ok(Flow::Filtered),
            Done::Sent(sent) => {
                for (port, frame) in sent {
                    call.send(port, frame);
                }
                Ok(Flow::Produced)
            }
        }
    }

    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        let changed = lane::attached(|py| {
            let Some(instance) = &self.instance else { return Ok(()) };
            give_settings(instance.bind(py), setup).map_err(|error| PythonFailure::handler_error(py, error))
        });
        changed.unwrap_or(Ok(()))
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.end()
    }
}

impl Drop for PythonHandler {
    fn drop(&mut self) {
        let objects = (self.instance.take(), self.process.take(), self.event_loop.take());
        if matches!(objects, (None, None, None)) {
            return;
        }
        let mut objects = Some(objects);
        if lane::attached(|_| drop(objects.take())).is_none() {
            // The interpreter is ending; its objects stay.
            std::mem::forget(objects);
        }
    }
}
