//! The net: the graph with fixed formats, inserted converters and the content of every wire. All later steps use the
//! net.
//!
//! Invariants: nodes are in running order. A wire carries exactly what its consumer accepts, except for the space.

use std::borrow::Cow;

use crate::catalog::{Class, Entry, Family, KernelDesc, NetworkNeeds, SettingValues, TransferDirection, Units};
use crate::plan::PortAt;
use crate::words::{Content, Policy, Space, SpaceSet};

#[derive(Debug)]
pub(super) struct Net<'g> {
    pub nodes: Vec<NetNode<'g>>,
    pub wires: Vec<Wire>,
}

#[derive(Debug)]
pub(super) struct NetNode<'g> {
    pub name: String,
    pub entry: &'static Entry,
    pub settings: Cow<'g, SettingValues>,
    pub inserted: bool,
    pub kernel: Option<KernelDesc>,
    /// True if the settings ask for the format that the input already has.
    pub untouched: bool,
    /// Bytes of the node's small data, if they depend on a file.
    pub small_bytes: Option<u64>,
    /// Index of the lead input.
    pub lead: usize,
    /// The content of each output.
    pub outputs: Vec<Content>,
    /// The wire into each input.
    pub inputs: Vec<Option<usize>>,
    /// The wires from each output.
    pub fans: Vec<Vec<usize>>,
    /// True if frames of a live source reach this node. A live source cannot be made to wait.
    pub live: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub from: usize,
    pub output: usize,
    pub to: usize,
    pub input: usize,
    pub content: Content,
    pub policy: Policy,
    /// True if the user set the policy. The wire then keeps its ring.
    pub explicit_policy: bool,
    pub depth: Option<u32>,
}

impl NetNode<'_> {
    /// True if the node passes on its input frame as its output frame.
    pub fn passes_on(&self) -> bool {
        let control = self.entry.family == Family::Control && self.entry.transfer.is_none();
        (control || self.untouched) && !self.inputs.is_empty()
    }
}

impl Net<'_> {
    /// The wire into a node's lead input.
    pub fn lead_wire(&self, node: usize) -> Option<usize> {
        let node = &self.nodes[node];
        node.inputs.get(node.lead).copied().flatten()
    }

    /// The content that a node processes per frame: its output, or its lead input if it has no output.
    pub fn main_content(&self, node: usize) -> Option<&Content> {
        self.nodes[node].outputs.first().or_else(|| Some(&self.wires[self.lead_wire(node)?].content))
    }

    /// Bytes of the intermediate between the dispatches of a node's kernel.
    pub fn kept_bytes(&self, at: usize) -> u64 {
        let node = &self.nodes[at];
        let Some(made) = node.outputs.first().and_then(Content::frame) else { return 0 };
        let source = self.lead_wire(at).and_then(|w| self.wires[w].content.frame()).unwrap_or(made);
        node.kernel.map_or(0, |kernel| kernel.kept_bytes(source.size, made.size))
    }

    /// Bytes of small data that a node's kernel reads on the device.
    pub fn small_bytes(&self, at: usize) -> u64 {
        let node = &self.nodes[at];
        let Some(bytes) = node.entry.small.filter(|_| node.kernel.is_some()) else { return 0 };
        let Some(made) = node.outputs.first().and_then(Content::frame) else { return 0 };
        let source = self.lead_wire(at).and_then(|w| self.wires[w].content.frame()).unwrap_or(made);
        node.small_bytes.unwrap_or_else(|| bytes(&node.settings, source.size, made.size))
    }

    /// The needs of the network that a node runs.
    pub fn network(&self, at: usize) -> Option<NetworkNeeds> {
        let node = &self.nodes[at];
        let frame = self.lead_wire(at).and_then(|wire| self.wires[wire].content.frame())?;
        node.entry.network.map(|needs| needs(&node.settings, frame.size))
    }

    /// Class and units of work per frame.
    pub fn work(&self, at: usize) -> (Class, f64) {
        let node = &self.nodes[at];
        let work = node.entry.work_under(&node.settings);
        let read = self.lead_wire(at).map(|w| &self.wires[w].content);
        let Some(main) = self.main_content(at).filter(|_| !node.untouched) else { return (work.class, 0.0) };
        // A handler that finds something in a picture reads all of it, however little it sends.
        let made = main.elements();
        let elements = if main.frame().is_some() { made } else { read.map_or(made, |read| read.elements().max(made)) };
        let units = match work.units {
            Units::PerPixel(units) => units * elements as f64,
            Units::PerPixelBy(units) => units(&node.settings) * elements as f64,
            Units::PerFrameBy(units) => match (read.unwrap_or(main).frame(), main.frame()) {
                (Some(input), Some(output)) => units(&node.settings, input.size, output.size),
                _ => 0.0,
            },
        };
        (work.class, units)
    }

    /// The space in which the consumer of a wire needs its frames if the consumer runs in `space`.
    pub fn space_in(&self, wire: usize, space: Space) -> Space {
        let wire = &self.wires[wire];
        if wire.content.is_data() {
            return Space::Cpu;
        }
        self.nodes[wire.to].entry.transfer.map_or(space, TransferDirection::from)
    }

    /// The space of a node's outputs if the node runs in `space`.
    pub fn space_out(&self, node: usize, space: Space) -> Space {
        self.nodes[node].entry.transfer.map_or(space, TransferDirection::to)
    }

    /// The spaces that a node's entry has an implementation for. Data is on the host, so a handler of nothing but data
    /// stays there.
    pub fn offered(&self, node: usize) -> SpaceSet {
        let offered = self.nodes[node].entry.spaces_under(&self.nodes[node].settings);
        if offered.contains(Space::Cpu) && self.has_only_data(node) { SpaceSet::CPU } else { offered }
    }

    /// What the linked ports of a node carry.
    pub fn contents(&self, node: usize) -> impl Iterator<Item = &Content> {
        let NetNode { inputs, fans, .. } = &self.nodes[node];
        inputs.iter().flatten().chain(fans.iter().flatten()).map(|wire| &self.wires[*wire].content)
    }

    /// True if all linked ports of a node carry data.
    pub fn has_only_data(&self, node: usize) -> bool {
        let mut contents = self.contents(node).peekable();
        contents.peek().is_some() && contents.all(Content::is_data)
    }

    pub fn output_at(&self, wire: usize) -> PortAt {
        let wire = &self.wires[wire];
        PortAt { handler: wire.from, port: self.nodes[wire.from].entry.outputs[wire.output].name }
    }

    pub fn input_at(&self, wire: usize) -> PortAt {
        let wire = &self.wires[wire];
        PortAt { handler: wire.to, port: self.nodes[wire.to].entry.inputs[wire.input].name }
    }

    pub fn port_name(&self, at: PortAt) -> String {
        format!("{}.{}", self.nodes[at.handler].name, at.port)
    }
}
