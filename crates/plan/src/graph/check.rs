//! From `GraphSpec` to `Graph`: every name, port, setting and link is checked, sources are probed, all mistakes are
//! reported together.
//!
//! Owns the checks and their wording.
//! Does not read files: it asks the probe it is given, and only when nothing else is wrong.
//!
//! Always: either a complete graph or at least one mistake; one cause is reported once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::catalog::{
    Catalog, Entry, Fallback, FormatRule, PortMedia, Probe, ProbeError, Probed, RateRule, Settings, SizeRule,
    ValueType, nearest,
};
use crate::text::{Mistake, clip, foreign};
use crate::words::{PortType, Until};

use super::checked::{Graph, Handler, Link};
use super::declare;
use super::order::running_order;
use super::spec::{End, GraphSpec, HandlerSpec, LinkSpec, is_name};

/// Why a spec is not a graph.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The graph as written is wrong.
    #[error("{}", titles(.0))]
    Mistakes(Vec<Mistake>),
    /// The graph is right, but these sources could not be looked at.
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
    pub fn check(spec: &GraphSpec, catalog: &Catalog, probe: &dyn Probe) -> Result<Graph, CheckError> {
        let mut check = Check::new(spec, catalog);
        check.names();
        check.links();
        check.ports();
        let order = check.order();
        if !check.mistakes.is_empty() {
            check.mistakes.sort_by_key(|m| m.span.as_ref().map(|s| s.start));
            return Err(CheckError::Mistakes(check.mistakes));
        }
        let mut handlers: Vec<Handler> = check.handlers.into_iter().flatten().collect();
        probe_sources(spec, &mut handlers, probe)?;
        declare::settings(spec, &mut handlers, probe)?;
        Ok(Graph { handlers, links: check.links, order, catalog: catalog.clone() })
    }
}

struct Check<'a> {
    spec: &'a GraphSpec,
    names: Vec<String>,
    /// None where the kind is unknown.
    handlers: Vec<Option<Handler>>,
    links: Vec<Link>,
    /// Handlers at the ends of links that have a mistake of their own: what that leaves unlinked is not another one.
    broken: BTreeSet<usize>,
    mistakes: Vec<Mistake>,
}

impl<'a> Check<'a> {
    fn new(spec: &'a GraphSpec, catalog: &'a Catalog) -> Check<'a> {
        let names = spec.names();
        let mut check = Check {
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
                format!("{} handlers are too many", spec.handlers().len()),
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
                            None => "`vramp inspect` lists them all".to_owned(),
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

    /// Reads the settings of one handler.
    fn handler(&mut self, at: usize, spec: &HandlerSpec, entry: &'static Entry) -> Handler {
        let name = self.names[at].clone();
        let mut settings = Settings::default();
        let (mut lead, mut until) = (0, Until::default());
        let several = entry.inputs.len() > 1;
        for (key, setting) in &spec.settings {
            let at_value = setting.place.0.clone();
            let text = setting.value.as_str();
            if let Some(declared) = entry.setting(key) {
                match declared.value.read(text) {
                    Some(value) => settings.set(key.as_str(), value),
                    None => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: `{}` is not a valid {key}", clip(text)),
                            format!("expected {}", declared.value.expects()),
                        )
                        .at(at_value)
                        .nearest(nearest(text, declared.value.words()))
                        .hint(foreign::value(text, declared.value, entry)),
                    ),
                }
            } else if several && key == "lead" {
                match entry.input(text) {
                    Some(input) => lead = input,
                    None => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: no input `{}` to follow", clip(text)),
                            format!("expected one of {}", list(entry.inputs.iter().map(|p| p.name))),
                        )
                        .at(at_value),
                    ),
                }
            } else if several && key == "until" {
                match text.parse() {
                    Ok(rule) => until = rule,
                    Err(_) => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: `{}` is not a valid until", clip(text)),
                            "expected lead or shortest",
                        )
                        .at(at_value)
                        .nearest(nearest(text, Until::ALL.map(Until::name))),
                    ),
                }
            } else if entry.open_settings {
                let number = ValueType::Number { min: f64::MIN, max: f64::MAX };
                if let Some(value) = number.read(text).or_else(|| ValueType::Text.read(text)) {
                    settings.set(key.as_str(), value);
                }
            } else {
                let known = entry.settings.iter().map(|s| s.name);
                let mistake = Mistake::new(
                    format!("{name}: unknown setting `{}`", clip(key)),
                    if entry.settings.is_empty() {
                        format!("{} has no settings of its own", entry.name)
                    } else {
                        format!("expected one of {}", list(known.clone()))
                    },
                );
                let near = nearest(key, known.chain(["name", "on-error"]));
                self.mistakes
                    .push(mistake.at(setting.key_place.0.clone()).nearest(near).hint(foreign::setting(key, entry)));
            }
        }
        self.missing_settings(&name, spec, entry);
        for declared in entry.settings {
            if let (Fallback::Is(default), false) = (declared.fallback, spec.settings.contains_key(declared.name)) {
                settings.set(declared.name, declared.value.read(default).expect("the catalogue validated defaults"));
            }
        }
        let fits = spec.settings.keys().all(|key| settings.get(key).is_some() || entry.setting(key).is_none());
        if let (true, Err(problem)) = (fits, (entry.check)(&settings)) {
            self.mistakes.push(
                Mistake::new(format!("{name}: {problem}"), "expected settings that make sense together")
                    .at(spec.place.0.clone()),
            );
        }
        Handler {
            name,
            entry,
            settings,
            on_error: spec.on_error,
            lead,
            until,
            probed: Probed::default(),
            declared: None,
            small_bytes: None,
        }
    }

    fn missing_settings(&mut self, name: &str, spec: &HandlerSpec, entry: &'static Entry) {
        for declared in entry.settings {
            if declared.fallback == Fallback::Required && !spec.settings.contains_key(declared.name) {
                self.mistakes.push(
                    Mistake::new(
                        format!("{name}: {} is missing", declared.name),
                        format!("expected {}={}", declared.name, declared.value.expects()),
                    )
                    .at(spec.place.0.clone())
                    .help(format!("for example `{}`", entry.example)),
                );
            }
        }
        for group in entry.one_of {
            let given = group.iter().filter(|key| spec.settings.contains_key(**key)).count();
            if given != 1 {
                self.mistakes.push(
                    Mistake::new(
                        format!(
                            "{name}: {} of {} given",
                            if given == 0 { "none" } else { "more than one" },
                            list(group.iter().copied())
                        ),
                        format!("expected exactly one of {}", list(group.iter().copied())),
                    )
                    .at(spec.place.0.clone()),
                );
            }
        }
    }

    fn names(&mut self) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, name) in self.names.iter().enumerate() {
            let place = self.spec.handlers()[at].place.0.clone();
            if self.spec.handlers()[at].name.is_some() && !is_name(name) {
                self.mistakes.push(
                    Mistake::new(
                        format!("`{}` cannot be a name", clip(name)),
                        "expected a letter, then letters, digits, - or _, at most 64",
                    )
                    .at(place.clone()),
                );
            }
            if let Some(other) = first.insert(name, at) {
                self.mistakes.push(
                    Mistake::new(format!("two handlers are called `{name}`"), "expected a name of its own")
                        .at(place)
                        .help(format!("the other one is handler {} of the pipeline", other + 1)),
                );
            }
        }
    }

    fn links(&mut self) {
        let mut fed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for link in self.spec.links() {
            let ends = [link.from.handler.0, link.to.handler.0];
            if let Some(unknown) = ends.iter().find(|at| **at >= self.handlers.len()) {
                let title = format!("a link goes to handler {unknown}, and there are {}", self.handlers.len());
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
                (Some(u), Some(v)) => {
                    (port_type(u.entry.outputs[output].media), port_type(v.entry.inputs[input].media))
                }
                _ => continue,
            };
            if offered != accepted {
                self.mistakes.push(
                    Mistake::new(
                        format!(
                            "{} carries {offered}, {} takes {accepted}",
                            self.port(from, output, false),
                            self.port(to, input, true)
                        ),
                        format!("expected both ends to carry {accepted}"),
                    )
                    .at(place(link)),
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
                        None => "put both together first, with `mix` or `compositor`".to_owned(),
                    }),
                );
            }
            self.links.push(Link { from, output, to, input, policy: link.policy, depth: link.depth });
        }
    }

    fn free_inputs(&self, handler: usize, fed: &BTreeMap<(usize, usize), usize>) -> impl Iterator<Item = &'static str> {
        let inputs = self.handlers[handler].as_ref().map_or(&[][..], |h| h.entry.inputs);
        let free: Vec<_> =
            (0..inputs.len()).filter(|i| !fed.contains_key(&(handler, *i))).map(|i| inputs[i].name).collect();
        free.into_iter()
    }

    /// Which output an end means; a mistake is noted where it means none.
    fn output(&mut self, end: &End, link: &LinkSpec) -> Option<usize> {
        let handler = self.handlers.get(end.handler.0)?.as_ref()?;
        let ports: Vec<_> = handler.outputs().collect();
        self.end(end, link, &ports, "output", "a sink ends a chain")
    }

    /// Which input an end means; a mistake is noted where it means none.
    fn input(&mut self, end: &End, link: &LinkSpec) -> Option<usize> {
        let handler = self.handlers.get(end.handler.0)?.as_ref()?;
        let ports: Vec<_> = handler.inputs().collect();
        self.end(end, link, &ports, "input", "a source begins a chain")
    }

    fn end(&mut self, end: &End, link: &LinkSpec, ports: &[&'static str], side: &str, why: &str) -> Option<usize> {
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

    /// Every required input fed, every handler with outputs used.
    fn ports(&mut self) {
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
                    let title = format!("{} follows its input {}, which is not linked", self.names[at], port.name);
                    self.mistakes.push(
                        Mistake::new(title, "expected a link into its lead input")
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
                            .help(format!("write `... ! {name}`, or put a source before it: `pattern ! ...`")),
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

    /// An order in which every handler comes after the ones that feed it; a mistake where there is a cycle.
    fn order(&mut self) -> Vec<usize> {
        let n = self.handlers.len();
        let (order, waiting) = running_order(n, self.links.iter().map(|l| (l.from, l.to)));
        if order.len() < n
            && let Some(cycle) = self.cycle(&waiting)
        {
            let path: Vec<_> = cycle.iter().chain(&cycle[..1]).take(12).map(|v| self.names[*v].as_str()).collect();
            let more = if cycle.len() > 11 { " -> ..." } else { "" };
            self.mistakes.push(
                Mistake::new(
                    format!("the graph has a cycle: {}{more}", path.join(" -> ")),
                    "expected links that lead from sources to sinks",
                )
                .at(self.spec.handlers()[cycle[0]].place.0.clone())
                .help("take one of these links out"),
            );
        }
        order
    }

    /// Some cycle among handlers that still wait for input: walk backwards until a handler comes up again.
    fn cycle(&self, waiting: &[usize]) -> Option<Vec<usize>> {
        let mut feeder = vec![None; waiting.len()];
        for link in self.links.iter().filter(|l| waiting[l.to] > 0 && waiting[l.from] > 0) {
            feeder[link.to].get_or_insert(link.from);
        }
        let mut at = (0..waiting.len()).find(|v| feeder[*v].is_some())?;
        let mut seen = BTreeSet::new();
        while seen.insert(at) {
            at = feeder[at]?;
        }
        let mut cycle = vec![at];
        let mut v = feeder[at]?;
        while v != at {
            cycle.push(v);
            v = feeder[v]?;
        }
        cycle.reverse();
        let first = (0..cycle.len()).min_by_key(|i| cycle[*i])?;
        cycle.rotate_left(first);
        Some(cycle)
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

/// Asks what sources hold, and refuses a graph in which a size or format is still unknown.
fn probe_sources(spec: &GraphSpec, handlers: &mut [Handler], probe: &dyn Probe) -> Result<(), CheckError> {
    let (mut mistakes, mut failed) = (Vec::new(), Vec::new());
    for (at, handler) in handlers.iter_mut().enumerate() {
        if handler.entry.small.is_some() {
            handler.small_bytes = probe.small_bytes(handler.entry, &handler.settings);
        }
        if !handler.entry.inputs.is_empty() {
            continue;
        }
        // A blocking source is asked even where its settings say all: a missing file is better found now.
        let probed = handler.entry.blocking
            || handler.entry.outputs.iter().any(|o| {
                matches!(o.format, FormatRule::Probed)
                    || matches!(o.size, SizeRule::Probed(_))
                    || matches!(o.rate, RateRule::Probed(_))
            });
        if probed {
            match probe.probe(handler.entry, &handler.settings) {
                Ok(probed) => handler.probed = probed,
                Err(error) => {
                    failed.push((handler.name.clone(), error));
                    continue;
                }
            }
        }
        for output in handler.entry.outputs {
            if !matches!(output.media, PortMedia::Video { .. }) {
                continue;
            }
            let place = spec.handlers()[at].place.0.clone();
            let size = match output.size {
                SizeRule::Probed(key) => handler.probed.size.or_else(|| handler.settings.size(key?)),
                SizeRule::Setting(key) => handler.settings.size(key),
                _ => None,
            };
            if size.is_none() {
                let way_out = match output.size {
                    SizeRule::Probed(Some(key)) | SizeRule::Setting(key) => format!("set {key}=WIDTHxHEIGHT"),
                    _ => "register it with a probe that returns the size (`Kind::probed`)".to_owned(),
                };
                mistakes.push(unknown(handler, "size", &way_out, place.clone()));
            }
            let format = match output.format {
                FormatRule::Probed => handler.probed.format,
                FormatRule::Setting(key) => handler.settings.format(key),
                _ => continue,
            };
            if format.is_none() {
                mistakes.push(unknown(handler, "format", "convert the input to a known format", place));
            }
        }
    }
    if !failed.is_empty() {
        return Err(CheckError::Probe(failed));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(CheckError::Mistakes(mistakes)) }
}

fn unknown(handler: &Handler, what: &str, way_out: &str, place: Option<Range<usize>>) -> Mistake {
    Mistake::new(
        format!("{}: the {what} of its frames is still unknown after looking at the source", handler.name),
        format!("expected a known {what}"),
    )
    .at(place)
    .help(way_out)
}

fn place(link: &LinkSpec) -> Option<Range<usize>> {
    link.place.0.clone().or_else(|| link.to.place.0.clone())
}

fn port_type(media: PortMedia) -> PortType {
    match media {
        PortMedia::Video { .. } => PortType::Video,
        PortMedia::Tensor { .. } => PortType::Tensor,
        PortMedia::Data => PortType::Data,
    }
}

fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}
