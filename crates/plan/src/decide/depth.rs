//! Depths: how many frames a link has to hold so that no diamond waits for itself.
//!
//! Owns the latency of every node within its cycle of links and the depth each link needs for it.
//! Does not depend on placement; lanes add their own default on top.
//!
//! Always: with these depths a schedule exists in which every node runs at its latency after the sources, so a
//! data-driven run, which is free to run ahead of that schedule, cannot deadlock.
//!
//! A link matters only if it lies on a cycle of links that somebody waits for, seen without their direction:
//! elsewhere a producer that waits holds nobody else up. So bridges are found first, and latencies are compared within
//! what is left. Nobody waits for an input that is neither the lead nor lossless: it supplies what is there.

use crate::words::{Content, Policy, Rate};

use super::net::{Net, Wire};

/// What each wire needs.
#[derive(Debug)]
pub(super) struct Depths {
    /// Frames a wire has to hold; 1 where nothing is held back.
    pub needed: Vec<u64>,
}

/// Stands in where a source does not know its rate: frames are then counted, not timed.
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
            // A millionth of a frame is rounding, not a frame.
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

/// Where sources tick at different rates, an input is certain of another only when that one's next frame has come:
/// up to a period of the slowest source later.
fn slack_seconds(net: &Net<'_>) -> f64 {
    let sources = net.nodes.iter().filter(|n| n.entry.inputs.is_empty());
    let rates: Vec<Option<Rate>> = sources.flat_map(|n| &n.outputs).map(Content::rate).collect();
    // A source that does not know its rate is like no other.
    let alike = rates.iter().all(|r| *r == rates[0]) && (rates.len() < 2 || rates[0].is_some());
    let slowest = rates.iter().map(|r| per_second(*r)).fold(f64::MAX, f64::min);
    if alike { 0.0 } else { 1.0 / slowest }
}

/// Which wires lie on an undirected cycle of wires that somebody waits for: all of those but the bridges.
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
        // Depth-first without recursion: (node, the wire it was reached by, its next neighbour).
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
