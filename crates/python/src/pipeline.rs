//! `Pipeline`: from a text or a graph to frames, settings and a report.

use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use vramp::handlers::app::{AppInput, AppOutput};
use vramp::plan::{Plan, Size};
use vramp::runtime::{RunEvent, Watch};
use vramp::{Controls, Pipeline, PipelineBuilder};

use crate::ends::{self, PyLend, timeout_of};
use crate::errors::{detached, of_pipeline, raise};
use crate::frame::PyFrame;
use crate::frames::PyFrames;
use crate::graph::PyGraph;
use crate::live::Live;
use crate::plan::PyPlan;
use crate::report::PyReport;
use crate::settings::PySettings;
use crate::{fork, handler, options};

/// Events that are kept for `Pipeline.events`.
const MOST_EVENTS: usize = 200;

#[pyclass(frozen, module = "vramp", name = "Pipeline")]
pub(crate) struct PyPipeline {
    live: Arc<Live>,
    plan: Plan,
    controls: Controls,
    watch: Watch,
    inputs: Vec<AppInput>,
    outputs: Vec<AppOutput>,
    events: Arc<Mutex<Vec<(bool, String)>>>,
    /// Whether the caller's thread steps the pipeline.
    steps: bool,
    text: Option<String>,
}

fn builder_of(pipeline: &Bound<'_, PyAny>) -> PyResult<(PipelineBuilder, Option<String>)> {
    if let Ok(graph) = pipeline.cast::<PyGraph>() {
        let spec = graph.get().spec();
        let text = vramp::plan::write_text(&spec);
        return Ok((Pipeline::from_spec(spec), Some(text)));
    }
    let text: String = pipeline.extract().map_err(|_| {
        PyTypeError::new_err("a pipeline is given as text, such as \"pattern ! blur ! app\", or as a `vramp.Graph`")
    })?;
    Ok((Pipeline::parse(text.as_str()), Some(text)))
}

impl PyPipeline {
    fn input(&self, py: Python<'_>, name: Option<&str>) -> PyResult<AppInput> {
        end(py, &self.inputs, AppInput::name, name, "source", "start").cloned()
    }

    fn output(&self, py: Python<'_>, name: Option<&str>) -> PyResult<AppOutput> {
        end(py, &self.outputs, AppOutput::name, name, "sink", "end").cloned()
    }

    /// Starts the threads of the run if nothing runs the pipeline yet.
    fn ensure_started(&self, py: Python<'_>) -> PyResult<()> {
        fork::check(py)?;
        if self.live.is_ready() { self.live.start(py) } else { Ok(()) }
    }

    fn frames_of(&self, py: Python<'_>, name: Option<&str>) -> PyResult<PyFrames> {
        let output = self.output(py, name)?;
        fork::check(py)?;
        // A pipeline that waits for pushes cannot be stepped by the thread that pushes.
        if self.steps && self.inputs.is_empty() && self.outputs.len() == 1 {
            self.live.begin_stepping();
        }
        self.ensure_started(py)?;
        Ok(PyFrames::new(&self.live, output))
    }
}

/// The end of this name; without a name, the only one.
fn end<'e, E>(
    py: Python<'_>,
    ends: &'e [E],
    name_of: impl Fn(&E) -> &str,
    name: Option<&str>,
    what: &str,
    place: &str,
) -> PyResult<&'e E> {
    let found = match (name, ends) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), ends) => ends.iter().find(|end| name_of(end) == name),
    };
    found.ok_or_else(|| {
        let names = ends.iter().map(&name_of).collect::<Vec<_>>().join(", ");
        let text = match (ends.len(), name) {
            (0, _) => format!("the pipeline has no `app` {what}; write `app` at the {place} of a chain"),
            (_, None) => format!("the pipeline has several `app` {what}s, so name one: {names}"),
            (_, Some(name)) => format!("`{name}` is not an `app` {what}; there are: {names}"),
        };
        raise(py, "StateError", &text)
    })
}

#[pymethods]
impl PyPipeline {
    /// Reads, checks, plans and builds a pipeline. `gpu=None` lets the planner decide, `True` requires the GPU, `False`
    /// never opens one.
    #[new]
    #[pyo3(signature = (pipeline, /, *, gpu = None, **options))]
    fn new(
        py: Python<'_>,
        pipeline: &Bound<'_, PyAny>,
        gpu: Option<bool>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPipeline> {
        fork::check(py)?;
        let (builder, text) = builder_of(pipeline)?;
        let options = options::of(gpu, options)?;
        let steps = options.threads == Some(1);
        let registry = handler::registry(py)?;
        let events = Arc::<Mutex<Vec<(bool, String)>>>::default();
        let heard = Arc::clone(&events);
        let listener = move |event: &RunEvent| {
            let Some(words) = event.words() else { return };
            let mut list = heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if list.len() < MOST_EVENTS {
                list.push((event.is_warning(), words));
            }
        };
        let builder = builder.registry(&registry).options(options).listener(Arc::new(listener));
        let built = detached(py, || builder.build())?;
        let pipeline = built.map_err(|error| of_pipeline(py, error))?;
        let inputs = pipeline.handles().names::<AppInput>();
        let inputs = inputs.iter().filter_map(|name| pipeline.input(name).ok()).collect();
        let outputs = pipeline.handles().names::<AppOutput>();
        let outputs = outputs.iter().filter_map(|name| pipeline.output(name).ok()).collect();
        let (plan, controls, watch) = (pipeline.plan().clone(), pipeline.controls(), pipeline.watch());
        Ok(PyPipeline { live: Live::new(pipeline), plan, controls, watch, inputs, outputs, events, steps, text })
    }

    /// The plan: where each handler runs, what is transferred, and what it costs.
    #[getter]
    fn plan(&self) -> PyPlan {
        PyPlan { plan: self.plan.clone(), text: self.text.clone() }
    }

    /// The report of the run, after its end; `None` before.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Option<PyReport>> {
        self.live.wait(py, Some(std::time::Duration::ZERO), |_| Ok(()))?;
        let report = self.live.ending().report.clone();
        Ok(report.map(|report| PyReport::new(report, self.plan.clone(), &self.watch, self.text.clone())))
    }

    /// Warnings and other news of the run, at most 200.
    #[getter]
    fn events(&self) -> Vec<String> {
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        events.iter().map(|(_, words)| words.clone()).collect()
    }

    /// The names of the handlers.
    #[getter]
    fn handlers(&self) -> Vec<String> {
        self.plan.handlers.iter().map(|handler| handler.name.clone()).collect()
    }

    /// Frames at the sinks, seconds, and frames per second so far.
    #[getter]
    fn progress(&self) -> (u64, f64, f64) {
        let progress = self.watch.progress(self.live.elapsed());
        (progress.frames_out, progress.elapsed.as_secs_f64(), progress.fps)
    }

    /// Whether the pipeline was started and is not over.
    #[getter]
    fn running(&self) -> bool {
        self.live.is_running()
    }

    /// Runs to the end and returns the report. `progress` is called about 10 times a second with the frames, the seconds
    /// and the frames per second so far.
    #[pyo3(signature = (*, progress = None))]
    fn run(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<PyReport> {
        if let Some(output) = self.outputs.first() {
            let text = format!(
                "{}: its frames wait for Python; iterate over the pipeline, or `start` it and `pull`",
                output.name()
            );
            return Err(raise(py, "StateError", &text));
        }
        if !self.live.is_ready() {
            return Err(raise(py, "StateError", "the pipeline was started already; build it again to run it again"));
        }
        self.live.start(py)?;
        let mut last = std::time::Instant::now();
        self.live.wait(py, None, |py| match &progress {
            Some(progress) if last.elapsed() >= std::time::Duration::from_millis(100) => {
                last = std::time::Instant::now();
                progress.call1(py, (self.progress(),)).map(drop)
            }
            _ => Ok(()),
        })?;
        if let Some(progress) = &progress {
            progress.call1(py, (self.progress(),))?;
        }
        self.live.check(py)?;
        if self.live.is_closed() {
            return Err(crate::live::stopped(py));
        }
        self.report(py)?.ok_or_else(|| raise(py, "StateError", "the run has no report"))
    }

    /// Starts the run on threads of its own.
    fn start(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().ensure_started(slf.py())?;
        Ok(slf)
    }

    /// Waits for the end of the run. Returns whether it is over; fails if the run failed.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        if self.live.is_ready() {
            return Err(raise(py, "StateError", "the pipeline was not started; call `start` first"));
        }
        let over = self.live.wait(py, timeout_of(timeout)?, |_| Ok(()))?;
        if over {
            self.live.check(py)?;
        }
        Ok(over)
    }

    /// Lets the sources end. Frames in flight still arrive.
    fn finish(&self) {
        self.live.finish();
    }

    /// Ends the stream of an `app` source. Frames that were pushed still arrive.
    #[pyo3(signature = (name = None))]
    fn end_input(&self, py: Python<'_>, name: Option<&str>) -> PyResult<()> {
        self.input(py, name)?.close();
        Ok(())
    }

    /// Stops at once: queued frames are dropped and counted, and files have the frames so far. Waits for the end.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.live.stop(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // A pipeline that is only iterated over is started by its iterator, which may step it.
        if !slf.get().inputs.is_empty() || slf.get().outputs.is_empty() {
            slf.get().ensure_started(slf.py())?;
        }
        Ok(slf)
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (error, traceback);
        if !kind.is_none() || self.live.is_stepped() || !self.live.is_running() {
            self.live.stop(py)?;
            return if kind.is_none() { self.live.check(py) } else { Ok(()) };
        }
        // Pushed frames arrive; frames that were not pulled are dropped and counted.
        self.inputs.iter().for_each(AppInput::close);
        self.outputs.iter().for_each(AppOutput::close);
        if self.inputs.is_empty() {
            self.live.finish();
        }
        self.live.wait(py, None, |_| Ok(()))?;
        self.live.check(py)
    }

    /// Pushes an array (one copy) or a frame (no copy) into an `app` source. `pts` is in seconds.
    #[pyo3(signature = (frame, /, *, pts = None, timeout = None, to = None))]
    fn push(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        pts: Option<f64>,
        timeout: Option<f64>,
        to: Option<&str>,
    ) -> PyResult<()> {
        let input = self.input(py, to)?;
        self.ensure_started(py)?;
        ends::push(py, &self.live, &input, frame, pts.map(nanoseconds), timeout_of(timeout)?)
    }

    /// Lends the pipeline's memory for a frame. The frame is sent at the end of the `with` block, without a copy.
    #[pyo3(signature = (*, size = None, pts = None, timeout = None, to = None))]
    fn lend(
        &self,
        py: Python<'_>,
        size: Option<(u32, u32)>,
        pts: Option<f64>,
        timeout: Option<f64>,
        to: Option<&str>,
    ) -> PyResult<PyLend> {
        let input = self.input(py, to)?;
        self.ensure_started(py)?;
        let wrong = |_| pyo3::exceptions::PyValueError::new_err("a size has sides from 1 to 16384");
        let size =
            size.map(|(width, height)| format!("{width}x{height}").parse::<Size>().map_err(wrong)).transpose()?;
        PyLend::new(py, &self.live, input, size, pts.map(nanoseconds), timeout_of(timeout)?)
    }

    /// The next frame of an `app` sink; `None` at the end. Fails with `Timeout` if no frame came within this many seconds.
    #[pyo3(signature = (*, timeout = None, of = None))]
    fn pull(&self, py: Python<'_>, timeout: Option<f64>, of: Option<&str>) -> PyResult<Option<PyFrame>> {
        self.frames_of(py, of)?.next_frame(py, timeout_of(timeout)?)
    }

    /// The newest frame of an `app` sink; older frames are dropped and counted. `None` at the end.
    #[pyo3(signature = (*, timeout = None, of = None))]
    fn latest(&self, py: Python<'_>, timeout: Option<f64>, of: Option<&str>) -> PyResult<Option<PyFrame>> {
        let output = self.output(py, of)?;
        self.ensure_started(py)?;
        if self.live.is_stepped() {
            // The caller's thread steps the pipeline, so that no newer frame waits.
            return self.frames_of(py, of)?.next_frame(py, timeout_of(timeout)?);
        }
        ends::pull(py, &self.live, &output, true, timeout_of(timeout)?)
    }

    /// Iterates over the frames of one of several `app` sinks.
    #[pyo3(signature = (of = None))]
    fn frames(&self, py: Python<'_>, of: Option<&str>) -> PyResult<PyFrames> {
        self.frames_of(py, of)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyFrames> {
        self.frames_of(py, None)
    }

    /// Iterates over the frames in a coroutine.
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("vramp._async")?.call_method1("frames", (slf,))
    }

    /// The settings of a handler.
    fn __getitem__(&self, name: &str) -> PyResult<PySettings> {
        if !self.plan.handlers.iter().any(|handler| handler.name == name) {
            let names: Vec<&str> = self.plan.handlers.iter().map(|handler| handler.name.as_str()).collect();
            return Err(PyKeyError::new_err(format!("no handler `{name}`; the handlers: {}", names.join(", "))));
        }
        Ok(PySettings::new(self.controls.clone(), name))
    }

    /// The names of the `app` sources and of the `app` sinks.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let inputs = PyList::new(py, self.inputs.iter().map(AppInput::name))?;
        Ok((inputs, PyList::new(py, self.outputs.iter().map(AppOutput::name))?))
    }

    fn __repr__(&self) -> String {
        let state = if self.live.is_ready() {
            "ready"
        } else if self.live.is_running() {
            "running"
        } else {
            "over"
        };
        format!("<vramp.Pipeline {:?}, {state}>", self.text.as_deref().unwrap_or("of a graph"))
    }

    fn _repr_html_(&self) -> String {
        self.plan().to_html()
    }
}

fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}
