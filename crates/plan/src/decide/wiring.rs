//! Step 12: the units, the rings and the running order of each lane, as the engine later creates them.
//!
//! Each fusion group, each handler without a group and each inserted transfer is one unit. Inserted transfers run in
//! the device lane: an upload runs before the first unit that reads the uploaded frames, and a download runs after the
//! unit that produces the frames. One transfer serves all consumers of an output. If the user wrote an `upload` or
//! `download` after the output, that handler performs the transfer, and a second such handler after the same output
//! only passes frames on. A link across an inserted transfer has two rings. If an upload has a single consumer, the
//! policy of the link applies before the upload, so that no frame is uploaded only to be dropped.
//!
//! Invariants: the rings of a link together have at least the link's depth. Consumers that share a transfer share the
//! ring into that transfer.

use crate::catalog::TransferDirection;
use crate::plan::{PlannedRing, Unit};
use crate::words::Policy;

use super::lanes::LaneAssignment;
use super::layout::UnitLayout;
use super::net::Net;

#[derive(Debug)]
pub(super) struct Wiring {
    pub units: Vec<Unit>,
    pub rings: Vec<PlannedRing>,
    /// The rings of each wire, in the order in which a frame passes them. A wire inside a unit has no ring.
    pub rings_of: Vec<Vec<usize>>,
    /// For each lane its segments, and for each segment its units in running order. The units of a segment are
    /// connected by links of depth 0; the device lane submits them together.
    pub segments: Vec<Vec<Vec<usize>>>,
}

pub(super) fn wire(net: &Net<'_>, layout: &UnitLayout, lanes: &LaneAssignment, device: Option<usize>) -> Wiring {
    let mut work =
        WiringBuilder { net, layout, lanes, units: own_units(net, lanes), order: Vec::new(), rings: Vec::new() };
    // The positions leave gaps, so that inserted transfers fit between two units.
    work.order = (0..work.units.len()).map(|unit| 4 * unit + 2).collect();
    let carriers: Vec<usize> =
        (0..layout.transfers.len()).map(|transfer| work.carrier(transfer, device.unwrap_or(0))).collect();
    let rings_of = work.connect_all(&carriers);
    let segments = work.segments(device);
    Wiring { units: work.units, rings: work.rings, rings_of, segments }
}

/// A unit for each fusion group and each node without a group.
fn own_units(net: &Net<'_>, lanes: &LaneAssignment) -> Vec<Unit> {
    let one = |(unit, nodes): (usize, &Vec<usize>)| {
        let from_outside = |at: usize, input: usize| {
            net.nodes[at].inputs[input].is_none_or(|wire| lanes.unit_of[net.wires[wire].from] != unit)
        };
        let ports = nodes.iter().flat_map(|at| (0..net.nodes[*at].inputs.len()).map(|input| (*at, input)));
        Unit {
            handlers: nodes.clone(),
            lane: lanes.lane_of[nodes[0]],
            inputs: ports.filter(|(at, input)| from_outside(*at, *input)).collect(),
            transfer: None,
        }
    };
    lanes.units.iter().enumerate().map(one).collect()
}

struct WiringBuilder<'a> {
    net: &'a Net<'a>,
    layout: &'a UnitLayout,
    lanes: &'a LaneAssignment,
    units: Vec<Unit>,
    /// The position of each unit in its lane.
    order: Vec<usize>,
    rings: Vec<PlannedRing>,
}

impl WiringBuilder<'_> {
    /// The unit that performs a transfer: the user's own `upload` or `download`, or a new unit.
    fn carrier(&mut self, transfer: usize, device: usize) -> usize {
        let (net, made) = (self.net, &self.layout.transfers[transfer]);
        // The user's own `upload` or `download` is usually a consumer of the transferred output. If a transfer in the
        // other direction leads into that handler, the handler is `made.from`.
        let is_own = |at: &usize| net.nodes[*at].entry.transfer == Some(made.direction);
        let mut ends = [made.from].into_iter().chain(made.wires.iter().map(|wire| net.wires[*wire].to));
        if let Some(own) = ends.find(is_own) {
            let unit = self.lanes.unit_of[own];
            self.units[unit].transfer = Some(transfer);
            return unit;
        }
        let order_of = |at: usize| self.order[self.lanes.unit_of[at]];
        self.order.push(match made.direction {
            // An upload runs before its first consumer, and a download runs after its producer.
            TransferDirection::Up => made.wires.iter().map(|wire| order_of(net.wires[*wire].to) - 1).min().unwrap_or(0),
            TransferDirection::Down => order_of(made.from) + 1,
        });
        self.units.push(Unit { handlers: Vec::new(), lane: device, inputs: Vec::new(), transfer: Some(transfer) });
        self.units.len() - 1
    }

    /// Creates the rings of every wire between two units; returns the rings of each wire.
    fn connect_all(&mut self, carriers: &[usize]) -> Vec<Vec<usize>> {
        let (net, layout) = (self.net, self.layout);
        let mut crossed = vec![None; net.wires.len()];
        for (transfer, made) in layout.transfers.iter().enumerate().rev() {
            let starts = |wire: &usize| net.wires[*wire].from == made.from && net.wires[*wire].output == made.output;
            // If the producer performs the transfer itself, the wire starts after the transfer.
            let carried = self.lanes.unit_of[made.from] == carriers[transfer];
            made.wires.iter().filter(|wire| starts(wire) && !carried).for_each(|wire| crossed[*wire] = Some(transfer));
        }
        // The ring into each transfer, which all consumers of the transfer share.
        let mut fed: Vec<Option<usize>> = vec![None; layout.transfers.len()];
        let mut rings_of = vec![Vec::new(); net.wires.len()];
        for wire in by_ends(net) {
            let (from, to) = (self.lanes.unit_of[net.wires[wire].from], self.lanes.unit_of[net.wires[wire].to]);
            if from == to {
                continue;
            }
            let own = (net.wires[wire].policy, self.lanes.depth[wire]);
            let output = net.wires[wire].output;
            let end = (net.wires[wire].to, net.wires[wire].input);
            let input = self.units[to].inputs.iter().position(|port| *port == end).unwrap_or(0);
            rings_of[wire] = match crossed[wire] {
                None => vec![self.ring((from, output), (to, input), own, own.0)],
                // The user's own handler performs the transfer: the ring into the handler has the policy and depth of
                // the link.
                Some(transfer) if carriers[transfer] == to => {
                    let ring = fed[transfer].unwrap_or_else(|| self.ring((from, output), (to, input), own, own.0));
                    fed[transfer] = Some(ring);
                    vec![ring]
                }
                Some(transfer) => {
                    let carrier = carriers[transfer];
                    let down = layout.transfers[transfer].direction == TransferDirection::Down;
                    let outer = fed[transfer].unwrap_or_else(|| {
                        let before = match self.way_to(carrier, transfer) {
                            Some(own) => own,
                            None if down => (Policy::Lossless, 0),
                            None => self.before_upload(transfer),
                        };
                        self.ring((from, output), (carrier, 0), before, before.0)
                    });
                    fed[transfer] = Some(outer);
                    // If the upload has a single consumer, the link's policy applies before the upload, so that no
                    // frame is uploaded only to be dropped.
                    let alone = !down && layout.transfers[transfer].wires.len() == 1;
                    let after = if alone { (Policy::Lossless, 0) } else { own };
                    vec![outer, self.ring((carrier, 0), (to, input), after, own.0)]
                }
            };
        }
        rings_of
    }

    fn ring(
        &mut self,
        (from, output): (usize, usize),
        (to, input): (usize, usize),
        (policy, depth): (Policy, u32),
        link_policy: Policy,
    ) -> usize {
        self.rings.push(PlannedRing { from, output, to, input, policy, depth, link_policy });
        self.rings.len() - 1
    }

    /// Policy and depth of the link to the user's own `upload` or `download`, if this handler performs the transfer.
    fn way_to(&self, carrier: usize, transfer: usize) -> Option<(Policy, u32)> {
        let wires = &self.layout.transfers[transfer].wires;
        let wire = wires.iter().find(|wire| self.lanes.unit_of[self.net.wires[**wire].to] == carrier)?;
        Some((self.net.wires[*wire].policy, self.lanes.depth[*wire]))
    }

    /// Policy and depth before an upload. If all links to the upload's consumers have the same policy, that policy
    /// applies, otherwise `lossless` applies. The depth is the largest depth of these links.
    fn before_upload(&self, transfer: usize) -> (Policy, u32) {
        let wires = || {
            self.layout.transfers[transfer]
                .wires
                .iter()
                .filter(|wire| self.layout.transfer_of[**wire] == Some(transfer))
        };
        let depth = wires().map(|wire| self.lanes.depth[*wire]).max().unwrap_or(1).max(1);
        let policy = |wire: &usize| self.net.wires[*wire].policy;
        let first = wires().map(policy).next().unwrap_or(Policy::Lossless);
        let agree = wires().map(policy).all(|policy| policy == first);
        (if agree { first } else { Policy::Lossless }, depth)
    }

    /// The units of each lane in running order, grouped into segments.
    fn segments(&self, device: Option<usize>) -> Vec<Vec<Vec<usize>>> {
        let mut mark: Vec<usize> = (0..self.units.len()).collect();
        mark[..self.lanes.segment_of.len()].copy_from_slice(&self.lanes.segment_of);
        for ring in self.rings.iter().filter(|ring| ring.depth == 0) {
            match (self.units[ring.from].is_inserted(), self.units[ring.to].is_inserted()) {
                (true, false) => mark[ring.from] = mark[ring.to],
                (false, true) => mark[ring.to] = mark[ring.from],
                _ => {}
            }
        }
        let mut running: Vec<usize> = (0..self.units.len()).collect();
        running.sort_by_key(|unit| (self.order[*unit], *unit));
        let mut lanes: Vec<Vec<Vec<usize>>> = vec![Vec::new(); self.lanes.nodes.len()];
        // The number of each segment within its lane; host lanes have one segment.
        let mut number: Vec<Option<usize>> = vec![None; self.units.len()];
        for unit in running {
            let lane = &mut lanes[self.units[unit].lane];
            let at = if Some(self.units[unit].lane) == device { number[mark[unit]] } else { lane.first().map(|_| 0) };
            match at {
                Some(at) => lane[at].push(unit),
                None => {
                    number[mark[unit]] = Some(lane.len());
                    lane.push(vec![unit]);
                }
            }
        }
        lanes
    }
}

/// Wires in the order of a plan's links: by their start, then by their end.
pub(super) fn by_ends(net: &Net<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..net.wires.len()).collect();
    order.sort_by_key(|w| (net.wires[*w].from, net.wires[*w].output, net.wires[*w].to, net.wires[*w].input));
    order
}
