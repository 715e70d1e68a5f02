//! Step 1: negotiates formats, sizes and rates along every link and inserts converters between different formats.
//!
//! Handlers are visited in running order. The content of each output follows from rules over the settings and the lead
//! input. If a consumer does not accept the format of an output, a converter is inserted. All consumers of the output
//! that need the same format share one converter. A consumer that accepts the output's format gets no converter.
//!
//! Formats are fixed before anything is priced. The result does not depend on costs or pins, so that placement can be
//! exact. Placement chooses the memory spaces.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Entry, Fallback, FormatRule, PortMedia, SettingValues, Value};
use crate::graph::{Graph, Handler, Link};
use crate::words::{Cap, Caps, Content, DType, Dimension, Format, FrameDesc, Media, Policy, SpaceSet};

use super::explain::{Claim, Conflict, NoPlan};
use super::net::{Net, NetNode, Wire};
use super::shape::ShapeOf;

pub(super) fn negotiate(graph: &Graph) -> Result<Net<'_>, NoPlan> {
    let mut work = Negotiation {
        graph,
        net: Net { nodes: Vec::new(), wires: Vec::new() },
        node_of: vec![usize::MAX; graph.handlers().len()],
        converters: BTreeMap::new(),
        taken: graph.handlers().iter().map(|h| h.name.as_str()).collect(),
        next_converter: 0,
        wanted: wanted(graph),
        incoming: vec![Vec::new(); graph.handlers().len()],
        outgoing: vec![Vec::new(); graph.handlers().len()],
    };
    for (at, link) in graph.links().iter().enumerate() {
        work.incoming[link.to].push(at);
        work.outgoing[link.from].push(at);
    }
    for &handler in graph.order() {
        work.handler(handler)?;
    }
    Ok(work.net)
}

struct Negotiation<'g> {
    graph: &'g Graph,
    net: Net<'g>,
    /// The node of each handler.
    node_of: Vec<usize>,
    /// Converters by producing node, output and format.
    converters: BTreeMap<(usize, usize, Format), usize>,
    taken: BTreeSet<&'g str>,
    next_converter: usize,
    /// The formats that each handler's lead input prefers. If a handler passes formats on, its consumers' preferences
    /// count too.
    wanted: Vec<Caps>,
    incoming: Vec<Vec<usize>>,
    outgoing: Vec<Vec<usize>>,
}

impl<'g> Negotiation<'g> {
    fn handler(&mut self, at: usize) -> Result<(), NoPlan> {
        let graph = self.graph;
        let handler = &graph.handlers()[at];
        let mut feeds = Vec::new();
        for &link in &self.incoming[at].clone() {
            feeds.push((link, self.feed(link)?));
        }
        let lead = feeds
            .iter()
            .find(|(link, _)| graph.links()[*link].input == handler.lead)
            .map(|(_, (from, output))| self.net.nodes[*from].outputs[*output].clone());
        if handler.entry.equal_sizes {
            self.equal_sizes(at, lead.as_ref(), &feeds)?;
        }
        let shape =
            ShapeOf { entry: handler.entry, settings: &handler.settings, probed: &handler.probed, lead: lead.as_ref() };
        let mut outputs = Vec::new();
        for (index, output) in handler.entry.outputs.iter().enumerate() {
            let content = shape
                .content(output, |formats| self.choose(at, index, formats))
                .map_err(|p| NoPlan::Shape { handler: handler.name.clone(), problem: p.problem, fix: p.fix })?;
            outputs.push(content);
        }
        let untouched = is_untouched(handler.entry, lead.as_ref(), &outputs);
        let live = handler.entry.live.under(&handler.settings)
            || feeds.iter().any(|(_, (from, _))| self.net.nodes[*from].live);
        let node = self.push(NetNode {
            name: handler.name.clone(),
            entry: handler.entry,
            settings: Cow::Borrowed(&handler.settings),
            inserted: false,
            kernel: handler.kernel().filter(|_| !untouched),
            untouched,
            small_bytes: handler.small_bytes,
            lead: handler.lead,
            inputs: vec![None; handler.entry.inputs.len()],
            fans: vec![Vec::new(); outputs.len()],
            outputs,
            live,
        });
        self.node_of[at] = node;
        for (link, (from, output)) in feeds {
            let link = &graph.links()[link];
            self.wire(from, output, node, link.input, link.policy, link.depth);
        }
        Ok(())
    }

    /// The node and output that feed a link: the producer, or a converter after the producer.
    fn feed(&mut self, link: usize) -> Result<(usize, usize), NoPlan> {
        let graph = self.graph;
        let link = &graph.links()[link];
        let (from, consumer) = (self.node_of[link.from], &graph.handlers()[link.to]);
        let content = self.net.nodes[from].outputs[link.output].clone();
        let media = consumer.entry.inputs[link.input].media_under(&consumer.settings);
        // Placement chooses the spaces later, so here both ends allow every space.
        let offered = anywhere(Media::exactly(&content));
        let accepted = accepts(media, SpaceSet::ALL);
        let missed = offered.explain(&accepted);
        let moves_data = content.is_data() && consumer.entry.transfer.is_some();
        if missed.is_empty() && !moves_data {
            return Ok((from, link.output));
        }
        if missed == [Dimension::Format]
            && let (Some(entry), PortMedia::Video { formats, .. } | PortMedia::Every { formats }) =
                (graph.catalog().converter(), media)
        {
            let converter = self.converter(entry, from, link.output, formats[0]);
            self.keep_policy(converter, link.policy);
            return Ok((converter, 0));
        }
        let claims = vec![
            Claim::offers(&self.net, from, link.output, &content),
            Claim {
                port: format!("{}.{}", consumer.name, consumer.entry.inputs[link.input].name),
                verb: "accepts",
                caps: if moves_data {
                    "video or tensors".to_owned()
                } else {
                    accepts(media, consumer.entry.spaces_under(&consumer.settings)).of_type(&content).to_string()
                },
            },
        ];
        let fix = if moves_data {
            format!("remove {}: data is always on the host", consumer.name)
        } else if let Some(remedy) =
            consumer.entry.inputs[link.input].remedy.filter(|_| missed.contains(&Dimension::PortType))
        {
            remedy.to_owned()
        } else {
            fix_for(&missed, &content, media, &format!("{} ! ... ! {}", claims[0].port, claims[1].port))
        };
        Err(NoPlan::Conflict(Conflict { claims, missed, fix }))
    }

    fn converter(&mut self, entry: &'static Entry, from: usize, output: usize, format: Format) -> usize {
        if let Some(node) = self.converters.get(&(from, output, format)) {
            return *node;
        }
        let mut settings = defaults(entry);
        settings.set("format", Value::Format(format));
        let Content::Video(frame) = &self.net.nodes[from].outputs[output] else {
            unreachable!("only video ports miss each other by format")
        };
        let outputs = vec![Content::Video(FrameDesc { format, ..*frame })];
        let name = loop {
            let name = format!("{}{}", entry.name, self.next_converter);
            self.next_converter += 1;
            if !self.taken.contains(name.as_str()) {
                break name;
            }
        };
        let node = self.push(NetNode {
            name,
            entry,
            kernel: entry.kernel.under(&settings),
            untouched: false,
            small_bytes: None,
            settings: Cow::Owned(settings),
            inserted: true,
            lead: 0,
            inputs: vec![None; entry.inputs.len()],
            fans: vec![Vec::new(); entry.outputs.len()],
            outputs,
            live: self.net.nodes[from].live,
        });
        self.wire(from, output, node, 0, None, None);
        self.converters.insert((from, output, format), node);
        node
    }

    /// The policy that the user set on a link also applies to the wire before the link's converter. If several links
    /// share that wire, the policy that loses the fewest frames applies.
    fn keep_policy(&mut self, converter: usize, requested: Option<Policy>) {
        let wire = self.net.nodes[converter].inputs[0].expect("a converter was wired when it was made");
        let wire = &mut self.net.wires[wire];
        if let Some(requested) = requested.filter(|requested| *requested > wire.policy) {
            (wire.policy, wire.explicit_policy) = (requested, true);
        }
    }

    fn push(&mut self, node: NetNode<'g>) -> usize {
        self.net.nodes.push(node);
        self.net.nodes.len() - 1
    }

    fn wire(
        &mut self,
        from: usize,
        output: usize,
        to: usize,
        input: usize,
        requested: Option<Policy>,
        depth: Option<u32>,
    ) {
        let usual = if self.net.nodes[from].live { Policy::Latest } else { Policy::Lossless };
        let wire = Wire {
            from,
            output,
            to,
            input,
            content: self.net.nodes[from].outputs[output].clone(),
            policy: requested.unwrap_or(usual),
            explicit_policy: requested.is_some(),
            depth,
        };
        self.net.wires.push(wire);
        let at = self.net.wires.len() - 1;
        self.net.nodes[from].fans[output].push(at);
        self.net.nodes[to].inputs[input] = Some(at);
    }

    fn equal_sizes(&self, at: usize, lead: Option<&Content>, feeds: &[(usize, (usize, usize))]) -> Result<(), NoPlan> {
        let handler = &self.graph.handlers()[at];
        let Some(wanted) = lead.and_then(Content::frame) else { return Ok(()) };
        for (link, (from, output)) in feeds {
            let content = &self.net.nodes[*from].outputs[*output];
            if content.frame().is_some_and(|f| f.size != wanted.size) {
                let port = handler.entry.inputs[self.graph.links()[*link].input].name;
                let (lead_link, (lead_from, lead_output)) = feeds
                    .iter()
                    .find(|(l, _)| self.graph.links()[*l].input == handler.lead)
                    .expect("there is a lead frame, so there is a lead link");
                let lead_port = handler.entry.inputs[self.graph.links()[*lead_link].input].name;
                let both = |port: &str| Claim {
                    port: format!("{}.{port}", handler.name),
                    verb: "accepts",
                    caps: format!("the size of {0}.{lead_port}, the lead input", handler.name),
                };
                return Err(NoPlan::Conflict(Conflict {
                    claims: vec![
                        Claim::offers(&self.net, *lead_from, *lead_output, lead.expect("checked above")),
                        Claim::offers(&self.net, *from, *output, content),
                        both(port),
                    ],
                    missed: vec![Dimension::Size],
                    fix: format!("put `resize size={}` before {}.{port}", wanted.size, handler.name),
                }));
            }
        }
        Ok(())
    }

    /// Picks the declared format that needs the fewest conversions at the output's consumers; ties follow the declared
    /// order.
    fn choose(&self, at: usize, output: usize, formats: &[Format]) -> Format {
        let links = self.outgoing[at].iter().map(|l| &self.graph.links()[*l]).filter(|l| l.output == output);
        let requests: Vec<Caps> = links
            .map(|l| match &self.graph.handlers()[l.to] {
                consumer if l.input == consumer.lead => self.wanted[l.to].clone(),
                consumer => accepts(consumer.entry.inputs[l.input].media_under(&consumer.settings), SpaceSet::ALL),
            })
            .collect();
        let conversions = |f: &Format| {
            let offer = anywhere(Media::video([*f]));
            requests.iter().filter(|request| request.intersect(&offer).is_empty()).count()
        };
        *formats.iter().min_by_key(|f| conversions(f)).expect("the catalogue refuses ports without formats")
    }
}

/// True if a handler's setting asks for the format that its input already has, and this format is not rgba8. The frame
/// then passes through unchanged.
fn is_untouched(entry: &Entry, lead: Option<&Content>, outputs: &[Content]) -> bool {
    let format = |content: &Content| content.frame().map(|frame| frame.format);
    let set = entry.outputs.iter().all(|output| matches!(output.format, FormatRule::Setting(_)));
    let (comes, goes) = (lead.and_then(format), outputs.first().and_then(format));
    set && comes.is_some() && comes == goes && comes != Some(Format::Rgba8)
}

/// Media in any space; placement chooses the space later.
fn anywhere(media: Media) -> Caps {
    Caps::one(SpaceSet::ALL, media)
}

/// The formats that each handler's lead input prefers: the formats that the input accepts. If the handler passes
/// formats on, only the formats that its consumers also prefer remain, unless no format would remain.
fn wanted(graph: &Graph) -> Vec<Caps> {
    let own = |h: &Handler| {
        h.entry.inputs.get(h.lead).map_or(Caps::NONE, |p| accepts(p.media_under(&h.settings), SpaceSet::ALL))
    };
    let mut wanted: Vec<Caps> = graph.handlers().iter().map(own).collect();
    let mut outgoing: Vec<Vec<&Link>> = vec![Vec::new(); graph.handlers().len()];
    for link in graph.links() {
        outgoing[link.from].push(link);
    }
    for &at in graph.order().iter().rev() {
        let passes = graph.handlers()[at].entry.outputs.iter().any(|o| o.format == FormatRule::Input);
        for link in outgoing[at].iter().filter(|l| passes && l.input == graph.handlers()[l.to].lead) {
            let narrowed = wanted[at].intersect(&wanted[link.to]);
            if !narrowed.is_empty() {
                wanted[at] = narrowed;
            }
        }
    }
    wanted
}

fn defaults(entry: &'static Entry) -> SettingValues {
    let mut settings = SettingValues::default();
    for setting in entry.settings {
        if let Fallback::Is(text) = setting.fallback
            && let Some(value) = setting.value.read(text)
        {
            settings.set(setting.name, value);
        }
    }
    settings
}

/// What a port accepts in these spaces.
pub(super) fn accepts(media: PortMedia, spaces: SpaceSet) -> Caps {
    let one = |media: Media| Cap { spaces, media };
    match media {
        PortMedia::Video { formats, width, height } => {
            Caps::one(spaces, Media::Video { formats: formats.iter().copied().collect(), width, height, rate: None })
        }
        PortMedia::Tensor { dtypes, dims } => {
            let dtypes = dtypes.iter().copied().collect();
            Caps::one(spaces, Media::Tensor { dtypes, dims: dims.map(<[_]>::to_vec) })
        }
        PortMedia::Data { .. } => Caps::one(spaces, Media::Data),
        PortMedia::Audio => Caps::one(spaces, Media::Audio),
        PortMedia::Every { formats } => Caps::any_of([
            one(Media::video(formats.iter().copied())),
            one(Media::Tensor { dtypes: DType::ALL.into_iter().collect(), dims: None }),
            one(Media::Data),
        ]),
    }
}

fn fix_for(missed: &[Dimension], content: &Content, media: PortMedia, between: &str) -> String {
    match (missed, media, content.frame()) {
        // Converters are inserted automatically, so if both the formats and the sizes differ, the user only has to
        // correct the size.
        (missed, PortMedia::Video { width, height, .. }, Some(frame)) if missed.contains(&Dimension::Size) => {
            let size = format!(
                "{}x{}",
                frame.size.width.clamp(width.min, width.max),
                frame.size.height.clamp(height.min, height.max)
            );
            format!("put `resize size={size}` in between: `{between}`")
        }
        ([Dimension::Format, ..], PortMedia::Video { formats, .. } | PortMedia::Every { formats }, _) => {
            format!("convert to {} first; this catalogue has no converter", formats[0])
        }
        _ => format!("add a handler that converts the first into the second: `{between}`"),
    }
}
