//! Wiring: the plan's links as rings between units, and which units run in one go.
//!
//! Owns where rings are put around a ramp, the segments of the device's lane, and what lets frames out of each.
//! Does not make nodes: they are there when they are connected.
//!
//! Always: a ring that the plan gives a depth has at least that depth; whoever shares a ramp shares its ring.

use std::collections::BTreeMap;

use vramp_plan::catalog::Direction;
use vramp_plan::{Plan, Policy};

use crate::bell::Bell;
use crate::frame::Frame;
use crate::link::{Observed, link};

use super::build::Planned;
use super::units::Unit;

/// Where links between handlers of one lane would have no place at all, a node needs one.
const INLINE: usize = 1;

/// A link of the plan, made.
pub(super) struct Wired {
    /// Its number in the plan.
    pub(super) link: usize,
    pub(super) to: usize,
    /// Whether it is what its consumer follows.
    pub(super) leads: bool,
    /// The planner's own ramp that it crosses.
    pub(super) ramp: Option<usize>,
    pub(super) rings: Vec<Observed<Frame>>,
}

pub(super) struct Wiring<'a> {
    pub(super) units: &'a mut Vec<Unit>,
    pub(super) unit_of: &'a [usize],
    pub(super) bells: &'a [Bell],
    /// Units that run in one go.
    pub(super) joined: Vec<(usize, usize)>,
    /// Units that have a ring between them in which frames wait.
    pub(super) crossing: Vec<(usize, usize)>,
    pub(super) links: Vec<Wired>,
}

impl Wiring<'_> {
    /// Makes every link of the plan that is not inside a unit.
    pub(super) fn connect_all(&mut self, plan: &Plan, planned: &[Planned<'_>], ramps: &[usize]) {
        // What feeds a ramp, once for all that it serves.
        let mut fed: BTreeMap<usize, Observed<Frame>> = BTreeMap::new();
        for (number, link) in plan.links.iter().enumerate() {
            let (from, to) = (self.unit_of[link.from.handler], self.unit_of[link.to.handler]);
            if from == to {
                continue;
            }
            let entries = (planned[link.from.handler].entry, planned[link.to.handler].entry);
            let output = entries.0.output(link.from.port).unwrap_or(0);
            let port = entries.1.input(link.to.port).unwrap_or(0);
            let input = self.units[to].inputs.iter().position(|own| *own == (link.to.handler, port)).unwrap_or(0);
            let leads = planned[link.to.handler].lead() == port;
            // A ramp that this link crosses, or that its consumer is.
            let at = |to: &vramp_plan::PortAt| *to == link.to;
            // One that its producer is has been crossed already.
            let crosses =
                |r: &usize| plan.ramps[*r].from == link.from && plan.ramps[*r].to.iter().any(at) && ramps[*r] != from;
            let ramp = (0..plan.ramps.len()).find(crosses).map(|r| (r, ramps[r]));
            let rings = match ramp {
                Some((_, carrier)) if carrier == to => {
                    // The user's own transfer: the way to it is what the plan says.
                    let ring = fed.get(&carrier).cloned();
                    let ring = ring.unwrap_or_else(|| self.connect(from, output, to, input, link.policy, link.depth));
                    fed.insert(carrier, ring.clone());
                    vec![ring]
                }
                Some((ramp, carrier)) => {
                    let down = plan.ramps[ramp].direction == Direction::Down;
                    let outer = fed.get(&carrier).cloned().unwrap_or_else(|| {
                        let (policy, depth) = if down { (Policy::Lossless, 0) } else { shared(plan, ramp) };
                        self.connect(from, output, carrier, 0, policy, depth)
                    });
                    fed.insert(carrier, outer.clone());
                    // One consumer's policy holds in front of the ramp, so that nothing is sent for nothing.
                    let alone = !down && plan.ramps[ramp].to.len() == 1;
                    let (policy, depth) = if alone { (Policy::Lossless, 0) } else { (link.policy, link.depth) };
                    let inner = self.connect_as(carrier, 0, to, input, (policy, depth), link.policy);
                    vec![outer, inner]
                }
                None => vec![self.connect(from, output, to, input, link.policy, link.depth)],
            };
            let ramp = ramp.map(|(_, carrier)| carrier).filter(|carrier| self.units[*carrier].handlers.is_empty());
            self.links.push(Wired { link: number, to, leads, ramp, rings });
        }
    }

    fn connect(
        &mut self,
        from: usize,
        output: usize,
        to: usize,
        input: usize,
        policy: Policy,
        depth: u32,
    ) -> Observed<Frame> {
        self.connect_as(from, output, to, input, (policy, depth), policy)
    }

    /// Connects two units by a ring; the consumer goes by `rule` when it asks whether more can come.
    fn connect_as(
        &mut self,
        from: usize,
        output: usize,
        to: usize,
        input: usize,
        (policy, depth): (Policy, u32),
        rule: Policy,
    ) -> Observed<Frame> {
        if depth == 0 {
            self.joined.push((from, to));
        } else {
            self.crossing.push((from, to));
        }
        let bells = (&self.bells[self.units[from].lane], &self.bells[self.units[to].lane]);
        let (sender, receiver) = link(policy, (depth as usize).max(INLINE), bells.0, bells.1);
        let observed = sender.observe();
        let node = |unit: &mut Unit| unit.node.take().expect("nodes are made before they are connected");
        let mut producer = node(&mut self.units[from]);
        producer.connect_output(output, sender);
        self.units[from].node = Some(producer);
        let mut consumer = node(&mut self.units[to]);
        consumer.connect_input(input, receiver, rule);
        self.units[to].node = Some(consumer);
        observed
    }
}

/// Policy and depth in front of a ramp: its consumers' where they agree, waiting otherwise.
fn shared(plan: &Plan, ramp: usize) -> (Policy, u32) {
    let links = || plan.links.iter().filter(|link| link.ramp == Some(ramp));
    let depth = links().map(|link| link.depth).max().unwrap_or(1).max(1);
    let first = links().map(|link| link.policy).next().unwrap_or(Policy::Lossless);
    let agree = links().all(|link| link.policy == first);
    (if agree { first } else { Policy::Lossless }, depth)
}

/// The units of a lane in running order; in the device's, by what runs in one go.
pub(super) fn segments(lane: usize, device: bool, units: &[Unit], joined: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut here: Vec<usize> = (0..units.len()).filter(|unit| units[*unit].lane == lane).collect();
    here.sort_by_key(|unit| (units[*unit].order, *unit));
    if !device {
        return vec![here];
    }
    let mut of: Vec<usize> = (0..units.len()).collect();
    // Few units, and few links: whoever is joined takes the smaller mark until nobody changes.
    loop {
        let mut changed = false;
        for (from, to) in joined {
            if units[*from].lane == lane && units[*to].lane == lane && of[*from] != of[*to] {
                let least = of[*from].min(of[*to]);
                (of[*from], of[*to]) = (least, least);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    let mut segments: Vec<Vec<usize>> = Vec::new();
    for unit in here {
        match segments.iter_mut().find(|segment| of[segment[0]] == of[unit]) {
            Some(segment) => segment.push(unit),
            None => segments.push(vec![unit]),
        }
    }
    segments
}

/// For each unit of a segment that lets frames in, the places of those behind it that let them out.
pub(super) fn gates(segment: &[usize], joined: &[(usize, usize)], crossing: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let place = |unit: usize| segment.iter().position(|own| *own == unit);
    let ways_out = |root: usize| {
        let (mut reached, mut next) = (vec![root], 0);
        while next < reached.len() {
            let from = reached[next];
            let more = joined.iter().filter(|(a, _)| *a == from).map(|(_, b)| *b);
            let more: Vec<usize> = more.filter(|unit| !reached.contains(unit)).collect();
            reached.extend(more);
            next += 1;
        }
        reached.retain(|unit| crossing.iter().any(|(from, _)| from == unit));
        reached.into_iter().filter_map(place).collect::<Vec<_>>()
    };
    let lets_in = |unit: usize| !joined.iter().any(|(_, to)| *to == unit);
    segment.iter().map(|unit| if lets_in(*unit) { ways_out(*unit) } else { Vec::new() }).collect()
}
