//! Step 7: placement. Chooses one space for each node by an exact minimum cut.
//!
//! Vertex s stands for the GPU and t for the CPU. The GPU wins ties, because only vertices that still reach t are on
//! the CPU side. The layout prices the result independently.
//!
//! The construction, per frame:
//! - node v: the capacity of s->v is the CPU cost of v, and that of v->t is the GPU cost of v; the cost in an excluded
//!   space is infinite;
//! - output u, with two vertices d and a of its own: u->d is the cost of a download and a->u the cost of an upload, and
//!   for every consumer c, d->c and c->a are infinite, so that all consumers share one transfer in each direction;
//! - fusible wire u->v: v's costs assume that the wire is fused, and breaking the wire costs v's saving on the side
//!   where v ends up;
//! - device work, with one vertex g: v->g is infinite for every node v that may run on the GPU, and g->t is the cost of
//!   one submit;
//! - data: read on the host, so its consumers count as t, and a producer on the device pays a download;
//! - explicit transfer: its input is pinned to one side and its output to the other side, so its cost is always paid,
//!   and the other consumers of the same output use the transfer for free.
//!
//! Two things differ from the construction in textbooks. First, breaking a fusible wire has a cost, which depends on
//! the side of the wire's consumer, so the wire has a capacity in each direction. Second, an explicit `upload` or
//! `download` has its input on one side of the cut and its output on the other side.

use crate::catalog::TransferDirection;
use crate::words::{Space, SpaceSet};

use super::allow::Allowed;
use super::cost::Costs;
use super::cut::Network;
use super::net::Net;

const S: usize = 0;
const T: usize = 1;
const DEVICE: usize = 2;
const FIRST: usize = 3;

/// Chooses the space of every node. With `strict`, automatic transfers are forbidden; the caller has checked that a
/// placement without automatic transfers exists.
pub(super) fn place(net: &Net<'_>, allowed: &[Allowed], costs: &Costs, strict: bool) -> Vec<Space> {
    let infinite = 1 + finite(costs);
    let mut network = Network::new(FIRST + net.nodes.len());
    network.edge(DEVICE, T, costs.submit, 0);
    for (at, allowed) in allowed.iter().enumerate() {
        if net.nodes[at].entry.transfer.is_some() {
            network.edge(S, DEVICE, infinite, 0);
            continue;
        }
        let v = FIRST + at;
        let saved = net.lead_wire(at).map_or_else(Default::default, |w| costs.spared(w));
        // The saving can exceed v's own cost if pixel functions on a large frame are fused into a gather that shrinks
        // the frame, so the same amount is added to both sides.
        let full = |space: Space| costs.compute[at].of(space) + costs.pass[at].of(space);
        let shift = saved.gpu.max(saved.cpu);
        let side = |space: Space| {
            if allowed.spaces.contains(space) { full(space) + shift - saved.of(space) } else { infinite }
        };
        network.edge(S, v, side(Space::Cpu), 0);
        network.edge(v, T, side(Space::Gpu), 0);
        if allowed.spaces.contains(Space::Gpu) {
            network.edge(v, DEVICE, infinite, 0);
        }
    }
    for (at, wire) in net.wires.iter().enumerate() {
        let saving = costs.spared(at);
        network.edge(FIRST + wire.from, FIRST + wire.to, saving.cpu, saving.gpu);
    }
    for (at, node) in net.nodes.iter().enumerate() {
        for (output, fan) in node.fans.iter().enumerate() {
            if node.outputs[output].bytes() == 0 || fan.is_empty() {
                continue;
            }
            let forbidden = (strict && !node.outputs[output].is_data()).then_some(infinite);
            transfers(net, &mut network, costs, at, output, forbidden, infinite);
        }
    }
    network.saturate(S, T);
    let cpu = network.reaches(T);
    (0..net.nodes.len())
        .map(|at| if net.nodes[at].entry.transfer.is_none() && cpu[FIRST + at] { Space::Cpu } else { Space::Gpu })
        .collect()
}

/// The shared upload and download of one output.
fn transfers(
    net: &Net<'_>,
    network: &mut Network,
    costs: &Costs,
    at: usize,
    output: usize,
    forbidden: Option<u64>,
    infinite: u64,
) {
    let fan = &net.nodes[at].fans[output];
    let paid = |way: TransferDirection| fan.iter().any(|w| net.nodes[net.wires[*w].to].entry.transfer == Some(way));
    let price = costs.transfer[at][output];
    let up = if paid(TransferDirection::Up) { 0 } else { price.up + price.resubmit };
    let down = if paid(TransferDirection::Down) { 0 } else { price.down };
    let (up, down) = forbidden.map_or((up, down), |f| (f, f));
    let u = producer(net, at);
    let (d, a) = (network.vertex(), network.vertex());
    network.edge(u, d, down, 0);
    network.edge(a, u, up, 0);
    for &wire in fan {
        let c = if net.wires[wire].content.is_data() { T } else { consumer(net, net.wires[wire].to) };
        network.edge(d, c, infinite, 0);
        network.edge(c, a, infinite, 0);
    }
}

fn producer(net: &Net<'_>, at: usize) -> usize {
    net.nodes[at].entry.transfer.map_or(FIRST + at, |way| terminal(way.to()))
}

fn consumer(net: &Net<'_>, at: usize) -> usize {
    net.nodes[at].entry.transfer.map_or(FIRST + at, |way| terminal(way.from()))
}

fn terminal(space: Space) -> usize {
    match space {
        Space::Gpu => S,
        Space::Cpu => T,
    }
}

/// An upper bound on the sum of all finite capacities.
fn finite(costs: &Costs) -> u64 {
    let pairs = costs.compute.iter().chain(&costs.pass).map(|p| p.gpu + p.cpu);
    let spared = (0..costs.saving.len()).map(|wire| costs.spared(wire));
    let savings = spared.map(|p| 2 * p.gpu.max(p.cpu) + p.gpu + p.cpu);
    let transfers = costs.transfer.iter().flatten().map(|r| r.up + r.down + r.resubmit);
    pairs.chain(savings).chain(transfers).sum::<u64>() + costs.submit
}

/// The space of each node if every node that may run in the preferred space runs there. A plan is compared with the two
/// placements of this kind.
pub(super) fn extreme(net: &Net<'_>, offered: &[SpaceSet], prefer: Space) -> Vec<Space> {
    (0..net.nodes.len())
        .map(|at| match net.nodes[at].entry.transfer {
            Some(_) => Space::Gpu,
            None if offered[at].contains(prefer) => prefer,
            None => prefer.other(),
        })
        .collect()
}
