//! The plan: every decision about a graph, as one value.
//!
//! Owns the decided handlers, links, transfers, groups, lanes, memory and cost, and how they are looked up.
//! Does not decide anything and does not print itself: `decide` fills it, `render` shows it.
//!
//! Always: indices point into this plan's own lists; handlers stand in an order in which they can run.

use std::sync::Arc;

use crate::catalog::{Entry, SettingValues, TransferDirection};
use crate::words::{Content, Policy, Space, StreamTags};

/// Everything that was decided about a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The graph's handlers and the converters put between them, each after the ones that feed it.
    pub handlers: Vec<PlannedHandler>,
    /// Every link, by the handler it comes from.
    pub links: Vec<PlannedLink>,
    /// Every transfer between spaces.
    pub transfers: Vec<Transfer>,
    /// Every kernel, with the handlers fused into it.
    pub groups: Vec<FusionGroup>,
    /// Every lane, with its handlers in order.
    pub lanes: Vec<PlannedLane>,
    /// What becomes a node each: handlers by group, then inserted transfers.
    pub units: Vec<Unit>,
    /// Every queue between units.
    pub rings: Vec<PlannedRing>,
    /// Bytes that the pools need.
    pub memory: PlannedMemory,
    /// How many times a frame enters the device; 0 where none does.
    pub segments: u32,
    /// Where the costs came from.
    pub profile: String,
    /// What one frame costs by those figures, all lanes added up.
    pub cost_ns: u64,
    /// What it would cost otherwise.
    pub alternatives: Alternatives,
    /// What the user should know: transfers and their causes, limits met, estimates used.
    pub warnings: Vec<String>,
    /// What a stream's header says and a handler cannot keep.
    pub notes: Vec<String>,
}

/// A handler and where it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedHandler {
    /// Its name.
    pub name: String,
    /// What it is.
    pub entry: &'static Entry,
    /// Its settings: the graph's, or the planner's if it is inserted.
    pub settings: SettingValues,
    /// Index of the input whose frames it follows.
    pub lead: usize,
    /// Whether the planner put it there.
    pub inserted: bool,
    /// Where it runs.
    pub space: Space,
    /// Which lane runs it.
    pub lane: usize,
    /// Which group it belongs to; none for handlers without a kernel.
    pub group: Option<usize>,
    /// What it computes on a frame, without the pass over memory that its group shares.
    pub cost_ns: u64,
    /// Bytes of small data that its kernel reads; 0 on the host, where they are a part of its parameters.
    pub small_bytes: u64,
}

/// A port of a planned handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortAt {
    /// Index of the handler.
    pub handler: usize,
    /// Name of the port.
    pub port: &'static str,
}

/// A link and what travels over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLink {
    /// Where it comes from.
    pub from: PortAt,
    /// Where it goes.
    pub to: PortAt,
    /// Where the producer leaves its frames.
    pub from_space: Space,
    /// Where the consumer finds them; differs from `from_space` exactly when there is a transfer.
    pub space: Space,
    /// What a frame is.
    pub content: Content,
    /// What else is known of the stream, from its source's header.
    pub tags: Option<Arc<StreamTags>>,
    /// How it delivers.
    pub policy: Policy,
    /// How many frames it can hold; 0 where both ends run in one go.
    pub depth: u32,
    /// Index of the transfer it crosses.
    pub transfer: Option<usize>,
    /// Indices of the rings that its frames pass: two around an inserted transfer, none inside a unit.
    pub rings: Vec<usize>,
}

/// A transfer between spaces, shared by every consumer behind it. In JSON, transfers are published under the key `ramps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The output it starts from.
    pub from: PortAt,
    /// The inputs it serves.
    pub to: Vec<PortAt>,
    /// Which way.
    pub direction: TransferDirection,
    /// Bytes of one frame.
    pub bytes: u64,
    /// What one transfer costs by the profile.
    pub est_ns: u64,
    /// Whether the user asked for it with `upload` or `download`.
    pub explicit: bool,
}

/// One kernel and the handlers in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FusionGroup {
    /// Where it runs.
    pub space: Space,
    /// Its handlers in order.
    pub handlers: Vec<usize>,
    /// Dispatches a frame; 0 on the cpu.
    pub dispatches: u32,
    /// The pass over memory, paid once for all its handlers.
    pub pass_ns: u64,
}

/// Handlers that run one after another on one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedLane {
    /// Whether this lane records the device's work.
    pub device: bool,
    /// Its handlers in order.
    pub handlers: Vec<usize>,
    /// Its units by what runs in one go, in running order. A lane of the host has one segment; each segment of the
    /// device's is submitted by itself.
    pub segments: Vec<Vec<usize>>,
}

/// What becomes one node: a handler, handlers that are fused into one kernel, or an inserted transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its handlers in order; none for an inserted transfer.
    pub handlers: Vec<usize>,
    /// Which lane runs it.
    pub lane: usize,
    /// The inputs that are fed from outside, as handler and port; empty for an inserted transfer, which has one.
    pub inputs: Vec<(usize, usize)>,
    /// Index of the transfer that it carries: an inserted one, or that of the user's own `upload` or `download`.
    pub transfer: Option<usize>,
}

impl Unit {
    /// Whether it is a transfer that the planner inserted.
    pub fn is_inserted(&self) -> bool {
        self.handlers.is_empty()
    }
}

/// A queue between two units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRing {
    /// The unit that fills it.
    pub from: usize,
    /// Which of its outputs.
    pub output: usize,
    /// The unit that it feeds.
    pub to: usize,
    /// Which of its inputs.
    pub input: usize,
    /// How it delivers.
    pub policy: Policy,
    /// How many frames it can hold; 0 if both ends run in one go.
    pub depth: u32,
    /// How the whole link delivers, which tells its consumer whether more can come.
    pub link_policy: Policy,
}

/// Bytes in the pools of each space.
///
/// The rings in which transfers are staged and small data, such as letters, are no part of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlannedMemory {
    /// On the device.
    pub gpu_bytes: u64,
    /// On the host.
    pub cpu_bytes: u64,
    /// The host's frames, by size: a pipeline makes them before the first is wanted.
    pub host_frames: Vec<PooledFrames>,
}

/// Frames of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PooledFrames {
    /// Bytes of one.
    pub bytes: u64,
    /// How many are alive at once.
    pub count: u64,
}

/// What a frame would cost under other orders; none where the graph cannot be planned so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alternatives {
    /// With everything on the host.
    pub cpu_ns: Option<u64>,
    /// With everything on the device that can be there.
    pub gpu_ns: Option<u64>,
}

/// What a port was given by the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated<'a> {
    /// The memory space of the frames at this port.
    pub space: Space,
    /// What a frame is.
    pub content: &'a Content,
}

impl PlannedHandler {
    /// Its kind, as written in a pipeline.
    pub fn kind(&self) -> &'static str {
        self.entry.name
    }
}

impl Plan {
    /// The handler of this name.
    pub fn handler(&self, name: &str) -> Option<&PlannedHandler> {
        self.handlers.iter().find(|h| h.name == name)
    }

    /// What was negotiated for the input of a handler; none where it is not linked.
    pub fn input(&self, handler: &str, port: &str) -> Option<Negotiated<'_>> {
        let link = self.links.iter().find(|l| self.is(l.to, handler, port))?;
        Some(Negotiated { space: link.space, content: &link.content })
    }

    /// What was negotiated for the output of a handler; none where it is not linked.
    pub fn output(&self, handler: &str, port: &str) -> Option<Negotiated<'_>> {
        let link = self.links.iter().find(|l| self.is(l.from, handler, port))?;
        Some(Negotiated { space: link.from_space, content: &link.content })
    }

    /// A port as `handler.port`.
    pub fn port_name(&self, at: PortAt) -> String {
        format!("{}.{}", self.handlers[at.handler].name, at.port)
    }

    /// The inserted transfer that a link's frames pass, as a unit.
    pub fn inserted_transfer(&self, link: &PlannedLink) -> Option<usize> {
        let [before, _] = link.rings[..] else { return None };
        Some(self.rings[before].to).filter(|unit| self.units[*unit].is_inserted())
    }

    fn is(&self, at: PortAt, handler: &str, port: &str) -> bool {
        at.port == port && self.handlers[at.handler].name == handler
    }
}
