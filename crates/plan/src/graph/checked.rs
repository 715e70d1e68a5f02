//! Graph: a spec whose names, ports, types and settings have been checked and whose sources have been probed.
//!
//! Owns the checked handlers and links and an order in which the handlers can run.
//! Does not decide formats, spaces or lanes.
//!
//! Always: acyclic; every required input is fed once; every source knows its size.

use crate::catalog::{Catalog, DeclaredShader, Entry, KernelDesc, Probed, SettingValues};
use crate::words::{OnError, Policy, Size, Until};

use super::spec::GraphSpec;

/// A checked handler.
#[derive(Debug, Clone)]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// What it is.
    pub entry: &'static Entry,
    /// Its settings, defaults filled in.
    pub settings: SettingValues,
    /// What happens when it fails on a frame.
    pub on_error: OnError,
    /// Index of the input whose frames it follows.
    pub lead: usize,
    /// When it ends, with several inputs.
    pub until: Until,
    /// What its source was found to hold.
    pub probed: Probed,
    /// What the user's text that it is made from turned out to be.
    pub declared: Option<DeclaredShader>,
    /// How large its small data are, if a file tells.
    pub small_bytes: Option<u64>,
}

/// A checked link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The producing handler.
    pub from: usize,
    /// Which of its outputs.
    pub output: usize,
    /// The consuming handler.
    pub to: usize,
    /// Which of its inputs.
    pub input: usize,
    /// How it delivers, where the user said so.
    pub policy: Option<Policy>,
    /// How many frames it can hold, where the user said so.
    pub depth: Option<u32>,
}

/// A checked graph, ready to be planned.
#[derive(Debug, Clone)]
pub struct Graph {
    pub(super) handlers: Vec<Handler>,
    pub(super) links: Vec<Link>,
    pub(super) order: Vec<usize>,
    pub(super) catalog: Catalog,
}

impl Graph {
    /// An empty graph to add handlers to and connect them; [`Graph::check`] makes it a graph.
    pub fn builder() -> GraphSpec {
        GraphSpec::new()
    }

    /// The handlers in the order they were written.
    pub fn handlers(&self) -> &[Handler] {
        &self.handlers
    }

    /// The links, ordered by their ends.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Indices of the handlers in an order in which each comes after the ones that feed it.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The same graph with a source found to hold frames of another size, as when a stream changes in the middle.
    #[must_use]
    pub fn with_source_size(&self, source: &str, size: Size) -> Graph {
        let mut graph = self.clone();
        for handler in graph.handlers.iter_mut().filter(|handler| handler.name == source) {
            handler.probed.size = Some(size);
        }
        graph
    }

    /// The catalogue its handlers come from.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}

impl Handler {
    /// What it computes on each frame: what its text says, or its entry.
    pub fn kernel(&self) -> Option<KernelDesc> {
        self.declared.as_ref().map(|declared| declared.kernel).or_else(|| self.entry.kernel.under(&self.settings))
    }

    /// Its input ports by name.
    pub fn inputs(&self) -> impl Iterator<Item = &'static str> {
        self.entry.inputs.iter().map(|p| p.name)
    }

    /// Its output ports by name.
    pub fn outputs(&self) -> impl Iterator<Item = &'static str> {
        self.entry.outputs.iter().map(|p| p.name)
    }
}
