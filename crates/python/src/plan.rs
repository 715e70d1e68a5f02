//! `Plan`: what vramp decided, as text, as a dictionary, and drawn in a notebook.

use pyo3::prelude::*;
use vramp::plan::Plan;
use vramp::report::Page;

use crate::values::from_json;

#[pyclass(frozen, module = "vramp", name = "Plan")]
pub(crate) struct PyPlan {
    pub(crate) plan: Plan,
    /// The pipeline as it was written.
    pub(crate) text: Option<String>,
}

#[pymethods]
impl PyPlan {
    /// The plan as nested dictionaries and lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.plan.to_json_line())
    }

    fn to_json(&self) -> String {
        self.plan.to_json()
    }

    /// The plan as a Graphviz drawing.
    fn to_dot(&self) -> String {
        self.plan.to_dot()
    }

    /// The plan as a Mermaid drawing.
    fn to_mermaid(&self) -> String {
        self.plan.to_mermaid()
    }

    /// The plan as a page for a browser.
    pub(crate) fn to_html(&self) -> String {
        let page = Page::of_plan(&self.plan);
        let page = if let Some(text) = &self.text { page.pipeline(text.as_str()) } else { page };
        page.to_html()
    }

    /// The space of every handler: `cpu` or `gpu`.
    #[getter]
    fn spaces(&self) -> std::collections::BTreeMap<String, &'static str> {
        self.plan.handlers.iter().map(|handler| (handler.name.clone(), handler.space.name())).collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.plan.warnings.clone()
    }

    fn _repr_html_(&self) -> String {
        self.to_html()
    }

    fn __str__(&self) -> String {
        self.plan.to_text(false)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.plan.handlers.iter().map(|handler| handler.name.as_str()).collect();
        format!("<vramp.Plan {}>", names.join(" ! "))
    }
}
