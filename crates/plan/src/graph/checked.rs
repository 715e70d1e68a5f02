//! The checked graph: names, ports, types and settings are valid and the sources are probed.
//!
//! Invariants: the graph has no cycle. Every required input is fed exactly once. Every source has a known size.

use crate::catalog::{Catalog, DeclaredShader, Entry, KernelDesc, Probed, SettingValues};
use crate::words::{OnError, Policy, Size, Until};

use super::spec::GraphSpec;

#[derive(Debug, Clone)]
pub struct Handler {
    pub name: String,
    pub entry: &'static Entry,
    /// Includes the default of each setting that is not given.
    pub settings: SettingValues,
    pub on_error: OnError,
    /// Index of the lead input.
    pub lead: usize,
    /// Only used if the handler has several inputs.
    pub until: Until,
    /// The result of probing, for a source.
    pub probed: Probed,
    /// The shader, for a handler made from a user's text.
    pub declared: Option<DeclaredShader>,
    /// Bytes of the handler's small data, if they depend on a file.
    pub small_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Index of the producer.
    pub from: usize,
    /// Index of the producer's output.
    pub output: usize,
    /// Index of the consumer.
    pub to: usize,
    /// Index of the consumer's input.
    pub input: usize,
    /// `None` if the user did not set a policy.
    pub policy: Option<Policy>,
    /// `None` if the user did not set a depth.
    pub depth: Option<u32>,
}

#[derive(Debug, Clone)]
pub struct Graph {
    pub(super) handlers: Vec<Handler>,
    pub(super) links: Vec<Link>,
    pub(super) order: Vec<usize>,
    pub(super) catalog: Catalog,
}

impl Graph {
    /// An empty spec to add handlers and links to; [`Graph::check`] turns the spec into a graph.
    pub fn builder() -> GraphSpec {
        GraphSpec::new()
    }

    /// In the order in which the handlers were written.
    pub fn handlers(&self) -> &[Handler] {
        &self.handlers
    }

    /// Ordered by the ends of the links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Indices of the handlers in running order: each handler comes after its producers.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The same graph with another frame size at a source, for a stream that changes size during a run.
    #[must_use]
    pub fn with_source_size(&self, source: &str, size: Size) -> Graph {
        let mut graph = self.clone();
        for handler in graph.handlers.iter_mut().filter(|handler| handler.name == source) {
            handler.probed.size = Some(size);
        }
        graph
    }

    /// The same graph with another handler under the name of this handler: the same kind, with other settings.
    #[must_use]
    pub fn with_handler(&self, handler: Handler) -> Graph {
        let mut graph = self.clone();
        if let Some(own) = graph.handlers.iter_mut().find(|own| own.name == handler.name) {
            *own = handler;
        }
        graph
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

impl Handler {
    /// The kernel of the handler's shader, or of its entry if there is no shader.
    pub fn kernel(&self) -> Option<KernelDesc> {
        self.declared.as_ref().map(|declared| declared.kernel).or_else(|| self.entry.kernel.under(&self.settings))
    }

    /// The names of the handler's input ports.
    pub fn inputs(&self) -> impl Iterator<Item = &'static str> {
        self.entry.inputs.iter().map(|p| p.name)
    }

    /// The names of the handler's output ports.
    pub fn outputs(&self) -> impl Iterator<Item = &'static str> {
        self.entry.outputs.iter().map(|p| p.name)
    }
}
