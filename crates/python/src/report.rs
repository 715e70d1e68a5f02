//! `Report`: what happened in a run, as attributes, as a dictionary, as tables, and drawn in a notebook.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use vramp::plan::Plan;
use vramp::report::{Page, Recorder, RunRecord};
use vramp::runtime::{Report, Watch};

use crate::errors::raise;
use crate::values::from_json;

#[pyclass(frozen, module = "vramp", name = "Report")]
pub(crate) struct PyReport {
    report: Report,
    plan: Plan,
    record: RunRecord,
    text: Option<String>,
}

impl PyReport {
    pub(crate) fn new(report: Report, plan: Plan, watch: &Watch, text: Option<String>) -> PyReport {
        PyReport { report, plan, record: Recorder::new().record(watch), text }
    }
}

#[pymethods]
impl PyReport {
    /// Frames at the sink that received the most frames.
    #[getter]
    fn frames(&self) -> u64 {
        self.report.frames
    }

    #[getter]
    fn frames_in(&self) -> u64 {
        self.report.frames_in
    }

    #[getter]
    fn frames_out(&self) -> u64 {
        self.report.frames_out
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.report.seconds
    }

    #[getter]
    fn fps(&self) -> f64 {
        self.report.fps
    }

    /// All figures as nested dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.to_json(py)?)
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        serde_json::to_string(&self.report).map_err(|problem| raise(py, "Error", &problem.to_string()))
    }

    /// A table of one part of the report: `handlers`, `units`, `links`, `groups` or `ends`. Needs pandas.
    #[pyo3(signature = (part = "handlers"))]
    fn to_pandas<'py>(&self, py: Python<'py>, part: &str) -> PyResult<Bound<'py, PyAny>> {
        const PARTS: [&str; 5] = ["handlers", "units", "links", "groups", "ends"];
        if !PARTS.contains(&part) {
            let text = format!("the report has no table `{part}`; expected one of {}", PARTS.join(", "));
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        let rows = self.to_dict(py)?.call_method1("get", (part, pyo3::types::PyList::empty(py)))?;
        py.import("pandas")?.getattr("DataFrame")?.call1((rows,))
    }

    /// The report as a page for a browser.
    fn to_html(&self) -> String {
        let page = Page::of_run(&self.plan, &self.report, self.record.clone());
        let page = if let Some(text) = &self.text { page.pipeline(text.as_str()) } else { page };
        page.to_html()
    }

    fn _repr_html_(&self) -> String {
        self.to_html()
    }

    /// Every figure of `to_dict` is an attribute.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let missing = || PyAttributeError::new_err(format!("the report has no figure `{name}`; see `to_dict()`"));
        if name.starts_with('_') {
            return Err(missing());
        }
        self.to_dict(py)?.get_item(name).map_err(|_| missing())
    }

    fn __repr__(&self) -> String {
        let Report { frames, seconds, fps, .. } = self.report;
        format!("<vramp.Report {frames} frames in {seconds:.2} s, {fps:.0} a second>")
    }
}
