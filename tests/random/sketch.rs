//! Random graphs: their handlers and links, and how to shrink them.

use std::collections::BTreeMap;

use vramp::plan::catalog::{Entry, Family, SizeRule};
use vramp::plan::{
    Content, Format, FrameDesc, GraphSpec, Handler, HandlerSpec, Plan, PlannedLink, Profile, RunOptions, Space,
};
use vramp::runtime::{FramePool, Handles, Registry, Setup};

use super::chance::Chance;
use super::files::Files;
use super::settings;

/// A graph without its sinks. `text` adds a sink after every output without a consumer.
#[derive(Debug, Clone, Default)]
pub struct Sketch {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone)]
struct Node {
    spec: HandlerSpec,
    /// Input ports, each with the node that feeds it, the lead first. Empty for sources.
    inputs: Vec<(String, usize)>,
}

/// The number of frames of a source that reads a file.
const FRAMES: u64 = 3;
/// Graphs with larger frames are not drawn, because they would be slow.
const MOST_PIXELS: u64 = 40_000;

impl Sketch {
    /// The graph as text, with its sinks.
    pub fn text(&self) -> String {
        vramp::plan::write_text(&self.spec())
    }

    pub fn spec(&self) -> GraphSpec {
        let mut spec = GraphSpec::new();
        let ids: Vec<_> = self.nodes.iter().map(|node| spec.add(node.spec.clone())).collect();
        for (at, node) in self.nodes.iter().enumerate() {
            for (port, from) in &node.inputs {
                spec.connect(ids[*from], ids[at].port(port.as_str()));
            }
        }
        for (at, id) in ids.into_iter().enumerate() {
            if !self.is_read(at) {
                let sink = spec.add(HandlerSpec::new("null"));
                spec.connect(id, sink);
            }
        }
        spec
    }

    /// The kinds of the handlers.
    pub fn registry(&self) -> impl Iterator<Item = &str> {
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

    fn is_read(&self, at: usize) -> bool {
        self.nodes.iter().any(|node| node.inputs.iter().any(|(_, from)| *from == at))
    }

    /// The graph without one handler. The handler's consumers are fed by the producer of its lead instead. `None` if
    /// the handler is a source with consumers. Sources that lose all consumers are removed too.
    fn without(&self, at: usize) -> Option<Sketch> {
        let lead = self.nodes[at].inputs.first().map(|(_, from)| *from);
        let mut smaller = self.clone();
        for (_, from) in smaller.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
            if *from == at {
                *from = lead?;
            }
        }
        smaller.remove(at);
        while let Some(at) = (0..smaller.nodes.len())
            .find(|at| smaller.nodes.len() > 1 && smaller.nodes[*at].inputs.is_empty() && !smaller.is_read(*at))
        {
            smaller.remove(at);
        }
        Some(smaller)
    }

    fn remove(&mut self, at: usize) {
        self.nodes.remove(at);
        for (_, from) in self.nodes.iter_mut().flat_map(|node| &mut node.inputs) {
            *from -= usize::from(*from > at);
        }
    }

    /// Removes handlers as long as the graph still fails.
    pub fn shrunk(&self, fails: impl Fn(&Sketch) -> bool) -> Sketch {
        let mut least = self.clone();
        while let Some(smaller) =
            (0..least.nodes.len()).rev().filter_map(|at| least.without(at)).find(|smaller| fails(smaller))
        {
            least = smaller;
        }
        least
    }

    /// The frames of each output. `None` if the graph is invalid or would be slow.
    fn contents(&self, registry: &Registry, on: Space) -> Option<Vec<FrameDesc>> {
        // Handlers that need frames of one size, or crop them, refuse streams that change their size.
        let mixed =
            self.nodes.iter().any(|node| node.spec.settings.values().any(|value| value.value.contains("mixed")));
        let particular = |entry: &Entry| {
            entry.equal_sizes || entry.outputs.iter().any(|output| matches!(output.size, SizeRule::Cut(..)))
        };
        let entry = |node: &Node| registry.catalog().find(&node.spec.kind, !node.inputs.is_empty());
        if mixed && self.nodes.iter().filter_map(entry).any(particular) {
            return None;
        }
        let spec = self.spec();
        let graph = registry.check(&spec).ok()?;
        let profile = Profile::shipped("integrated").expect("it ships");
        let plan = Plan::decide(&graph, &profile, &RunOptions::new().fusion(false)).ok()?;
        if !graph.handlers().iter().all(|handler| can_be_made(handler, &plan, registry, on)) {
            return None;
        }
        let names = spec.names();
        let of: BTreeMap<&str, &FrameDesc> = plan.links.iter().filter_map(|link| produced(&plan, link)).collect();
        let all: Option<Vec<FrameDesc>> =
            names[..self.nodes.len()].iter().map(|name| of.get(name.as_str()).copied().copied()).collect();
        all.filter(|all| all.iter().all(|frame| frame.size.pixels() <= MOST_PIXELS))
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

fn produced<'p>(plan: &'p Plan, link: &'p PlannedLink) -> Option<(&'p str, &'p FrameDesc)> {
    Some((plan.handlers[link.from.handler].name.as_str(), link.content.frame()?))
}

/// The handlers and files that graphs are drawn from.
pub struct Drawing<'a> {
    registry: &'a Registry,
    files: &'a Files,
    entries: Vec<&'static Entry>,
    on: Space,
    most: usize,
}

impl<'a> Drawing<'a> {
    /// Draws graphs of at most `most` handlers, from all handlers that run in this space.
    pub fn of(registry: &'a Registry, files: &'a Files, on: Space, most: usize) -> Drawing<'a> {
        let families = [Family::Filter, Family::Draw, Family::Convert, Family::Control];
        let runs = |entry: &&&'static Entry| {
            let there = on == Space::Gpu || entry.offers(Space::Cpu);
            registry.runs(entry) && families.contains(&entry.family) && there
        };
        let all: Vec<&'static Entry> = registry.catalog().entries().collect();
        let entries = all.iter().filter(runs).copied().collect();
        Drawing { registry, files, entries, on, most }
    }

    pub fn entries(&self) -> &[&'static Entry] {
        &self.entries
    }

    /// Draws the graph of a seed.
    pub fn sketch(&self, seed: u64) -> Sketch {
        let mut chance = Chance::of(seed);
        let mut sketch = Sketch::default();
        for _ in 0..chance.pick(&[1, 1, 2, 3]) {
            sketch.nodes.push(self.source(&mut chance));
        }
        let mut contents = sketch.contents(self.registry, self.on).expect("sources are a graph by themselves");
        for _ in 0..=chance.below(self.most) {
            // A handler whose size or settings do not fit is drawn again.
            let drawn = (0..30).find_map(|_| {
                let larger = self.larger(&sketch, &contents, &mut chance);
                larger.contents(self.registry, self.on).map(|contents| (larger, contents))
            });
            (sketch, contents) = drawn.unwrap_or_else(|| panic!("nothing fits behind\n{}", sketch.text()));
        }
        sketch
    }

    fn source(&self, chance: &mut Chance) -> Node {
        let size = settings::size(chance);
        let source = |spec: HandlerSpec| Node { spec, inputs: Vec::new() };
        let fps = chance.pick(&["30", "30", "25", "60"]);
        source(match chance.below(6) {
            0 => {
                let format = chance.pick(&Format::RANKED);
                let path = self.files.raw(size, format, FRAMES, chance);
                HandlerSpec::new("raw").set("path", path).set("size", size).set("format", format).set("fps", fps)
            }
            1 => HandlerSpec::new("image").set("fps", fps).set(
                "path",
                if chance.once_in(3) {
                    self.files.mixed_pictures(chance)
                } else {
                    self.files.pictures((size.width, size.height), 2)
                },
            ),
            _ => {
                let kinds = ["ball", "bars", "gradient", "checker", "noise", "solid", "disc"];
                let pattern = HandlerSpec::new("pattern").set("kind", chance.pick(&kinds)).set("size", size);
                pattern.set("seed", chance.below(9)).set("fps", fps)
            }
        })
    }

    /// Adds a handler. If the handler needs inputs of one size, also adds a `resize` before each input of another size.
    fn larger(&self, sketch: &Sketch, contents: &[FrameDesc], chance: &mut Chance) -> Sketch {
        let mut sketch = sketch.clone();
        let entry = chance.pick(&self.entries);
        // The handler mostly follows an output without a consumer, so that chains form, and sometimes another output.
        let open: Vec<usize> = (0..sketch.nodes.len()).filter(|at| !sketch.is_read(*at)).collect();
        let known = contents.len();
        let from = |chance: &mut Chance| {
            if open.is_empty() || chance.once_in(4) { chance.below(known) } else { chance.pick(&open) }
        };
        let lead = from(chance);
        let mut spec = settings::handler(entry, contents[lead].size, self.files, chance);
        let mut inputs = vec![(entry.inputs[0].name.to_owned(), lead)];
        for port in &entry.inputs[1..] {
            if !port.required && !chance.once_in(3) {
                continue;
            }
            let mut from = from(chance);
            if entry.equal_sizes && contents[from].size != contents[lead].size {
                let resize = HandlerSpec::new("resize").set("size", contents[lead].size);
                sketch.nodes.push(Node { spec: resize, inputs: vec![("video".to_owned(), from)] });
                from = sketch.nodes.len() - 1;
            }
            inputs.push((port.name.to_owned(), from));
        }
        if inputs.len() > 1 && chance.once_in(4) {
            let at = chance.below(inputs.len());
            spec = spec.set("lead", &inputs[at].0);
        }
        if inputs.len() > 1 && chance.once_in(4) {
            spec = spec.set("until", "shortest");
        }
        sketch.nodes.push(Node { spec, inputs });
        sketch
    }
}
