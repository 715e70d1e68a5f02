//! Wiring: the plan's rings between nodes, and what lets frames out of each segment.
//!
//! Owns the connecting.
//! Does not choose depths or segments: they are the plan's.

use vramp_plan::{Plan, PlannedRing};

use crate::frame::Frame;
use crate::link::wake_signal::WakeSignal;
use crate::link::{LinkObserver, link};
use crate::node::Node;

/// Links inside a lane hold nothing by plan, and a node needs one place.
const INLINE: usize = 1;

/// Connects nodes, one for each unit of the plan, by its rings.
pub(super) fn connect(plan: &Plan, nodes: &mut [Node], signals: &[WakeSignal]) -> Vec<LinkObserver<Frame>> {
    let signal = |unit: usize| &signals[plan.units[unit].lane];
    let one = |ring: &PlannedRing| {
        let depth = (ring.depth as usize).max(INLINE);
        let (sender, receiver) = link(ring.policy, depth, signal(ring.from), signal(ring.to));
        let observed = sender.observe();
        nodes[ring.from].connect_output(ring.output, sender);
        nodes[ring.to].connect_input(ring.input, receiver, ring.link_policy);
        observed
    };
    plan.rings.iter().map(one).collect()
}

/// For each unit of a segment that lets frames in, the places of those after it that let them out.
pub(super) fn gates(segment: &[usize], rings: &[PlannedRing]) -> Vec<Vec<usize>> {
    let place = |unit: usize| segment.iter().position(|own| *own == unit);
    let joined = || rings.iter().filter(|ring| ring.depth == 0);
    let ways_out = |root: usize| {
        let (mut reached, mut next) = (vec![root], 0);
        while next < reached.len() {
            let from = reached[next];
            let more = joined().filter(|ring| ring.from == from).map(|ring| ring.to);
            let more: Vec<usize> = more.filter(|unit| !reached.contains(unit)).collect();
            reached.extend(more);
            next += 1;
        }
        reached.retain(|unit| rings.iter().any(|ring| ring.depth > 0 && ring.from == *unit));
        reached.into_iter().filter_map(place).collect::<Vec<_>>()
    };
    let lets_in = |unit: usize| !joined().any(|ring| ring.to == unit);
    segment.iter().map(|unit| if lets_in(*unit) { ways_out(*unit) } else { Vec::new() }).collect()
}
