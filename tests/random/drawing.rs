//! Draws random graphs: sources, then one handler after another, each after an output that carries what it takes.

use vramp::plan::catalog::{Entry, Family, Input, PortMedia};
use vramp::plan::{Content, Format, HandlerSpec, OnError, Size, Space, Until};
use vramp::runtime::Registry;

use super::chance::Chance;
use super::files::Files;
use super::settings;
use super::sketch::{Node, Sink, Sketch, Tap};

/// The number of frames of a source that reads a file.
const FRAMES: u64 = 3;

/// The handlers and files that graphs are drawn from.
pub struct Drawing<'a> {
    registry: &'a Registry,
    files: &'a Files,
    entries: Vec<&'static Entry>,
    /// The entries that are not built in. They are drawn more often, because they have the rare kinds of ports.
    own: Vec<&'static Entry>,
    /// The entries with an input for tensors or data.
    rare: Vec<&'static Entry>,
    joins: Vec<&'static Entry>,
    on: Space,
    most: usize,
}

impl<'a> Drawing<'a> {
    /// Draws graphs of at most `most` handlers, from all handlers that run in this space.
    pub fn of(registry: &'a Registry, files: &'a Files, on: Space, most: usize) -> Drawing<'a> {
        let families = [Family::Filter, Family::Draw, Family::Convert, Family::Control];
        let runs = |entry: &&'static Entry| {
            let there = on == Space::Gpu || entry.offers(Space::Cpu);
            registry.runs(entry) && families.contains(&entry.family) && there
        };
        let entries: Vec<&'static Entry> = registry.catalog().entries().filter(runs).collect();
        let built_in = vramp::registry();
        let own = entries.iter().filter(|entry| !built_in.runs(entry)).copied().collect();
        let is_rare = |input: &Input| matches!(input.media, PortMedia::Tensor { .. } | PortMedia::Data { .. });
        let rare = entries.iter().filter(|entry| entry.inputs.iter().any(is_rare)).copied().collect();
        let joins = entries.iter().filter(|entry| entry.inputs.len() > 1).copied().collect();
        Drawing { registry, files, entries, own, rare, joins, on, most }
    }

    pub fn entries(&self) -> &[&'static Entry] {
        &self.entries
    }

    /// What the outputs of a drawn graph carry.
    pub fn contents(&self, sketch: &Sketch) -> Vec<Vec<Content>> {
        sketch.contents(self.registry, self.on).expect("only valid graphs are drawn")
    }

    /// Draws the graph of a seed.
    pub fn sketch(&self, seed: u64) -> Sketch {
        let mut chance = Chance::of(seed);
        let mut sketch = Sketch::default();
        for _ in 0..chance.pick(&[1, 1, 2, 3]) {
            let source = self.source(sketch.nodes.is_empty(), &mut chance);
            sketch.nodes.push(source);
        }
        let mut contents = self.contents(&sketch);
        for _ in 0..=chance.below(self.most) {
            // A handler whose size or settings do not fit is drawn again.
            let drawn = (0..60).find_map(|_| {
                let larger = self.larger(&sketch, &contents, &mut chance)?;
                let contents = larger.contents(self.registry, self.on)?;
                Some((larger, contents))
            });
            (sketch, contents) = drawn.unwrap_or_else(|| panic!("no handler fits after\n{}", sketch.text()));
        }
        for node in &mut sketch.nodes {
            node.sink = chance.pick(&[Sink::Null, Sink::Collects, Sink::Collects, Sink::App]);
        }
        sketch
    }

    /// The first source mostly sends pictures, because most handlers take pictures.
    fn source(&self, is_first: bool, chance: &mut Chance) -> Node {
        let size = settings::size(chance);
        let fps = chance.pick(&["30", "30", "25", "60"]);
        let drawn = match chance.below(if is_first { 24 } else { 9 }) {
            kind @ 0..2 => {
                let kind = ["tensors", "facts"][kind];
                let entry = self.registry.catalog().find(kind, false).expect("the tests' own kind");
                settings::handler(entry, size, self.files, chance)
            }
            2 => {
                let format = chance.pick(&Format::RANKED);
                let path = self.files.raw(size, format, FRAMES, chance);
                HandlerSpec::new("raw").set("path", path).set("size", size).set("format", format)
            }
            3 => HandlerSpec::new("image").set(
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
                let pattern = pattern.set("seed", chance.below(9));
                if chance.once_in(2) { pattern.set("frames", chance.between(1, 4)) } else { pattern }
            }
        };
        let entry = self.registry.catalog().find(&drawn.kind, false).expect("a source");
        Node::new(entry, drawn.set("fps", fps))
    }

    /// Adds a handler. If the handler needs inputs of one size, also adds a `resize` before each input of another size.
    /// `None` if no output carries what the handler takes.
    fn larger(&self, sketch: &Sketch, contents: &[Vec<Content>], chance: &mut Chance) -> Option<Sketch> {
        let mut sketch = sketch.clone();
        // The handler mostly follows an output without a consumer, so that chains form, and sometimes another output.
        let open = sketch.open();
        let is_picture = |tap: &Tap| contents[tap.node].iter().all(|content| content.frame().is_some());
        let among = match chance.below(6) {
            0 | 1 if !open.iter().all(is_picture) => &self.rare,
            0..3 => &self.own,
            3 => &self.joins,
            _ => &self.entries,
        };
        let entry = chance.pick(among);
        let from = |port: &Input, chance: &mut Chance| {
            let outputs = sketch.nodes.iter().zip(contents).enumerate().flat_map(|(node, (of, contents))| {
                let ports = of.entry.outputs.iter().map(move |output| Tap { node, port: output.name });
                ports.zip(contents)
            });
            let all: Vec<(Tap, &Content)> = outputs.filter(|(_, content)| takes(port, content)).collect();
            let unread: Vec<_> = all.iter().filter(|(tap, _)| open.contains(tap)).copied().collect();
            let among = if unread.is_empty() || chance.once_in(4) { all } else { unread };
            // Most outputs are pictures, so a handler that takes everything prefers the others.
            let rare: Vec<_> = among.iter().filter(|(_, content)| content.frame().is_none()).copied().collect();
            let among = if rare.is_empty() || chance.once_in(2) { among } else { rare };
            (!among.is_empty()).then(|| chance.pick(&among))
        };
        let (lead, lead_content) = from(&entry.inputs[0], chance)?;
        let lead_size = size_of(lead_content);
        let mut spec = settings::handler(entry, lead_size, self.files, chance);
        let mut inputs = vec![(entry.inputs[0].name.to_owned(), lead)];
        let mut resized = Vec::new();
        for port in &entry.inputs[1..] {
            if !port.required && !chance.once_in(2) {
                continue;
            }
            let (mut tap, content) = from(port, chance)?;
            if entry.equal_sizes && size_of(content) != lead_size {
                let resize = self.registry.catalog().find("resize", true).expect("it is built in");
                let mut node = Node::new(resize, HandlerSpec::new(resize.name).set("size", lead_size));
                node.inputs.push((resize.inputs[0].name.to_owned(), tap));
                tap = Tap { node: sketch.nodes.len() + resized.len(), port: resize.outputs[0].name };
                resized.push(node);
            }
            inputs.push((port.name.to_owned(), tap));
        }
        sketch.nodes.extend(resized);
        if inputs.len() > 1 && chance.once_in(4) {
            let at = chance.below(inputs.len());
            spec = spec.set("lead", &inputs[at].0);
        }
        if inputs.len() > 1 && !chance.once_in(4) {
            spec = spec.set("until", chance.pick(&[Until::Lead, Until::Shortest, Until::Shortest]).name());
        }
        let mut node = Node::new(entry, spec);
        node.inputs = inputs;
        node.spec.on_error = reaction(&node, &sketch, chance);
        sketch.nodes.push(node);
        Some(sketch)
    }
}

/// What happens if the handler fails. At most one handler of a graph stops the run: with several, the timing of threads
/// would decide which of them does.
fn reaction(node: &Node, sketch: &Sketch, chance: &mut Chance) -> OnError {
    if !node.fails() {
        return if chance.once_in(3) { chance.pick(&OnError::ALL) } else { OnError::default() };
    }
    let may_stop = sketch.stopping().is_none() && chance.once_in(5);
    if may_stop { OnError::Stop } else { chance.pick(&[OnError::Skip, OnError::Retry]) }
}

/// Whether an input takes this content. Formats of pictures are converted.
fn takes(port: &Input, content: &Content) -> bool {
    match (port.media, content) {
        (PortMedia::Every { .. }, _)
        | (PortMedia::Video { .. }, Content::Video(_))
        | (PortMedia::Data { .. }, Content::Data { .. }) => true,
        (PortMedia::Tensor { dtypes, .. }, Content::Tensor(tensor)) => dtypes.contains(&tensor.dtype),
        _ => false,
    }
}

/// The size of a picture; of other content, the smallest size.
fn size_of(content: &Content) -> Size {
    content.frame().map_or(Size { width: 1, height: 1 }, |frame| frame.size)
}
