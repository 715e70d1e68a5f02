//! `Graph`: a pipeline that is built from handlers and links instead of text.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vramp::plan::{FromEnd, GraphSpec, HandlerId, HandlerSpec, OnError, Policy, ToEnd, write_text};

use crate::values::{key_of, text_of};

#[pyclass(frozen, module = "vramp", name = "Graph")]
#[derive(Default)]
pub(crate) struct PyGraph {
    spec: Mutex<GraphSpec>,
}

impl PyGraph {
    fn lock(&self) -> MutexGuard<'_, GraphSpec> {
        self.spec.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn spec(&self) -> GraphSpec {
        self.lock().clone()
    }
}

#[pymethods]
impl PyGraph {
    #[new]
    fn new() -> PyGraph {
        PyGraph::default()
    }

    /// Adds a handler of a kind, such as `blur`, with its settings as keyword arguments.
    #[pyo3(signature = (kind, /, name = None, **settings))]
    fn add(
        slf: &Bound<'_, Self>,
        kind: &str,
        name: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyNode> {
        let registry = crate::handler::registry(slf.py())?;
        let is_known =
            |key: &str| registry.catalog().entries().any(|entry| entry.name == kind && entry.setting(key).is_some());
        let mut handler = HandlerSpec::new(kind);
        if let Some(name) = name {
            handler = handler.named(name);
        }
        for (key, value) in settings.into_iter().flatten() {
            let key = key_of(&key.extract::<String>()?, is_known);
            let text = text_of(&value)?;
            if key == "on-error" {
                let on_error = OnError::ALL.into_iter().find(|known| known.name() == text);
                let wrong =
                    || PyTypeError::new_err(format!("on_error cannot be `{text}`; expected stop, skip or retry"));
                handler = handler.on_error(on_error.ok_or_else(wrong)?);
            } else {
                handler = handler.set(key, text);
            }
        }
        let id = slf.get().lock().add(handler);
        Ok(PyNode { graph: slf.clone().unbind(), id, kind: kind.to_owned() })
    }

    /// Links an output to an input. A handler stands for its main port. `policy` is `latest`, `queue` or `lossless`.
    #[pyo3(signature = (source, target, /, policy = None, depth = None))]
    fn connect(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        policy: Option<&str>,
        depth: Option<u32>,
    ) -> PyResult<()> {
        let from: FromEnd = if let Ok(node) = source.cast::<PyNode>() {
            node.get().id.into()
        } else if let Ok(port) = source.cast::<PyPort>() {
            let port = port.get();
            if !port.is_output {
                return Err(PyTypeError::new_err("a link starts at an output"));
            }
            port.id.output(&port.name)
        } else {
            return Err(PyTypeError::new_err("a link starts at a handler or at one of its outputs"));
        };
        let to: ToEnd = if let Ok(node) = target.cast::<PyNode>() {
            node.get().id.into()
        } else if let Ok(port) = target.cast::<PyPort>() {
            let port = port.get();
            if port.is_output {
                return Err(PyTypeError::new_err("a link ends at an input"));
            }
            port.id.input(&port.name)
        } else {
            return Err(PyTypeError::new_err("a link ends at a handler or at one of its inputs"));
        };
        let policy = match policy {
            None => None,
            Some("latest") => Some(Policy::Latest),
            Some("queue") => Some(Policy::Queue),
            Some("lossless") => Some(Policy::Lossless),
            Some(_) => return Err(PyTypeError::new_err("policy: expected `latest`, `queue` or `lossless`")),
        };
        let mut spec = self.lock();
        let link = spec.connect(from, to);
        if let Some(policy) = policy {
            link.policy(policy);
        }
        if let Some(depth) = depth {
            link.depth(depth);
        }
        Ok(())
    }

    /// The graph as the text of a pipeline.
    fn __str__(&self) -> String {
        write_text(&self.lock())
    }

    fn __repr__(&self) -> String {
        let spec = self.lock();
        format!("<vramp.Graph of {} handlers and {} links>", spec.handlers().len(), spec.links().len())
    }
}

/// A handler of a graph.
#[pyclass(frozen, module = "vramp", name = "Node")]
pub(crate) struct PyNode {
    graph: Py<PyGraph>,
    id: HandlerId,
    kind: String,
}

#[pymethods]
impl PyNode {
    /// The outputs by name: `node.outputs["video"]`.
    #[getter]
    fn outputs(slf: Bound<'_, Self>) -> PyPorts {
        PyPorts { node: slf.unbind(), is_output: true }
    }

    /// The inputs by name.
    #[getter]
    fn inputs(slf: Bound<'_, Self>) -> PyPorts {
        PyPorts { node: slf.unbind(), is_output: false }
    }

    #[getter]
    fn kind(&self) -> &str {
        &self.kind
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Node {}>", self.kind)
    }
}

/// The ports of a handler on one side.
#[pyclass(frozen, module = "vramp", name = "Ports")]
pub(crate) struct PyPorts {
    node: Py<PyNode>,
    is_output: bool,
}

#[pymethods]
impl PyPorts {
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<PyPort> {
        let node = self.node.get();
        let registry = crate::handler::registry(py)?;
        let entries = registry.catalog().entries().filter(|entry| entry.name == node.kind).collect::<Vec<_>>();
        let has = |entry: &&vramp::plan::catalog::Entry| {
            if self.is_output { entry.output(name).is_some() } else { entry.input(name).is_some() }
        };
        // The ports of an unknown kind are checked with the graph.
        if !entries.is_empty() && !entries.iter().any(has) {
            let side = if self.is_output { "output" } else { "input" };
            let mut names = Vec::new();
            for entry in entries {
                names.extend(entry.outputs.iter().filter(|_| self.is_output).map(|port| port.name));
                names.extend(entry.inputs.iter().filter(|_| !self.is_output).map(|port| port.name));
            }
            let text = format!("{} has no {side} `{name}`; it has: {}", node.kind, names.join(", "));
            return Err(PyKeyError::new_err(text));
        }
        Ok(PyPort { graph: node.graph.clone_ref(py), id: node.id, name: name.to_owned(), is_output: self.is_output })
    }
}

/// A port of a handler.
#[pyclass(frozen, module = "vramp", name = "Port")]
pub(crate) struct PyPort {
    /// Keeps the graph that the port belongs to.
    #[expect(dead_code, reason = "the port is meaningless without its graph")]
    graph: Py<PyGraph>,
    id: HandlerId,
    name: String,
    is_output: bool,
}

#[pymethods]
impl PyPort {
    fn __repr__(&self) -> String {
        format!("<vramp.Port {} ({})>", self.name, if self.is_output { "output" } else { "input" })
    }
}
