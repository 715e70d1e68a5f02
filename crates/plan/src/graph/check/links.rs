//! Checks links: both ends exist and carry the same media, an input is fed once, and every required port is linked.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::catalog::{PortMedia, nearest};
use crate::graph::checked::Link;
use crate::graph::spec::{LinkEnd, LinkSpec};
use crate::text::{Mistake, clip};
use crate::words::PortType;

use super::{GraphChecker, list};

impl GraphChecker<'_> {
    pub(super) fn links(&mut self) {
        let mut fed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for link in self.spec.links() {
            let ends = [link.from.handler.0, link.to.handler.0];
            if let Some(unknown) = ends.iter().find(|at| **at >= self.handlers.len()) {
                let title =
                    format!("a link refers to handler {unknown}, but the graph has {} handlers", self.handlers.len());
                self.mistakes.push(Mistake::new(title, "expected a handler of this graph").at(place(link)));
                self.broken.extend(ends);
                continue;
            }
            if link.depth.is_some_and(|depth| !(1..=LinkSpec::MAX_DEPTH).contains(&depth)) {
                let title = format!("a link cannot have depth {}", link.depth.unwrap_or(0));
                let expected = format!("expected a depth from 1 to {}", LinkSpec::MAX_DEPTH);
                self.mistakes.push(Mistake::new(title, expected).at(place(link)));
            }
            let (Some(output), Some(input)) = (self.output(&link.from, link), self.input(&link.to, link)) else {
                self.broken.extend(ends);
                continue;
            };
            let (from, to) = (link.from.handler.0, link.to.handler.0);
            let (offered, accepted) = match (&self.handlers[from], &self.handlers[to]) {
                (Some(u), Some(v)) => (
                    port_type(u.entry.outputs[output].media),
                    port_type(v.entry.inputs[input].media_under(&v.settings)),
                ),
                _ => continue,
            };
            self.check_output(from, output, link);
            if let (Some(offered), Some(accepted)) = (offered, accepted)
                && offered != accepted
            {
                self.mistakes.push(
                    Mistake::new(
                        format!(
                            "{} carries {offered}, but {} takes {accepted}",
                            self.port(from, output, false),
                            self.port(to, input, true)
                        ),
                        format!("expected both ends to carry {accepted}"),
                    )
                    .at(place(link))
                    .hint(self.remedy(to, input).map(str::to_owned)),
                );
            }
            if let Some(other) = fed.insert((to, input), from) {
                let free: Vec<_> = self.free_inputs(to, &fed).collect();
                let port = self.port(to, input, true);
                self.mistakes.push(
                    Mistake::new(
                        format!("{port} is fed twice, by {} and by {}", self.names[other], self.names[from]),
                        "expected one link into an input",
                    )
                    .at(place(link))
                    .help(match free.first() {
                        Some(free) => format!("`{}.{free}` is free", self.names[to]),
                        None => "combine the two streams first with `mix` or `compositor`".to_owned(),
                    }),
                );
            }
            self.links.push(Link { from, output, to, input, policy: link.policy, depth: link.depth });
        }
    }

    /// Refuses a link from an output that sends nothing under the handler's settings.
    fn check_output(&mut self, from: usize, output: usize, link: &LinkSpec) {
        let Some(handler) = &self.handlers[from] else { return };
        if let Err(problem) = (handler.entry.outputs[output].links)(&handler.settings) {
            let title = format!("{}: {problem}", self.port(from, output, false));
            self.mistakes.push(Mistake::new(title, "expected a link from an output that sends frames").at(place(link)));
        }
    }

    /// What helps if an input does not accept what a link carries.
    fn remedy(&self, to: usize, input: usize) -> Option<&'static str> {
        self.handlers[to].as_ref().and_then(|handler| handler.entry.inputs[input].remedy)
    }

    /// Checks that every required input is fed and every handler with outputs is used.
    pub(super) fn ports(&mut self) {
        let fed: BTreeSet<(usize, usize)> = self.links.iter().map(|l| (l.to, l.input)).collect();
        let used: BTreeSet<usize> = self.links.iter().map(|l| l.from).collect();
        for at in 0..self.handlers.len() {
            let Some(handler) = &self.handlers[at] else { continue };
            if self.broken.contains(&at) {
                continue;
            }
            let place = self.spec.handlers()[at].place.0.clone();
            let entry = handler.entry;
            if entry.inputs.len() > 1 && !fed.contains(&(at, handler.lead)) {
                let port = entry.inputs[handler.lead];
                if !port.required {
                    let title = format!("{}: the lead input {} is not linked", self.names[at], port.name);
                    self.mistakes.push(
                        Mistake::new(title, "expected a link into the lead input")
                            .at(place.clone())
                            .help(format!("link {}.{}, or set lead to another input", self.names[at], port.name)),
                    );
                }
            }
            for (input, port) in entry.inputs.iter().enumerate() {
                if port.required && !fed.contains(&(at, input)) {
                    let name = self.port(at, input, true);
                    self.mistakes.push(
                        Mistake::new(format!("{name} is not linked"), "expected a link into this input")
                            .at(place.clone())
                            .help(format!("write `... ! {name}`, or put a source before the handler: `pattern ! ...`")),
                    );
                }
            }
            if !entry.outputs.is_empty() && !used.contains(&at) {
                let name = self.port(at, 0, false);
                self.mistakes.push(
                    Mistake::new(format!("{name} goes nowhere"), "expected a link from this output")
                        .at(place)
                        .help("end the chain with a sink: `... ! null` takes frames and counts them"),
                );
            }
        }
    }

    fn free_inputs(&self, handler: usize, fed: &BTreeMap<(usize, usize), usize>) -> impl Iterator<Item = &'static str> {
        let inputs = self.handlers[handler].as_ref().map_or(&[][..], |h| h.entry.inputs);
        let free: Vec<_> =
            (0..inputs.len()).filter(|i| !fed.contains_key(&(handler, *i))).map(|i| inputs[i].name).collect();
        free.into_iter()
    }

    /// The output that an end refers to; reports a mistake if the handler has no such output.
    fn output(&mut self, end: &LinkEnd, link: &LinkSpec) -> Option<usize> {
        let handler = self.handlers.get(end.handler.0)?.as_ref()?;
        let ports: Vec<_> = handler.outputs().collect();
        self.end(end, link, &ports, "output", "a sink ends a chain")
    }

    /// The input that an end refers to; reports a mistake if the handler has no such input.
    fn input(&mut self, end: &LinkEnd, link: &LinkSpec) -> Option<usize> {
        let handler = self.handlers.get(end.handler.0)?.as_ref()?;
        let ports: Vec<_> = handler.inputs().collect();
        self.end(end, link, &ports, "input", "a source begins a chain")
    }

    fn end(&mut self, end: &LinkEnd, link: &LinkSpec, ports: &[&'static str], side: &str, why: &str) -> Option<usize> {
        let found = match &end.port {
            Some(port) => ports.iter().position(|p| p == port),
            None => (!ports.is_empty()).then_some(0),
        };
        if found.is_none() {
            let name = &self.names[end.handler.0];
            let port = end.port.as_deref().map_or_else(String::new, |p| format!(" `{}`", clip(p)));
            self.mistakes.push(
                Mistake::new(
                    format!("{name} has no {side}{port}"),
                    if ports.is_empty() {
                        format!("expected no link here: {why}")
                    } else {
                        format!("expected one of {}", list(ports.iter().copied()))
                    },
                )
                .at(end.place.0.clone().or_else(|| place(link)))
                .nearest(end.port.as_deref().and_then(|p| nearest(p, ports.iter().copied()))),
            );
        }
        found
    }
}

fn place(link: &LinkSpec) -> Option<Range<usize>> {
    link.place.0.clone().or_else(|| link.to.place.0.clone())
}

/// The type of a port; `None` if the port takes or passes on several types, which are compared when the graph is planned.
fn port_type(media: PortMedia) -> Option<PortType> {
    match media {
        PortMedia::Video { .. } => Some(PortType::Video),
        PortMedia::Tensor { .. } => Some(PortType::Tensor),
        PortMedia::Data { .. } => Some(PortType::Data),
        PortMedia::Audio => Some(PortType::Audio),
        PortMedia::Every { .. } => None,
    }
}
