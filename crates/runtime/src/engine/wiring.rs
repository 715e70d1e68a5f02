//! Connects nodes by the plan's rings, and finds the gates of each segment.
//!
//! **Rings.** A ring of planned depth 0 has one slot and no wake signal: both ends are in one lane, and neither sleeps
//! while the other works. Any other ring has the planned depth. If the ends of a ring are in two lanes, its link wakes
//! the producer's lane when there is room and the consumer's lane when a slot arrives.
//!
//! **Gates.** A frame enters a segment only if it can leave the segment. A unit that admits frames therefore fires only
//! if every downstream unit of the segment that feeds a ring of depth 1 or more has room. Otherwise a frame could stop
//! halfway, and the rest of its work would need a second submit. With gates, the number of submits per frame is exactly
//! the number of planned segments.

use vramp_plan::{Plan, PlannedRing};

use crate::frame::Frame;
use crate::link::wake_signal::WakeSignal;
use crate::link::{LinkObserver, link};
use crate::node::Node;

/// Links inside a lane have planned depth 0, but a node needs one slot to send to.
const INLINE: usize = 1;

/// Connects the nodes, one per unit of the plan, by the plan's rings.
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

/// For each unit of a segment that admits frames: the positions of the units through which its frames leave the
/// segment.
pub(super) fn gates(segment: &[usize], rings: &[PlannedRing]) -> Vec<Vec<usize>> {
    let position = |unit: usize| segment.iter().position(|own| *own == unit);
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
        reached.into_iter().filter_map(position).collect::<Vec<_>>()
    };
    let lets_in = |unit: usize| !joined().any(|ring| ring.to == unit);
    segment.iter().map(|unit| if lets_in(*unit) { ways_out(*unit) } else { Vec::new() }).collect()
}
