//! From `GraphSpec` to `Graph`: runs every check, then probes the sources, and reports all mistakes together.
//!
//! This file checks kinds and names; [`settings`], [`links`], [`cycles`] and [`sources`] do the other checks. The probe
//! is only called if there are no other mistakes.
//!
//! Invariants: the result is a complete graph, at least one mistake, or at least one source that could not be probed.
//! Each cause is reported only once.

mod cycles;
mod links;
mod settings;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, ProbeError, SourceProbe};
use crate::text::{Mistake, clip, foreign};

use super::checked::{Graph, Handler, Link};
use super::declare;
use super::spec::{GraphSpec, is_name};

/// The reason a spec is not a valid graph.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The graph as written is wrong.
    #[error("{}", titles(.0))]
    Mistakes(Vec<Mistake>),
    /// The graph as written is valid, but these sources could not be probed.
    #[error("{}", failures(.0))]
    Probe(Vec<(String, ProbeError)>),
}

crate::debug_as_display!(CheckError);

fn failures(failed: &[(String, ProbeError)]) -> String {
    let lines: Vec<_> = failed.iter().map(|(handler, error)| format!("{handler}: {error}")).collect();
    lines.join("\n")
}

fn titles(mistakes: &[Mistake]) -> String {
    let lines: Vec<_> = mistakes.iter().map(|m| format!("{}: {}", m.title, m.expected)).collect();
    lines.join("\n")
}

impl Graph {
    /// Checks a spec against a catalogue and probes its sources.
    pub fn check(spec: &GraphSpec, catalog: &Catalog, probe: &dyn SourceProbe) -> Result<Graph, CheckError> {
        let mut check = GraphChecker::new(spec, catalog);
        check.names();
        check.links();
        check.ports();
        let order = check.order();
        if !check.mistakes.is_empty() {
            check.mistakes.sort_by_key(|m| m.span.as_ref().map(|s| s.start));
            return Err(CheckError::Mistakes(check.mistakes));
        }
        let mut handlers: Vec<Handler> = check.handlers.into_iter().flatten().collect();
        sources::probe(spec, &mut handlers, probe)?;
        declare::settings(spec, &mut handlers, probe)?;
        Ok(Graph { handlers, links: check.links, order, catalog: catalog.clone() })
    }
}

struct GraphChecker<'a> {
    spec: &'a GraphSpec,
    names: Vec<String>,
    /// `None` if the kind is unknown.
    handlers: Vec<Option<Handler>>,
    links: Vec<Link>,
    /// Handlers at the ends of faulty links. Ports that these links leave open are not reported again.
    broken: BTreeSet<usize>,
    mistakes: Vec<Mistake>,
}

impl<'a> GraphChecker<'a> {
    fn new(spec: &'a GraphSpec, catalog: &'a Catalog) -> GraphChecker<'a> {
        let names = spec.names();
        let mut check = GraphChecker {
            spec,
            names,
            handlers: Vec::new(),
            links: Vec::new(),
            broken: BTreeSet::new(),
            mistakes: Vec::new(),
        };
        let fed: BTreeSet<usize> = spec.links().iter().map(|l| l.to.handler.0).collect();
        if spec.handlers().is_empty() {
            check.mistakes.push(
                Mistake::new("the pipeline is empty", "expected at least a source and a sink")
                    .help("such as `pattern ! null`"),
            );
        }
        if spec.handlers().len() > GraphSpec::MAX_HANDLERS {
            check.mistakes.push(Mistake::new(
                format!("too many handlers: {}", spec.handlers().len()),
                format!("expected at most {}", GraphSpec::MAX_HANDLERS),
            ));
            return check;
        }
        for (at, handler) in spec.handlers().iter().enumerate() {
            let checked = match catalog.find(&handler.kind, fed.contains(&at)) {
                Some(entry) => Some(check.handler(at, handler, entry)),
                None => {
                    check.mistakes.push(
                        Mistake::new(
                            format!("unknown handler `{}`", clip(&handler.kind)),
                            "expected the kind of a handler",
                        )
                        .at(handler.place.0.clone())
                        .help(match catalog.nearest(&handler.kind) {
                            Some(name) => format!("did you mean `{name}`?"),
                            None => "`vramp inspect` lists all kinds".to_owned(),
                        })
                        .hint(foreign::kind(&handler.kind, catalog)),
                    );
                    None
                }
            };
            check.handlers.push(checked);
        }
        check
    }

    fn names(&mut self) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, name) in self.names.iter().enumerate() {
            let place = self.spec.handlers()[at].place.0.clone();
            if self.spec.handlers()[at].name.is_some() && !is_name(name) {
                self.mistakes.push(
                    Mistake::new(
                        format!("`{}` cannot be a name", clip(name)),
                        "expected a letter, then letters, digits, - and _, at most 64 characters",
                    )
                    .at(place.clone()),
                );
            }
            if let Some(other) = first.insert(name, at) {
                self.mistakes.push(
                    Mistake::new(format!("two handlers are called `{name}`"), "expected different names")
                        .at(place)
                        .help(format!("the other handler is number {} of the pipeline", other + 1)),
                );
            }
        }
    }

    fn port(&self, handler: usize, port: usize, input: bool) -> String {
        let name = &self.names[handler];
        match &self.handlers[handler] {
            Some(h) if input => format!("{name}.{}", h.entry.inputs[port].name),
            Some(h) => format!("{name}.{}", h.entry.outputs[port].name),
            None => name.clone(),
        }
    }
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
