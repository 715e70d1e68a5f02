//! Step 3: computes how many frames each lossless link must hold, so that no diamond deadlocks.
//!
//! Only links on an undirected cycle of awaited links matter. A link is awaited if it is lossless or feeds the lead
//! input of its consumer; on any other link the consumer just uses the current frame. An awaited link that is on no
//! such cycle is a bridge. A producer that waits at a bridge never waits for itself, so a bridge needs no extra depth.
//! Bridges are found first, and latencies are compared on the remaining links.
//!
//! The latency of a node is the latency of its slowest input. For `delay keep-times=true`, the time for which the node
//! holds frames is added. The depth of a link is one, plus the number of frames that arrive while the consumer still
//! waits for its slowest input. With these depths there is a schedule in which each node runs at its latency after the
//! sources. A data-driven run can only be ahead of this schedule, so the run cannot deadlock.
//!
//! Depths do not depend on placement; `lanes` applies its own default depth.

use crate::words::{Content, Policy, Rate};

use super::net::{Net, Wire};

#[derive(Debug)]
pub(super) struct Depths {
    /// Frames that a wire must hold; 1 if nothing is delayed.
    pub needed: Vec<u64>,
}

/// The frames per second that are assumed for an unknown rate. If all rates are unknown, any number gives the same
/// depths.
const NOMINAL: f64 = 30.0;

pub(super) fn depths(net: &Net<'_>) -> Depths {
    let on_cycle = on_cycles(net);
    let slack = slack_seconds(net);
    // Seconds after the sources at which a frame leaves each node.
    let mut latency = vec![0.0f64; net.nodes.len()];
    let mut needed = vec![1u64; net.wires.len()];
    for (at, node) in net.nodes.iter().enumerate() {
        let wires: Vec<usize> = node.inputs.iter().flatten().copied().filter(|w| on_cycle[*w]).collect();
        let slowest = wires.iter().map(|w| latency[net.wires[*w].from]).fold(0.0, f64::max);
        let fires = if wires.len() > 1 { slowest + slack } else { slowest };
        for &wire in wires.iter().filter(|w| net.wires[**w].policy == Policy::Lossless) {
            let early = fires - latency[net.wires[wire].from];
            let frames = early * per_second(net.wires[wire].content.rate());
            // A millionth of a frame is a rounding error, not a frame.
            needed[wire] = (frames - 1e-6).ceil().max(0.0) as u64 + 1;
        }
        let held = f64::from(node.entry.latency(&node.settings));
        let rate = net.lead_wire(at).and_then(|w| net.wires[w].content.rate());
        latency[at] = fires + held / per_second(rate);
    }
    Depths { needed }
}

fn per_second(rate: Option<Rate>) -> f64 {
    rate.map_or(NOMINAL, Rate::per_second)
}

/// Extra latency of joins if sources run at different rates. A join can use a frame of an input that is not the lead
/// only after the next frame of that input has arrived, which is up to one period of the slowest source later.
fn slack_seconds(net: &Net<'_>) -> f64 {
    let sources = net.nodes.iter().filter(|n| n.entry.inputs.is_empty());
    let rates: Vec<Option<Rate>> = sources.flat_map(|n| &n.outputs).map(Content::rate).collect();
    // The unknown rate of a source counts as different from the rate of every other source.
    let alike = rates.iter().all(|r| *r == rates[0]) && (rates.len() < 2 || rates[0].is_some());
    let slowest = rates.iter().map(|r| per_second(*r)).fold(f64::MAX, f64::min);
    if alike { 0.0 } else { 1.0 / slowest }
}

/// For each wire, true if the wire is on an undirected cycle of awaited wires. This holds for all awaited wires except
/// bridges.
fn on_cycles(net: &Net<'_>) -> Vec<bool> {
    let awaited = |wire: &Wire| wire.policy == Policy::Lossless || wire.input == net.nodes[wire.to].lead;
    let mut around: Vec<Vec<(usize, usize)>> = vec![Vec::new(); net.nodes.len()];
    for (at, wire) in net.wires.iter().enumerate().filter(|(_, wire)| awaited(wire)) {
        around[wire.from].push((wire.to, at));
        around[wire.to].push((wire.from, at));
    }
    let mut on_cycle: Vec<bool> = net.wires.iter().map(awaited).collect();
    let mut found = vec![usize::MAX; net.nodes.len()];
    let mut low = vec![0usize; net.nodes.len()];
    let mut clock = 0;
    for root in 0..net.nodes.len() {
        if found[root] != usize::MAX {
            continue;
        }
        // Depth-first search without recursion. An entry of the stack holds a node, the wire that led to the node, and
        // the index of the next neighbour to visit.
        let mut stack = vec![(root, usize::MAX, 0usize)];
        found[root] = clock;
        low[root] = clock;
        clock += 1;
        while let Some((node, by, next)) = stack.last_mut() {
            let (node, by) = (*node, *by);
            if let Some(&(to, wire)) = around[node].get(*next) {
                *next += 1;
                if wire == by {
                    continue;
                }
                if found[to] == usize::MAX {
                    found[to] = clock;
                    low[to] = clock;
                    clock += 1;
                    stack.push((to, wire, 0));
                } else {
                    low[node] = low[node].min(found[to]);
                }
            } else {
                stack.pop();
                if let Some((parent, _, _)) = stack.last() {
                    low[*parent] = low[*parent].min(low[node]);
                    if low[node] > found[*parent] {
                        on_cycle[by] = false;
                    }
                }
            }
        }
    }
    on_cycle
}
