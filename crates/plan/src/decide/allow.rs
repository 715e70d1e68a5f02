//! Allowed spaces: where each handler may run, and why not elsewhere.
//!
//! Owns how offers, pins, `--cpu`, `--gpu`, a missing device and device limits narrow each handler.
//! Does not weigh costs.
//!
//! Always: a handler left with no space is an error that names what took each one away.

use std::collections::BTreeMap;

use crate::catalog::nearest;
use crate::profile::{Limits, Profile};
use crate::words::{Space, SpaceSet};

use super::explain::NoPlan;
use super::net::Net;

/// Where a handler may run.
#[derive(Debug, Clone)]
pub(super) struct Allowed {
    pub spaces: SpaceSet,
    /// Why a space was taken away, where it was not simply not offered.
    pub reasons: Vec<(Space, Reason)>,
}

/// What takes a space away from a handler that offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    /// `--place` said otherwise.
    Pinned(Space),
    /// `--cpu` or `--gpu` said otherwise.
    Only(Space),
    /// The profile has no device.
    NoDevice(String),
    /// The device cannot hold or bind it.
    Limit(String),
}

impl Reason {
    pub fn words(&self) -> String {
        match self {
            Reason::Pinned(space) => format!("--place pins it to the {space}"),
            Reason::Only(space) => format!("--{space} keeps it on the {space}"),
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

    /// Why the handler is confined to these spaces, where something other than its own offer did it.
    pub fn why_not(&self, left: SpaceSet) -> Option<String> {
        self.reasons.iter().find(|(space, _)| !left.contains(*space)).map(|(_, reason)| reason.words())
    }
}

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    pub only: Option<Space>,
    pub pins: BTreeMap<String, Space>,
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
    (0..net.nodes.len()).map(|node| one(net, profile, orders, node)).collect()
}

fn one(net: &Net<'_>, profile: &Profile, orders: &Orders, at: usize) -> Result<Allowed, NoPlan> {
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
        // A transfer is the device's work, whatever the rest does.
        allowed.spaces = allowed.spaces.without(Space::Cpu);
    }
    let pin = orders.pins.get(&node.name);
    if let Some(pin) = pin {
        allowed.take(pin.other(), Reason::Pinned(*pin));
    }
    match orders.only {
        // No pin opens a device that the user said to leave alone.
        Some(Space::Cpu) => allowed.take(Space::Gpu, Reason::Only(Space::Cpu)),
        // Every handler that can: one that cannot, or is pinned, stays where it is.
        Some(Space::Gpu) if pin.is_none() && allowed.spaces.contains(Space::Gpu) => {
            allowed.take(Space::Cpu, Reason::Only(Space::Gpu));
        }
        _ => {}
    }
    if !allowed.spaces.is_empty() {
        return Ok(allowed);
    }
    let mut because: Vec<_> = allowed.reasons.iter().map(|(_, reason)| reason.words()).collect();
    because.dedup();
    let pinned = allowed.reasons.iter().any(|(_, r)| matches!(r, Reason::Pinned(_)));
    let fix = match allowed.reasons.last() {
        Some((_, Reason::Only(_))) if node.entry.transfer.is_some() => {
            format!("take {} out of the pipeline, or drop --cpu", node.name)
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

/// Pixels that one workgroup covers: 64 invocations of 4 pixels.
const PIXELS_PER_WORKGROUP: u64 = 256;

/// Which limit of the device a handler breaks by itself, in words with the numbers.
fn beyond(net: &Net<'_>, at: usize, limits: &Limits) -> Option<String> {
    let node = &net.nodes[at];
    let wires = node.inputs.iter().flatten().map(|w| &net.wires[*w].content);
    for content in wires.chain(&node.outputs) {
        let bytes = content.bytes();
        for (limit, what) in [(&limits.binding_bytes, "one binding"), (&limits.buffer_bytes, "one buffer")] {
            if bytes > limit.whole() {
                return Some(format!("a frame of {bytes} bytes ({content}) exceeds the {} of {what}", limit.whole()));
            }
        }
        let (groups, most) =
            (content.elements().div_ceil(PIXELS_PER_WORKGROUP), limits.workgroups_per_dimension.whole());
        if groups > most.saturating_mul(most) {
            return Some(format!("{content} takes {groups} workgroups, the device dispatches {most}x{most}"));
        }
    }
    let kept = net.kept_bytes(at);
    for (limit, what) in [(&limits.binding_bytes, "one binding"), (&limits.buffer_bytes, "one buffer")] {
        if kept > limit.whole() {
            return Some(format!("the {kept} bytes between its two passes exceed the {} of {what}", limit.whole()));
        }
    }
    let (needed, most) = (Buffers::of(net, at).count(), limits.storage_buffers_per_stage.whole());
    (node.kernel.is_some() && needed > most)
        .then(|| format!("its kernel binds {needed} storage buffers, the device allows {most}"))
}

/// Storage buffers that a kernel, or a run of fused ones, binds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Buffers {
    /// Pictures and tensors it reads.
    pub read: u32,
    /// What it writes.
    pub written: u32,
    /// Whether it has small data, which share one buffer.
    pub small: bool,
}

impl Buffers {
    /// What a handler's kernel binds by itself. Inputs that are not linked, and data, are not bound.
    pub fn of(net: &Net<'_>, at: usize) -> Buffers {
        let node = &net.nodes[at];
        let read = node.inputs.iter().flatten().filter(|w| net.wires[**w].content.bytes() > 0).count() as u32;
        let written = node.outputs.iter().filter(|c| c.bytes() > 0).count() as u32;
        Buffers { read, written, small: node.entry.small.is_some() }
    }

    /// What a run binds with one more kernel behind it, which no longer stores what the other one loads.
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
