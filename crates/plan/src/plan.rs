//! The plan: every decision about a graph, as one value.
//!
//! `decide` fills in the plan and `render` prints it. The plan holds the space and format of each link, transfers,
//! fusion groups, lanes, units, rings, segments, depths, memory and cost. The engine adds nothing to these decisions.
//!
//! Invariants: indices point into the lists of the same plan. Handlers are in running order: each handler comes after
//! its producers.

use std::sync::Arc;

use crate::catalog::{Entry, SettingValues, TransferDirection};
use crate::words::{Content, Policy, Space, StreamTags};

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The graph's handlers and the inserted converters, in running order.
    pub handlers: Vec<PlannedHandler>,
    /// Ordered by producer.
    pub links: Vec<PlannedLink>,
    pub transfers: Vec<Transfer>,
    /// Every kernel, with the handlers that are fused into the kernel.
    pub groups: Vec<FusionGroup>,
    pub lanes: Vec<PlannedLane>,
    /// One unit per node of the engine: first the units with handlers, then the inserted transfers.
    pub units: Vec<Unit>,
    pub rings: Vec<PlannedRing>,
    pub memory: PlannedMemory,
    /// The number of segments on the device, which is how often a frame enters the device. 0 if nothing runs there.
    pub segments: u32,
    /// Name of the profile that the costs come from.
    pub profile: String,
    /// Estimated cost of one frame, summed over all lanes.
    pub cost_ns: u64,
    pub alternatives: Alternatives,
    /// The predicted latency; `None` if the user did not ask for one.
    pub latency: Option<PlannedLatency>,
    /// Automatic transfers and their causes, exceeded limits of the device, and problems with pace or memory.
    pub warnings: Vec<String>,
    /// Tags of a stream's header that a handler cannot keep or does not respect.
    pub notes: Vec<String>,
}

/// A handler with its space, lane and fusion group.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedHandler {
    pub name: String,
    pub entry: &'static Entry,
    /// Set by the graph, or by the planner if the handler is inserted.
    pub settings: SettingValues,
    /// Index of the lead input.
    pub lead: usize,
    /// True for a converter that the planner added.
    pub inserted: bool,
    pub space: Space,
    pub lane: usize,
    /// `None` for a handler without a kernel.
    pub group: Option<usize>,
    /// Compute time of the handler per frame. [`FusionGroup::pass_ns`] is the cost of the pass over memory.
    pub cost_ns: u64,
    /// Cost per frame of the handler on its own, not fused, in its space: compute time and pass, without transfers.
    pub alone_ns: u64,
    /// The same cost in the other space; `None` if the handler cannot run there.
    pub other_ns: Option<u64>,
    /// Bytes of small data, such as a table, that the handler's kernel reads on the device. 0 on the host, where small
    /// data are part of the parameters.
    pub small_bytes: u64,
}

/// A port of a planned handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortAt {
    pub handler: usize,
    pub port: &'static str,
}

/// A link and the frames that travel over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLink {
    pub from: PortAt,
    pub to: PortAt,
    /// The space in which the producer stores its frames.
    pub from_space: Space,
    /// The space in which the consumer reads the frames. This space differs from `from_space` exactly if the link
    /// crosses a transfer.
    pub space: Space,
    pub content: Content,
    /// Other properties of the stream, from the header of its source.
    pub tags: Option<Arc<StreamTags>>,
    pub policy: Policy,
    /// Capacity in frames; 0 if both ends run in one segment.
    pub depth: u32,
    /// Index of the transfer that the link crosses.
    pub transfer: Option<usize>,
    /// Indices of the rings that the link's frames pass: two rings around an inserted transfer, no ring inside a unit,
    /// and otherwise one ring.
    pub rings: Vec<usize>,
}

/// A transfer between spaces, shared by all consumers of the output. JSON publishes transfers under the key `ramps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    pub from: PortAt,
    pub to: Vec<PortAt>,
    pub direction: TransferDirection,
    /// Bytes per frame.
    pub bytes: u64,
    /// Estimated cost per frame.
    pub est_ns: u64,
    /// True if the user wrote the transfer as `upload` or `download`.
    pub explicit: bool,
}

/// Handlers that run as one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FusionGroup {
    pub space: Space,
    /// In running order.
    pub handlers: Vec<usize>,
    /// Dispatches per frame; 0 on the CPU.
    pub dispatches: u32,
    /// Cost of the pass over memory, paid once for all handlers of the group.
    pub pass_ns: u64,
    /// Cost per frame of the whole group in the other space, fused likewise and without transfers; `None` if a handler
    /// of the group cannot run there.
    pub other_ns: Option<u64>,
}

/// Handlers that run one after another on one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLane {
    /// True for the lane that records the device's work.
    pub device: bool,
    /// In running order.
    pub handlers: Vec<usize>,
    /// Units by segment, in running order. A host lane has one segment. Each segment of the device lane is one
    /// submission.
    pub segments: Vec<Vec<usize>>,
}

/// One node of the engine: a handler, the handlers of a fusion group, or an inserted transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// In running order; empty for an inserted transfer.
    pub handlers: Vec<usize>,
    pub lane: usize,
    /// The inputs that no handler of the unit feeds, as pairs of indices (handler, input). The list of an inserted
    /// transfer is empty, although the transfer has one input.
    pub inputs: Vec<(usize, usize)>,
    /// Index of the transfer that the unit performs. The transfer is either inserted or the user's own `upload` or
    /// `download`.
    pub transfer: Option<usize>,
}

impl Unit {
    pub fn is_inserted(&self) -> bool {
        self.handlers.is_empty()
    }
}

/// A queue between two units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRing {
    /// Index of the producing unit.
    pub from: usize,
    /// Index of the producer's output.
    pub output: usize,
    /// Index of the consuming unit.
    pub to: usize,
    /// Index of the consumer's input.
    pub input: usize,
    pub policy: Policy,
    /// Capacity in frames; 0 if both ends run in one segment.
    pub depth: u32,
    /// Policy of the whole link. The consumer needs this policy to know whether more frames can arrive.
    pub link_policy: Policy,
}

/// Bytes that the pools of each space need.
///
/// The staging rings of transfers and the rows that kernels buffer on the host are not included.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedMemory {
    pub gpu_bytes: u64,
    pub cpu_bytes: u64,
    /// The part of `cpu_bytes` that handlers hold beside the pool of frames, such as the weights of networks.
    pub cpu_held_bytes: u64,
    /// Frames in host memory, by size. A pipeline allocates all these frames before it uses the first frame.
    pub host_frames: Vec<PooledFrames>,
}

/// Frames of one size in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PooledFrames {
    /// Bytes of one frame.
    pub bytes: u64,
    /// Frames that are alive at the same time.
    pub count: u64,
}

/// Estimated costs per frame under `--cpu` and under `--gpu`; `None` if the graph has no plan under that option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alternatives {
    pub cpu_ns: Option<u64>,
    /// The cost if every handler that has an implementation for the device runs on the device.
    pub gpu_ns: Option<u64>,
}

/// What a plan predicts about a latency that the user asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLatency {
    pub asked_ns: u64,
    /// The predicted median of the time from a source to the end of its sink's call.
    pub predicted_ns: u64,
    /// Submissions that may be in flight. At most as many as the options allow.
    pub in_flight: u32,
    /// Frames per submission. At most as many as in the options.
    pub batch: u32,
    /// The handler or transfer that takes the largest part of the latency.
    pub slowest: Option<SlowestHandler>,
}

impl PlannedLatency {
    pub fn fits(&self) -> bool {
        self.predicted_ns <= self.asked_ns
    }
}

/// A handler, or a transfer in words, and its time per frame. Handlers that are fused share one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowestHandler {
    pub name: String,
    pub space: Space,
    pub ns: u64,
}

/// The negotiated space and content of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated<'a> {
    pub space: Space,
    pub content: &'a Content,
}

impl PlannedHandler {
    /// The kind as written in a pipeline.
    pub fn kind(&self) -> &'static str {
        self.entry.name
    }

    /// True if the handler is neither a source nor a sink.
    pub fn is_between_ends(&self) -> bool {
        self.entry.is_between_ends()
    }
}

impl Plan {
    pub fn handler(&self, name: &str) -> Option<&PlannedHandler> {
        self.handlers.iter().find(|h| h.name == name)
    }

    /// The negotiated content of an input; `None` if the input is not linked.
    pub fn input(&self, handler: &str, port: &str) -> Option<Negotiated<'_>> {
        let link = self.links.iter().find(|l| self.is(l.to, handler, port))?;
        Some(Negotiated { space: link.space, content: &link.content })
    }

    /// The negotiated content of an output; `None` if the output is not linked.
    pub fn output(&self, handler: &str, port: &str) -> Option<Negotiated<'_>> {
        let link = self.links.iter().find(|l| self.is(l.from, handler, port))?;
        Some(Negotiated { space: link.from_space, content: &link.content })
    }

    /// The port as `handler.port`.
    pub fn port_name(&self, at: PortAt) -> String {
        format!("{}.{}", self.handlers[at.handler].name, at.port)
    }

    /// The unit of the inserted transfer that the link crosses.
    pub fn inserted_transfer(&self, link: &PlannedLink) -> Option<usize> {
        let [before, _] = link.rings[..] else { return None };
        Some(self.rings[before].to).filter(|unit| self.units[*unit].is_inserted())
    }

    fn is(&self, at: PortAt, handler: &str, port: &str) -> bool {
        at.port == port && self.handlers[at.handler].name == handler
    }
}
