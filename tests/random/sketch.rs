//! Random graphs: their handlers and links, what is known about their results, and how to shrink them.

use std::collections::{BTreeMap, BTreeSet};

use vramp::plan::catalog::{Entry, Family, PortMedia, SizeRule, TensorRule};
use vramp::plan::{
    Content, GraphSpec, Handler, HandlerSpec, LinkEnd, OnError, Plan, PlannedLink, Profile, RunOptions, Space, Until,
};
use vramp::runtime::{FramePool, Handles, Registry, Setup};

use super::kinds::{FACTS, TENSORS};
use super::trouble::{ANNOTATE, STUMBLES, TRIPS};

/// A graph without its sinks. `spec` adds a sink after every output without a consumer.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub entry: &'static Entry,
    pub spec: HandlerSpec,
    /// Input ports, each with the output that feeds it. Empty for sources.
    pub inputs: Vec<(String, Tap)>,
    /// The kind of sink after each output that has no other consumer.
    pub sink: Sink,
}

/// An output of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tap {
    pub node: usize,
    pub port: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sink {
    Null,
    Collects,
    App,
}

impl Sink {
    fn spec(self) -> HandlerSpec {
        match self {
            Sink::Null => HandlerSpec::new("null"),
            Sink::Collects => HandlerSpec::new("collects"),
            Sink::App => HandlerSpec::new("app").set("format", "any").set("space", "any"),
        }
    }
}

/// Graphs with larger frames are not drawn, because they would be slow.
const MOST_PIXELS: u64 = 40_000;

/// The handler whose first failure stops the run, with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopping {
    pub name: String,
    pub each: u64,
    pub from: u64,
}

/// The note that a frame has under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedNote {
    pub what: String,
    /// False if a delay has moved the frame to another number since the note was attached.
    pub is_of_this_number: bool,
}

impl Node {
    pub fn new(entry: &'static Entry, spec: HandlerSpec) -> Node {
        Node { entry, spec, inputs: Vec::new(), sink: Sink::Null }
    }

    pub fn setting(&self, key: &str) -> Option<&str> {
        self.spec.settings.get(key).map(|setting| setting.value.as_str())
    }

    fn taps(&self, node: usize) -> impl Iterator<Item = Tap> {
        self.entry.outputs.iter().map(move |output| Tap { node, port: output.name })
    }

    fn lead(&self) -> Option<Tap> {
        let named = |(port, _): &&(String, Tap)| Some(port.as_str()) == self.setting("lead");
        self.inputs.iter().find(named).or(self.inputs.first()).map(|(_, from)| *from)
    }

    pub fn until(&self) -> Option<Until> {
        (self.inputs.len() > 1).then(|| self.setting("until").and_then(|word| word.parse().ok()).unwrap_or_default())
    }

    /// Whether the handler fails on some frames, which its `on-error` then decides about.
    pub fn fails(&self) -> bool {
        [STUMBLES.name, TRIPS.name].contains(&self.entry.name) && self.setting("how") != Some("filters")
    }
}

impl Sketch {
    /// The graph as text, with its sinks.
    pub fn text(&self) -> String {
        vramp::plan::write_text(&self.spec())
    }

    pub fn spec(&self) -> GraphSpec {
        let mut spec = GraphSpec::new();
        let ids: Vec<_> = self.nodes.iter().map(|node| spec.add(node.spec.clone())).collect();
        // First ports are not named, so that the text is shorter.
        let output = |tap: Tap| match self.nodes[tap.node].entry.output(tap.port) {
            Some(0) => LinkEnd::from(ids[tap.node]),
            _ => ids[tap.node].port(tap.port),
        };
        for (at, node) in self.nodes.iter().enumerate() {
            for (port, from) in &node.inputs {
                let is_first = node.entry.input(port) == Some(0);
                let to = if is_first { LinkEnd::from(ids[at]) } else { ids[at].port(port.as_str()) };
                spec.connect(output(*from), to);
            }
        }
        for tap in self.open() {
            let sink = spec.add(self.nodes[tap.node].sink.spec());
            spec.connect(output(tap), sink);
        }
        spec
    }

    /// The outputs without a consumer, in the order of their sinks, which follow all other handlers.
    pub fn open(&self) -> Vec<Tap> {
        let taps = self.nodes.iter().enumerate().flat_map(|(at, node)| node.taps(at));
        taps.filter(|tap| !self.is_read(*tap)).collect()
    }

    /// The names of the sinks of one kind, with the outputs that feed them.
    pub fn sinks(&self, kind: Sink) -> Vec<(String, Tap)> {
        let names = self.spec().names().split_off(self.nodes.len());
        names.into_iter().zip(self.open()).filter(|(_, tap)| self.nodes[tap.node].sink == kind).collect()
    }

    /// The kinds of the handlers.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.spec.kind.as_str())
    }

    /// The number of handlers that are not sources.
    pub fn handlers(&self) -> usize {
        self.nodes.iter().filter(|node| !node.inputs.is_empty()).count()
    }

    /// Whether a handler may end before one of its producers, because it has several inputs.
    pub fn ends_early(&self) -> bool {
        self.nodes.iter().any(|node| node.inputs.len() > 1)
    }

    /// Whether a link may drop frames, because its source cannot wait.
    pub fn is_live(&self) -> bool {
        self.nodes.iter().any(|node| node.setting("live") == Some("true"))
    }

    /// Whether frames may fail.
    pub fn fails(&self) -> bool {
        self.nodes.iter().any(Node::fails)
    }

    /// The handler whose failure stops the run. A graph has at most one.
    pub fn stopping(&self) -> Option<Stopping> {
        let at = self.nodes.iter().position(|node| node.fails() && node.spec.on_error == OnError::Stop)?;
        let number = |key: &str, default| self.nodes[at].setting(key).and_then(|n| n.parse().ok()).unwrap_or(default);
        Some(Stopping { name: self.spec().names()[at].clone(), each: number("each", 3), from: number("from", 0) })
    }

    /// The notes of `annotate` that every frame of an output has, by key.
    pub fn notes_at(&self, tap: Tap) -> BTreeMap<String, ExpectedNote> {
        let (mut found, mut is_of_this_number) = (BTreeMap::new(), true);
        let mut next = Some(tap);
        while let Some(Tap { node, .. }) = next {
            let node = &self.nodes[node];
            if node.entry.name == ANNOTATE.name {
                let what = node.setting("what").unwrap_or("number").to_owned();
                let key = node.setting("key").unwrap_or("a").to_owned();
                found.entry(key).or_insert(ExpectedNote { what, is_of_this_number });
            }
            let is_delay = node.entry.name == "delay" && node.setting("frames") != Some("0");
            is_of_this_number &= !is_delay || node.setting("keep-times") == Some("true");
            next = node.lead();
        }
        found
    }

    fn is_read(&self, tap: Tap) -> bool {
        self.nodes.iter().any(|node| node.inputs.iter().any(|(_, from)| *from == tap))
    }

    fn taps_mut(&mut self) -> impl Iterator<Item = &mut Tap> {
        self.nodes.iter_mut().flat_map(|node| &mut node.inputs).map(|(_, from)| from)
    }

    // ---- shrinking

    /// Removes handlers and links, and then settings, as long as the graph still fails.
    pub fn shrunk(&self, fails: impl Fn(&Sketch) -> bool) -> Sketch {
        let mut least = self.clone();
        while let Some(smaller) = least.smaller().into_iter().find(|smaller| fails(smaller)) {
            least = smaller;
        }
        while let Some(plainer) = least.plainer().into_iter().find(|plainer| fails(plainer)) {
            least = plainer;
        }
        least
    }

    fn smaller(&self) -> Vec<Sketch> {
        let all = || (0..self.nodes.len()).rev();
        let shorter = all().filter_map(|at| self.without(at));
        let cut = all().filter_map(|at| self.cut_before(at));
        let unlinked = all().flat_map(|at| (1..self.nodes[at].inputs.len()).map(move |input| self.unlinked(at, input)));
        shorter.chain(cut).chain(unlinked).collect()
    }

    /// The graph without one link.
    fn unlinked(&self, at: usize, input: usize) -> Sketch {
        let mut smaller = self.clone();
        smaller.nodes[at].inputs.remove(input);
        smaller.remove_idle_sources();
        smaller
    }

    /// The graph without one handler. The handler's consumers are fed by the producer of its lead instead. `None` if
    /// the handler is a source with consumers.
    fn without(&self, at: usize) -> Option<Sketch> {
        let lead = self.nodes[at].lead();
        let mut smaller = self.clone();
        for from in smaller.taps_mut().filter(|from| from.node == at) {
            *from = lead?;
        }
        smaller.remove(at);
        smaller.remove_idle_sources();
        Some(smaller)
    }

    /// The graph without one handler, whose consumers are fed by new sources of the same content. `None` if the handler
    /// is a source, is not read, or passes on what it is given.
    fn cut_before(&self, at: usize) -> Option<Sketch> {
        let node = &self.nodes[at];
        let read: Vec<Tap> = node.taps(at).filter(|tap| self.is_read(*tap)).collect();
        if node.inputs.is_empty() || read.is_empty() {
            return None;
        }
        let mut smaller = self.clone();
        let mut moved_by = 0;
        for tap in read {
            let output = node.entry.outputs.iter().find(|output| output.name == tap.port)?;
            let (entry, spec): (&'static Entry, HandlerSpec) = match output.media {
                PortMedia::Video { .. } => {
                    let entry = &vramp::handlers::source::pattern::ENTRY;
                    (entry, HandlerSpec::new(entry.name).set("size", "16x12"))
                }
                PortMedia::Tensor { .. } => (&TENSORS, HandlerSpec::new(TENSORS.name)),
                PortMedia::Data { .. } => (&FACTS, HandlerSpec::new(FACTS.name)),
                PortMedia::Audio | PortMedia::Every { .. } => return None,
            };
            smaller.taps_mut().for_each(|from| from.node += 1);
            smaller.nodes.insert(0, Node::new(entry, spec));
            moved_by += 1;
            let old = Tap { node: at + moved_by, ..tap };
            smaller.taps_mut().filter(|from| **from == old).for_each(|from| {
                *from = Tap { node: 0, port: entry.outputs[0].name };
            });
        }
        smaller.remove(at + moved_by);
        smaller.remove_idle_sources();
        Some(smaller)
    }

    fn remove(&mut self, at: usize) {
        self.nodes.remove(at);
        for from in self.taps_mut() {
            from.node -= usize::from(from.node > at);
        }
    }

    fn remove_idle_sources(&mut self) {
        let is_idle = |own: &Sketch, at: usize| {
            own.nodes[at].inputs.is_empty() && own.nodes[at].taps(at).all(|tap| !own.is_read(tap))
        };
        while let Some(at) = (0..self.nodes.len()).find(|at| self.nodes.len() > 1 && is_idle(self, *at)) {
            self.remove(at);
        }
    }

    /// Graphs of the same handlers with one setting or one kind of sink less.
    fn plainer(&self) -> Vec<Sketch> {
        let mut found = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut add = |change: &dyn Fn(&mut Node)| {
                let mut plainer = self.clone();
                change(&mut plainer.nodes[at]);
                found.push(plainer);
            };
            if node.sink != Sink::Null {
                add(&|node| node.sink = Sink::Null);
            }
            if node.spec.on_error != OnError::default() {
                add(&|node| node.spec.on_error = OnError::default());
            }
            // Without its settings, a source would make larger frames.
            let keys = node.spec.settings.keys().filter(|_| !node.inputs.is_empty());
            keys.for_each(|key| add(&|node| drop(node.spec.settings.remove(key))));
        }
        found
    }

    // ---- checking

    /// What each output carries, by node. `None` if the graph is invalid or would be slow.
    pub fn contents(&self, registry: &Registry, on: Space) -> Option<Vec<Vec<Content>>> {
        // Handlers that need frames of one size, or crop them, refuse streams that change their size. A tensor keeps its
        // shape.
        let mixed = self.nodes.iter().any(|node| node.setting("path").is_some_and(|path| path.contains("mixed")));
        let is_particular = |node: &Node| {
            let cuts = node.entry.outputs.iter().any(|output| matches!(output.size, SizeRule::Cut(..)));
            let shapes = node.entry.outputs.iter().any(|output| matches!(output.tensor, TensorRule::By(_)));
            node.entry.equal_sizes || cuts || shapes && !node.inputs.is_empty()
        };
        if mixed && self.nodes.iter().any(is_particular) {
            return None;
        }
        let spec = self.spec();
        let graph = registry.check(&spec).ok()?;
        let profile = Profile::shipped("integrated").expect("it ships");
        let options = RunOptions::new().fusion(false);
        let options = if on == Space::Cpu { options.only(Space::Cpu) } else { options };
        let plan = Plan::decide(&graph, &profile, &options).ok()?;
        if !graph.handlers().iter().all(|handler| can_be_made(handler, &plan, registry, on)) {
            return None;
        }
        let carried = |link: &PlannedLink| {
            let from = (plan.handlers[link.from.handler].name.as_str(), link.from.port);
            (from, link.content.clone())
        };
        let of: BTreeMap<(&str, &str), Content> = plan.links.iter().map(carried).collect();
        let names = spec.names();
        let outputs = |(at, node): (usize, &Node)| -> Option<Vec<Content>> {
            node.taps(at).map(|tap| of.get(&(names[at].as_str(), tap.port)).cloned()).collect()
        };
        let all: Option<Vec<Vec<Content>>> = self.nodes.iter().enumerate().map(outputs).collect();
        let is_small = |content: &Content| content.elements() <= MOST_PIXELS;
        all.filter(|all| all.iter().flatten().all(is_small))
    }

    /// The features of the graph that the tests count, in words.
    pub fn features(&self, contents: &[Vec<Content>]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let content_of = |tap: Tap| {
            let port = self.nodes[tap.node].entry.output(tap.port).expect("a tap names an output");
            match &contents[tap.node][port] {
                Content::Video(_) => "pictures",
                Content::Tensor(_) => "tensors",
                Content::Data { .. } => "data",
                Content::Audio { .. } => "audio",
            }
        };
        let mut readers: BTreeMap<Tap, u32> = BTreeMap::new();
        for (_, tap) in self.nodes.iter().flat_map(|node| &node.inputs) {
            *readers.entry(*tap).or_default() += 1;
        }
        found.extend(
            readers.iter().filter(|(_, count)| **count > 1).map(|(tap, _)| format!("fan-out of {}", content_of(*tap))),
        );
        for tap in self.open() {
            let sink = format!("{:?}", self.nodes[tap.node].sink).to_lowercase();
            found.insert(format!("{sink} takes {}", content_of(tap)));
        }
        for (node, contents) in self.nodes.iter().zip(contents) {
            let dtypes = contents.iter().filter_map(|content| match content {
                Content::Tensor(tensor) => Some(format!("tensors of {}", tensor.dtype)),
                _ => None,
            });
            found.extend(dtypes);
            let joined = node.inputs.iter().filter(|(_, tap)| node.inputs.len() > 1 && Some(*tap) != node.lead());
            found.extend(joined.map(|(_, tap)| format!("join with {}", content_of(*tap))));
            let lead = node.lead().filter(|tap| node.inputs.len() > 1 && content_of(*tap) != "pictures");
            found.extend(lead.map(|tap| format!("join led by {}", content_of(tap))));
            if node.entry.family == Family::Control {
                found.extend(node.lead().map(|tap| format!("control over {}", content_of(tap))));
            }
            found.extend(node.until().map(|until| format!("until={}", until.name())));
            if node.fails() {
                found.insert(format!("on-error={}", node.spec.on_error));
            }
            if node.entry.name == ANNOTATE.name {
                found.insert(format!("notes, {}", node.setting("what").unwrap_or("number")));
            }
            found.extend(node.setting("space").map(|space| format!("space={space}")));
        }
        found.extend(self.is_live().then(|| "live".to_owned()));
        found
    }
}

/// Whether a handler can be made from its settings: some combinations are refused, and some handlers cannot run yet.
fn can_be_made(handler: &Handler, plan: &Plan, registry: &Registry, space: Space) -> bool {
    let Some(make) = registry.maker(handler.entry) else { return handler.entry.transfer.is_some() };
    let content = |port: &str, incoming: bool| {
        let end = |link: &PlannedLink| if incoming { link.to } else { link.from };
        let own = |link: &&PlannedLink| plan.handlers[end(link).handler].name == handler.name && end(link).port == port;
        plan.links.iter().find(own).map(|link| link.content.clone())
    };
    let inputs: Vec<_> = handler.entry.inputs.iter().map(|port| content(port.name, true)).collect();
    let outputs: Vec<_> = handler.entry.outputs.iter().map(|port| content(port.name, false)).collect();
    let setup = Setup {
        name: &handler.name,
        settings: &handler.settings,
        inputs: &inputs,
        outputs: &outputs,
        tags: None,
        space,
        rate: outputs.iter().flatten().find_map(Content::rate),
        handlers: plan.handlers.len(),
        declared: handler.declared.as_ref(),
        pool: FramePool::new(1 << 20),
        device: None,
        handles: Handles::default(),
    };
    make(&setup).is_ok()
}
