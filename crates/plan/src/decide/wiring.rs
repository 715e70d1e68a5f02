//! Wiring: the units that become nodes, the rings between them, and which units run in one go.
//!
//! Owns where inserted transfers stand in the device's lane, where rings are put around them, and the segments of each
//! lane.
//! Does not choose lanes or depths: they are decided before.
//!
//! Invariants: a ring that a link gives a depth has at least that depth; consumers that share a ramp share its ring.

use crate::catalog::Direction;
use crate::plan::{Ring, Unit};
use crate::words::Policy;

use super::lanes::Lanes;
use super::layout::Layout;
use super::net::Net;

#[derive(Debug)]
pub(super) struct Wiring {
    pub units: Vec<Unit>,
    pub rings: Vec<Ring>,
    /// The rings that a frame passes on each wire; none inside a unit.
    pub rings_of: Vec<Vec<usize>>,
    /// Units of each lane by what runs in one go, in running order.
    pub segments: Vec<Vec<Vec<usize>>>,
}

pub(super) fn wire(net: &Net<'_>, layout: &Layout, lanes: &Lanes, device: Option<usize>) -> Wiring {
    let mut work = Work { net, layout, lanes, units: own_units(net, lanes), order: Vec::new(), rings: Vec::new() };
    // Inserted transfers stand between two units.
    work.order = (0..work.units.len()).map(|unit| 4 * unit + 2).collect();
    let carriers: Vec<usize> = (0..layout.ramps.len()).map(|ramp| work.carrier(ramp, device.unwrap_or(0))).collect();
    let rings_of = work.connect_all(&carriers);
    let segments = work.segments(device);
    Wiring { units: work.units, rings: work.rings, rings_of, segments }
}

/// A unit for each fusion group and for each node that is in none.
fn own_units(net: &Net<'_>, lanes: &Lanes) -> Vec<Unit> {
    let one = |(unit, nodes): (usize, &Vec<usize>)| {
        let from_outside = |at: usize, input: usize| {
            net.nodes[at].inputs[input].is_none_or(|wire| lanes.unit_of[net.wires[wire].from] != unit)
        };
        let ports = nodes.iter().flat_map(|at| (0..net.nodes[*at].inputs.len()).map(|input| (*at, input)));
        Unit {
            handlers: nodes.clone(),
            lane: lanes.lane_of[nodes[0]],
            inputs: ports.filter(|(at, input)| from_outside(*at, *input)).collect(),
            ramp: None,
        }
    };
    lanes.units.iter().enumerate().map(one).collect()
}

struct Work<'a> {
    net: &'a Net<'a>,
    layout: &'a Layout,
    lanes: &'a Lanes,
    units: Vec<Unit>,
    /// Where each unit stands in its lane.
    order: Vec<usize>,
    rings: Vec<Ring>,
}

impl Work<'_> {
    /// The unit that carries a ramp: the user's own `upload` or `download`, or a new one.
    fn carrier(&mut self, ramp: usize, device: usize) -> usize {
        let (net, made) = (self.net, &self.layout.ramps[ramp]);
        // One that feeds the ramp, if a ramp the other way leads to it, or is fed by it.
        let is_own = |at: &usize| net.nodes[*at].entry.transfer == Some(made.direction);
        let mut ends = [made.from].into_iter().chain(made.wires.iter().map(|wire| net.wires[*wire].to));
        if let Some(own) = ends.find(is_own) {
            let unit = self.lanes.unit_of[own];
            self.units[unit].ramp = Some(ramp);
            return unit;
        }
        let order_of = |at: usize| self.order[self.lanes.unit_of[at]];
        self.order.push(match made.direction {
            // Before its first consumer, or after its producer.
            Direction::Up => made.wires.iter().map(|wire| order_of(net.wires[*wire].to) - 1).min().unwrap_or(0),
            Direction::Down => order_of(made.from) + 1,
        });
        self.units.push(Unit { handlers: Vec::new(), lane: device, inputs: Vec::new(), ramp: Some(ramp) });
        self.units.len() - 1
    }

    /// Makes the rings of every wire between two units, and returns those of each wire.
    fn connect_all(&mut self, carriers: &[usize]) -> Vec<Vec<usize>> {
        let (net, layout) = (self.net, self.layout);
        let mut crossed = vec![None; net.wires.len()];
        for (ramp, made) in layout.ramps.iter().enumerate().rev() {
            let starts = |wire: &usize| net.wires[*wire].from == made.from && net.wires[*wire].output == made.output;
            // A ramp that the producer itself carries is crossed already.
            let carried = self.lanes.unit_of[made.from] == carriers[ramp];
            made.wires.iter().filter(|wire| starts(wire) && !carried).for_each(|wire| crossed[*wire] = Some(ramp));
        }
        // What feeds a ramp, once for all that it serves.
        let mut fed: Vec<Option<usize>> = vec![None; layout.ramps.len()];
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
                // The user's own transfer: the way to it is what the link says.
                Some(ramp) if carriers[ramp] == to => {
                    let ring = fed[ramp].unwrap_or_else(|| self.ring((from, output), (to, input), own, own.0));
                    fed[ramp] = Some(ring);
                    vec![ring]
                }
                Some(ramp) => {
                    let carrier = carriers[ramp];
                    let down = layout.ramps[ramp].direction == Direction::Down;
                    let outer = fed[ramp].unwrap_or_else(|| {
                        let before = match self.way_to(carrier, ramp) {
                            Some(own) => own,
                            None if down => (Policy::Lossless, 0),
                            None => self.before_upload(ramp),
                        };
                        self.ring((from, output), (carrier, 0), before, before.0)
                    });
                    fed[ramp] = Some(outer);
                    // A single consumer's policy holds before the upload, so that nothing is uploaded in vain.
                    let alone = !down && layout.ramps[ramp].wires.len() == 1;
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
        self.rings.push(Ring { from, output, to, input, policy, depth, link_policy });
        self.rings.len() - 1
    }

    /// Policy and depth of the link to the user's own transfer, if that carries the ramp.
    fn way_to(&self, carrier: usize, ramp: usize) -> Option<(Policy, u32)> {
        let wires = &self.layout.ramps[ramp].wires;
        let wire = wires.iter().find(|wire| self.lanes.unit_of[self.net.wires[**wire].to] == carrier)?;
        Some((self.net.wires[*wire].policy, self.lanes.depth[*wire]))
    }

    /// Policy and depth before an upload: its consumers' if they agree, lossless otherwise.
    fn before_upload(&self, ramp: usize) -> (Policy, u32) {
        let wires = || self.layout.ramps[ramp].wires.iter().filter(|wire| self.layout.ramp_of[**wire] == Some(ramp));
        let depth = wires().map(|wire| self.lanes.depth[*wire]).max().unwrap_or(1).max(1);
        let policy = |wire: &usize| self.net.wires[*wire].policy;
        let first = wires().map(policy).next().unwrap_or(Policy::Lossless);
        let agree = wires().map(policy).all(|policy| policy == first);
        (if agree { first } else { Policy::Lossless }, depth)
    }

    /// The units of each lane in running order; those of the device's lane by what runs in one go.
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
        // The segment of each mark in its lane; lanes of the host have one.
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

/// Wires in the order of a plan's links: by the ends that they start from, then by those where they lead.
pub(super) fn by_ends(net: &Net<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..net.wires.len()).collect();
    order.sort_by_key(|w| (net.wires[*w].from, net.wires[*w].output, net.wires[*w].to, net.wires[*w].input));
    order
}
