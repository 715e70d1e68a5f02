//! What a Python handler receives: `Context` at its start, and a `Tick` for every frame.
//!
//! Invariant: after the call, a tick holds no frame and lends no memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use vramp::plan::{Content, Rate};
use vramp::runtime::{Frame, FramePool, Meta, NoteValue, Now, StartContext};

use super::declare::Declaration;
use super::keeping::Keeper;
use crate::frame::PyFrame;

/// What all ticks of a handler share.
#[derive(Debug)]
pub(crate) struct Ports {
    pub(crate) declaration: Arc<Declaration>,
    /// The planned content of each output; `None` if it is not linked.
    pub(crate) outputs: Vec<Option<Content>>,
    pub(crate) keeper: Arc<Keeper>,
}

impl Ports {
    fn input(&self, name: &str) -> PyResult<usize> {
        let names = self.declaration.inputs.iter().map(|port| port.name.as_str());
        find(names, name, "input")
    }

    pub(crate) fn output(&self, name: &str) -> PyResult<usize> {
        let names = self.declaration.outputs.iter().map(|port| port.name.as_str());
        find(names, name, "output")
    }

    /// The description of a frame for an output, given the lead's frame.
    pub(crate) fn meta(&self, port: usize, lead: Option<&Meta>) -> Option<Meta> {
        let mut meta = Meta::of(self.outputs.get(port)?.as_ref()?)?;
        if let (Some(own), Some(lead)) = (meta.as_picture().copied(), lead.and_then(Meta::as_picture)) {
            let picture = meta.picture_mut();
            *picture = own;
            // The size of a stream may change while it runs.
            picture.size = lead.size;
        }
        Some(meta)
    }
}

fn find<'a>(mut names: impl Iterator<Item = &'a str> + Clone, name: &str, what: &str) -> PyResult<usize> {
    let all = names.clone();
    names.position(|known| known == name).ok_or_else(|| {
        PyKeyError::new_err(format!("no {what} `{name}`; the {what}s: {}", all.collect::<Vec<_>>().join(", ")))
    })
}

/// The frames of one call.
#[derive(Default)]
pub(crate) struct TickFrames {
    /// By input port; `None` if no frame has come, or once an object or the handler has it.
    pub(crate) given: SmallVec<[Option<Frame>; 2]>,
    pub(crate) objects: SmallVec<[Option<Py<PyFrame>>; 2]>,
    /// Memory for the main output, lent before the call.
    pub(crate) spare: Option<Frame>,
    pub(crate) pool: Option<FramePool>,
    pub(crate) notes: Vec<(String, NoteValue)>,
    /// Whether the call needed memory for an output.
    pub(crate) lent: bool,
}

#[pyclass(frozen, module = "vramp", name = "Tick")]
pub(crate) struct PyTick {
    now: Now,
    lead: usize,
    lead_meta: Option<Meta>,
    ports: Arc<Ports>,
    frames: Mutex<TickFrames>,
}

impl PyTick {
    pub(crate) fn new(now: Now, lead: usize, ports: &Arc<Ports>, frames: TickFrames) -> PyTick {
        let lead_meta = frames.given.get(lead).and_then(Option::as_ref).map(|frame| *frame.meta());
        PyTick { now, lead, lead_meta, ports: Arc::clone(ports), frames: Mutex::new(frames) }
    }

    fn lock(&self) -> MutexGuard<'_, TickFrames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the call: the tick gives back everything.
    pub(crate) fn close(&self) -> TickFrames {
        std::mem::take(&mut *self.lock())
    }

    pub(crate) fn lead_meta(&self) -> Option<&Meta> {
        self.lead_meta.as_ref()
    }

    fn object(&self, py: Python<'_>, port: usize) -> PyResult<Option<Py<PyFrame>>> {
        let mut frames = self.lock();
        if frames.pool.is_none() {
            return Err(over());
        }
        let count = frames.given.len();
        frames.objects.resize_with(count, || None);
        if frames.objects[port].is_none()
            && let Some(frame) = frames.given[port].take()
        {
            let kept = self.ports.keeper.keep();
            frames.objects[port] = Some(Py::new(py, PyFrame::read_only(frame, kept))?);
        }
        Ok(frames.objects[port].as_ref().map(|object| object.clone_ref(py)))
    }

    /// Memory for a frame of an output.
    pub(crate) fn lend(&self, port: usize) -> PyResult<Frame> {
        let meta = self.ports.meta(port, self.lead_meta.as_ref());
        let meta = meta.ok_or_else(|| PyTypeError::new_err("the output is not linked, so it has no frames"))?;
        let mut frames = self.lock();
        frames.lent = true;
        if let Some(spare) = frames.spare.take_if(|spare| spare.meta().content == meta.content) {
            return Ok(spare);
        }
        let pool = frames.pool.clone().ok_or_else(over)?;
        drop(frames);
        pool.lend(meta).map_err(|error| pyo3::exceptions::PyMemoryError::new_err(error.to_string()))
    }

    fn port_of(&self, name: Option<&str>) -> PyResult<usize> {
        match name {
            Some(name) => self.ports.input(name),
            None if self.ports.declaration.inputs.is_empty() => {
                Err(PyTypeError::new_err("a source has no input; send a frame: `return tick.output()`"))
            }
            None => Ok(self.lead),
        }
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err(
        "the tick is over: its frames belong to the pipeline again; keep what you need during `process`",
    )
}

#[pymethods]
impl PyTick {
    /// The presentation time of the frame in seconds.
    #[getter]
    fn timestamp(&self) -> f64 {
        self.now.pts_ns as f64 * 1e-9
    }

    /// The number of the frame, counted by its source.
    #[getter]
    fn frame_number(&self) -> u64 {
        self.now.number
    }

    /// Seconds since the previous frame; one period for the first frame.
    #[getter]
    fn delta_time(&self) -> f64 {
        self.now.delta_ns as f64 * 1e-9
    }

    /// The frame of the lead input, read-only.
    #[getter]
    fn input(&self, py: Python<'_>) -> PyResult<Option<Py<PyFrame>>> {
        self.object(py, self.port_of(None)?)
    }

    /// The frames of all inputs by name, read-only; `None` for an input without a frame so far.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = PyDict::new(py);
        for (port, declared) in self.ports.declaration.inputs.iter().enumerate() {
            inputs.set_item(&declared.name, self.object(py, port)?)?;
        }
        Ok(inputs)
    }

    /// Takes the frame of an input, to change it in place. If another handler holds the frame too, this is a copy. Take it
    /// before looking at `input`, which holds it as well.
    #[pyo3(signature = (name = None))]
    fn take(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Py<PyFrame>> {
        let port = self.port_of(name)?;
        let mut frames = self.lock();
        let pool = frames.pool.clone().ok_or_else(over)?;
        let taken = frames.given.get_mut(port).and_then(Option::take);
        let object = frames.objects.get(port).and_then(Option::as_ref).and_then(|object| object.get().shared());
        drop(frames);
        let none = || PyRuntimeError::new_err("the input has no frame, or it was taken before");
        let mut frame = taken.or(object).ok_or_else(none)?;
        let edited = frame.edit(&pool).map(drop);
        edited.map_err(|error| pyo3::exceptions::PyMemoryError::new_err(error.to_string()))?;
        Py::new(py, PyFrame::writable(frame, self.ports.keeper.keep()))
    }

    /// An empty frame of an output, to be written to and returned. Its values are undefined.
    #[pyo3(signature = (name = None))]
    fn output(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Py<PyFrame>> {
        let port = match name {
            Some(name) => self.ports.output(name)?,
            None if self.ports.declaration.outputs.is_empty() => {
                return Err(PyTypeError::new_err("a sink has no output"));
            }
            None => 0,
        };
        Py::new(py, PyFrame::writable(self.lend(port)?, self.ports.keeper.keep()))
    }

    /// Attaches a number, a text or a short list of numbers to the frames that this call sends.
    fn note(&self, key: String, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = if let Ok(text) = value.extract::<String>() {
            NoteValue::Text(text)
        } else if let Ok(number) = value.extract::<f64>() {
            NoteValue::Number(number)
        } else {
            NoteValue::List(
                value.extract().map_err(|_| PyTypeError::new_err("a note is a number, a text or a list of numbers"))?,
            )
        };
        let mut frames = self.lock();
        if frames.pool.is_none() {
            return Err(over());
        }
        frames.notes.push((key, value));
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Tick {} at {:.3} s>", self.now.number, self.timestamp())
    }
}

/// Where a handler runs, and what was planned for its ports.
#[pyclass(frozen, module = "vramp", name = "Context")]
pub(crate) struct PyContext {
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    device: &'static str,
    #[pyo3(get)]
    fps: Option<f64>,
    #[pyo3(get)]
    threads: usize,
    inputs: Vec<(String, Option<Content>)>,
    outputs: Vec<(String, Option<Content>)>,
}

impl PyContext {
    pub(crate) fn new(context: &StartContext<'_>, declaration: &Declaration) -> PyContext {
        let named = |ports: &[super::declare::DeclaredPort], contents: &[Option<Content>]| {
            ports.iter().map(|port| port.name.clone()).zip(contents.iter().cloned()).collect::<Vec<_>>()
        };
        PyContext {
            name: context.name().to_owned(),
            device: context.space().name(),
            fps: context.rate().map(Rate::per_second),
            threads: context.threads(),
            inputs: named(&declaration.inputs, context.inputs()),
            outputs: named(&declaration.outputs, context.outputs()),
        }
    }
}

fn described<'py>(py: Python<'py>, ports: &[(String, Option<Content>)]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for (name, content) in ports {
        let facts = match content {
            None => None,
            Some(content) => {
                let facts = PyDict::new(py);
                match content {
                    Content::Video(frame) => {
                        facts.set_item("format", frame.format.name())?;
                        facts.set_item("size", (frame.size.width, frame.size.height))?;
                    }
                    Content::Tensor(tensor) => {
                        facts.set_item("format", "tensor")?;
                        facts.set_item("dtype", tensor.dtype.name())?;
                        facts.set_item("shape", tensor.dims.clone())?;
                    }
                    _ => facts.set_item("format", "data")?,
                }
                facts.set_item("fps", content.rate().map(Rate::per_second))?;
                Some(facts)
            }
        };
        all.set_item(name, facts)?;
    }
    Ok(all)
}

#[pymethods]
impl PyContext {
    /// What each input carries; `None` if it is not linked.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        described(py, &self.inputs)
    }

    /// What each output carries; `None` if it is not linked.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        described(py, &self.outputs)
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Context of {} on the {}>", self.name, self.device)
    }
}
