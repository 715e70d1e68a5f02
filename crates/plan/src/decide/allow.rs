//! Step 4: determines the spaces in which each node may run, and a reason for each excluded space.
//!
//! An entry's implementations, pins, `--cpu`, `--gpu`, `--require-gpu`, a missing device and the limits of the device
//! narrow the set of spaces.
//!
//! Invariant: if no space is left for a node, the error names the reason for each excluded space.

use std::collections::BTreeMap;

use crate::catalog::nearest;
use crate::profile::{Limits, Profile};
use crate::words::{Content, Space, SpaceSet};

use super::explain::{NoPlan, OffDevice};
use super::net::Net;

/// The spaces in which a node may run.
#[derive(Debug, Clone)]
pub(super) struct Allowed {
    pub spaces: SpaceSet,
    /// The reason for each excluded space that the entry offers.
    pub reasons: Vec<(Space, Reason)>,
}

/// The reason a space that the entry offers is excluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// `--place` names the other space.
    Pinned(Space),
    /// `--cpu` or `--gpu` names the other space.
    Only(Space),
    /// The latency need keeps the node in this space.
    Latency(Space),
    /// `--require-gpu` confines the node to the GPU.
    Required,
    NoDevice(String),
    /// The node exceeds a limit of the device.
    Limit(String),
}

impl Reason {
    pub fn words(&self) -> String {
        match self {
            Reason::Pinned(space) => format!("--place pins it to the {space}"),
            Reason::Only(space) => format!("--{space} keeps it on the {space}"),
            Reason::Latency(space) => format!("--latency keeps it on the {space}"),
            Reason::Required => "--require-gpu keeps it on the gpu".to_owned(),
            Reason::NoDevice(profile) => format!("profile {profile} has no device"),
            Reason::Limit(limit) => limit.clone(),
        }
    }
}

impl Allowed {
    fn take(&mut self, space: Space, reason: Reason) {
        if self.spaces.contains(space) {
            self.spaces = self.spaces.without(space);
            self.reasons.push((space, reason));
        }
    }

    /// Whether the node could run in this space if no option forbade it: the entry has an implementation, there is a
    /// device, and the node fits the device.
    pub fn is_able(&self, offered: SpaceSet, space: Space) -> bool {
        let impossible = |reason: &Reason| matches!(reason, Reason::NoDevice(_) | Reason::Limit(_));
        offered.contains(space) && !self.reasons.iter().any(|(taken, reason)| *taken == space && impossible(reason))
    }

    /// The reason the node is confined to these spaces; `None` if its entry offers no other space.
    pub fn why_not(&self, left: SpaceSet) -> Option<String> {
        self.reasons.iter().find(|(space, _)| !left.contains(*space)).map(|(_, reason)| reason.words())
    }
}

/// The user's placement options.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    pub only: Option<Space>,
    pub pins: BTreeMap<String, Space>,
    pub require_gpu: bool,
    /// True if the planner tries `only` to meet a latency need, and the user did not ask for it.
    pub for_latency: bool,
}

impl Orders {
    /// Why `only` keeps a node in a space.
    fn reason(&self, space: Space) -> Reason {
        if self.for_latency { Reason::Latency(space) } else { Reason::Only(space) }
    }
}

pub(super) fn allow(net: &Net<'_>, profile: &Profile, orders: &Orders) -> Result<Vec<Allowed>, NoPlan> {
    if orders.only == Some(Space::Gpu) && profile.gpu.is_none() {
        return Err(NoPlan::NoDevice { profile: profile.name().to_owned() });
    }
    for name in orders.pins.keys() {
        if !net.nodes.iter().any(|n| n.name == *name) {
            let nearest = nearest(name, net.nodes.iter().map(|n| n.name.as_str())).map(str::to_owned);
            return Err(NoPlan::UnknownPin { name: name.clone(), nearest });
        }
    }
    if orders.require_gpu {
        check_required(net, profile, orders)?;
    }
    (0..net.nodes.len()).map(|node| one(net, profile, orders, node)).collect()
}

/// Checks that every node between sources and sinks may run on the device.
fn check_required(net: &Net<'_>, profile: &Profile, orders: &Orders) -> Result<(), NoPlan> {
    let between: Vec<usize> =
        (0..net.nodes.len()).filter(|at| net.nodes[*at].entry.is_between_ends() && !net.has_only_data(*at)).collect();
    if between.is_empty() {
        return Err(NoPlan::NothingBetween);
    }
    let off = |at: &usize| {
        let allowed = narrowed(net, profile, orders, *at);
        (!allowed.spaces.contains(Space::Gpu)).then(|| off_device(net, &allowed, *at))
    };
    let handlers: Vec<OffDevice> = between.iter().filter_map(off).collect();
    if handlers.is_empty() { Ok(()) } else { Err(NoPlan::OffDevice { handlers, between: between.len() }) }
}

fn off_device(net: &Net<'_>, allowed: &Allowed, at: usize) -> OffDevice {
    let node = &net.nodes[at];
    let name = &node.name;
    let reason = allowed.reasons.iter().find(|(space, _)| *space == Space::Gpu).map(|(_, reason)| reason);
    let (because, fix) = match reason {
        None if node.inserted => (
            "the planner inserted it, and it has no GPU implementation".to_owned(),
            format!("make the handlers around {name} agree on a format"),
        ),
        None => ("it has no GPU implementation".to_owned(), format!("replace {name}")),
        Some(reason) => {
            let fix = match reason {
                Reason::Pinned(space) => format!("drop --place {name}={space}"),
                Reason::Only(space) => format!("drop --{space}"),
                Reason::Latency(_) => "drop --latency".to_owned(),
                Reason::Limit(_) => format!("use smaller frames or fewer inputs for {name}"),
                Reason::NoDevice(_) | Reason::Required => "use a machine or a profile with a device".to_owned(),
            };
            (reason.words(), fix)
        }
    };
    OffDevice { handler: name.clone(), because, fix }
}

/// The spaces that are left for a node, possibly none.
fn narrowed(net: &Net<'_>, profile: &Profile, orders: &Orders, at: usize) -> Allowed {
    let node = &net.nodes[at];
    let mut allowed = Allowed { spaces: net.offered(at), reasons: Vec::new() };
    match &profile.gpu {
        None => allowed.take(Space::Gpu, Reason::NoDevice(profile.name().to_owned())),
        Some(gpu) => {
            if let Some(limit) = beyond(net, at, &gpu.limits) {
                allowed.take(Space::Gpu, Reason::Limit(limit));
            }
        }
    }
    if node.entry.transfer.is_some() {
        // Explicit transfers run on the device, wherever the other handlers run.
        allowed.spaces = allowed.spaces.without(Space::Cpu);
    }
    let pin = orders.pins.get(&node.name);
    if let Some(pin) = pin {
        allowed.take(pin.other(), Reason::Pinned(*pin));
    }
    match orders.only {
        // `--cpu` promises that no device is opened, so a pin does not override this option.
        Some(Space::Cpu) => allowed.take(Space::Gpu, orders.reason(Space::Cpu)),
        // `--gpu` applies to every handler that can run on the GPU and is not pinned. All other handlers keep their
        // spaces.
        Some(Space::Gpu) if pin.is_none() && allowed.spaces.contains(Space::Gpu) => {
            allowed.take(Space::Cpu, orders.reason(Space::Gpu));
        }
        _ => {}
    }
    if orders.require_gpu && node.entry.is_between_ends() && allowed.spaces.contains(Space::Gpu) {
        allowed.take(Space::Cpu, Reason::Required);
    }
    allowed
}

fn one(net: &Net<'_>, profile: &Profile, orders: &Orders, at: usize) -> Result<Allowed, NoPlan> {
    let node = &net.nodes[at];
    let allowed = narrowed(net, profile, orders, at);
    if !allowed.spaces.is_empty() {
        return Ok(allowed);
    }
    let mut because: Vec<_> = allowed.reasons.iter().map(|(_, reason)| reason.words()).collect();
    because.dedup();
    let pinned = allowed.reasons.iter().any(|(_, r)| matches!(r, Reason::Pinned(_)));
    let fix = match allowed.reasons.last() {
        Some((_, Reason::Only(_))) if node.entry.transfer.is_some() => {
            format!("remove {} from the pipeline, or drop --cpu", node.name)
        }
        Some((_, Reason::Only(space))) if pinned => format!("drop --place {}=..., or --{space}", node.name),
        Some((_, Reason::Only(space))) => format!("drop --{space}, or replace {}", node.name),
        _ if pinned => format!("drop --place {}=...", node.name),
        Some((_, Reason::Limit(_))) => "use smaller frames or fewer inputs".to_owned(),
        _ => format!("replace {}, or plan for a machine with a device: --profile shipped:integrated", node.name),
    };
    Err(NoPlan::Nowhere {
        handler: node.name.clone(),
        offers: if node.entry.transfer.is_some() { SpaceSet::GPU } else { net.offered(at) },
        because: because.join(", and "),
        fix,
    })
}

/// Pixels per workgroup: 64 invocations of 4 pixels.
const PIXELS_PER_WORKGROUP: u64 = 256;

/// The device limit that a node exceeds on its own, as a message with the numbers.
fn beyond(net: &Net<'_>, at: usize, limits: &Limits) -> Option<String> {
    let node = &net.nodes[at];
    let wires = node.inputs.iter().flatten().map(|w| &net.wires[*w].content);
    for content in wires.chain(&node.outputs) {
        let bytes = content.bytes();
        for (limit, what) in [(&limits.binding_bytes, "one binding"), (&limits.buffer_bytes, "one buffer")] {
            if bytes > limit.whole() {
                return Some(format!(
                    "a frame of {bytes} bytes ({content}) exceeds the limit of {} bytes for {what}",
                    limit.whole()
                ));
            }
        }
        let (groups, most) =
            (content.elements().div_ceil(PIXELS_PER_WORKGROUP), limits.workgroups_per_dimension.whole());
        if groups > most.saturating_mul(most) {
            return Some(format!("{content} needs {groups} workgroups; the device dispatches at most {most}x{most}"));
        }
    }
    let kept = net.kept_bytes(at);
    for (limit, what) in [(&limits.binding_bytes, "one binding"), (&limits.buffer_bytes, "one buffer")] {
        if kept > limit.whole() {
            return Some(format!(
                "its intermediate of {kept} bytes exceeds the limit of {} bytes for {what}",
                limit.whole()
            ));
        }
    }
    let (needed, most) = (Buffers::of(net, at).count(), limits.storage_buffers_per_stage.whole());
    (node.kernel.is_some() && needed > most)
        .then(|| format!("its kernel binds {needed} storage buffers, but the device allows {most}"))
}

/// Storage buffers that a kernel, or a run of fused kernels, binds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Buffers {
    /// Frames and tensors that are read.
    pub read: u32,
    pub written: u32,
    /// True if there are small data. All small data share one buffer.
    pub small: bool,
}

impl Buffers {
    /// The buffers of a node's own kernel. Unlinked inputs and data ports are not bound.
    pub fn of(net: &Net<'_>, at: usize) -> Buffers {
        let node = &net.nodes[at];
        let is_bound = |content: &Content| content.bytes() > 0 && !content.is_data();
        let read = node.inputs.iter().flatten().filter(|w| is_bound(&net.wires[**w].content)).count() as u32;
        let written = node.outputs.iter().filter(|c| c.bytes() > 0).count() as u32;
        Buffers { read, written, small: node.entry.small.is_some() }
    }

    /// The buffers of this run of kernels if the kernel `next` is fused after the run. Fusing saves one store and one
    /// load.
    pub fn joined(self, next: Buffers) -> Buffers {
        Buffers {
            read: self.read + next.read.saturating_sub(1),
            written: next.written,
            small: self.small || next.small,
        }
    }

    pub fn count(self) -> u64 {
        u64::from(self.read + self.written) + u64::from(self.small)
    }
}
