//! Units: the handlers and transfers that become one node each.
//!
//! Owns which handlers are one unit, where transfers stand in the device's lane, and where frames enter the device.
//! Does not make anything: `build` makes a node of each.

use std::collections::BTreeMap;

use vramp_plan::Plan;
use vramp_plan::catalog::Direction;

use crate::node::Node;

use super::build::Planned;

/// Handlers that become one node, with what connects it.
pub(super) struct Unit {
    pub(super) handlers: Vec<usize>,
    pub(super) lane: usize,
    /// Where it stands in its lane: ramps stand between handlers.
    pub(super) order: usize,
    /// The ports that are linked from outside, in the order of the node's inputs.
    pub(super) inputs: Vec<(usize, usize)>,
    pub(super) ramp: Option<Direction>,
    pub(super) node: Option<Node>,
}

/// One unit for each group and for each handler that is in none, and the unit of each handler.
pub(super) fn units(plan: &Plan, planned: &[Planned<'_>]) -> (Vec<Unit>, Vec<usize>) {
    let mut units: Vec<Unit> = Vec::new();
    let mut of_group: BTreeMap<usize, usize> = BTreeMap::new();
    let mut unit_of = vec![0; plan.handlers.len()];
    for (at, handler) in plan.handlers.iter().enumerate() {
        let known = handler.group.and_then(|group| of_group.get(&group).copied());
        let unit = known.unwrap_or_else(|| {
            units.push(Unit {
                handlers: Vec::new(),
                lane: handler.lane,
                order: 0,
                inputs: Vec::new(),
                ramp: None,
                node: None,
            });
            if let Some(group) = handler.group {
                of_group.insert(group, units.len() - 1);
            }
            units.len() - 1
        });
        units[unit].handlers.push(at);
        unit_of[at] = unit;
        let place = plan.lanes[handler.lane].handlers.iter().position(|h| *h == at).unwrap_or(0);
        // A group runs where its last member stands: by then all its pictures are there.
        units[unit].order = units[unit].order.max(4 * place + 2);
    }
    for unit in &mut units {
        for at in &unit.handlers {
            for port in 0..planned[*at].entry.inputs.len() {
                let inside = plan.links.iter().any(|link| {
                    link.to.handler == *at
                        && planned[*at].entry.input(link.to.port) == Some(port)
                        && unit.handlers.contains(&link.from.handler)
                });
                if !inside {
                    unit.inputs.push((*at, port));
                }
            }
        }
    }
    (units, unit_of)
}

/// For every ramp the unit that carries it: the user's own `upload` or `download`, or a new one.
pub(super) fn add_ramps(plan: &Plan, planned: &[Planned<'_>], units: &mut Vec<Unit>, unit_of: &[usize]) -> Vec<usize> {
    let device = plan.lanes.iter().position(|lane| lane.device).unwrap_or(0);
    let mut found = Vec::new();
    for ramp in &plan.ramps {
        // The user's own transfer: one that is fed by the ramp, or, where a ramp the other way leads to it, feeds it.
        let is_own = |handler: usize| planned[handler].entry.transfer == Some(ramp.direction);
        let own = ramp.to.iter().map(|to| to.handler).chain([ramp.from.handler]).find(|handler| is_own(*handler));
        found.push(match own {
            Some(handler) => {
                units[unit_of[handler]].ramp = Some(ramp.direction);
                unit_of[handler]
            }
            None => {
                let order = match ramp.direction {
                    // Before its first consumer, or after its producer.
                    Direction::Up => ramp.to.iter().map(|to| units[unit_of[to.handler]].order - 1).min().unwrap_or(0),
                    Direction::Down => units[unit_of[ramp.from.handler]].order + 1,
                };
                units.push(Unit {
                    handlers: Vec::new(),
                    lane: device,
                    order,
                    inputs: vec![(usize::MAX, 0)],
                    ramp: Some(ramp.direction),
                    node: None,
                });
                units.len() - 1
            }
        });
    }
    found
}

/// Whether frames come to the device in a unit for the first time: from its own source, or up from handlers none of which
/// has been on the device.
pub(super) fn enters_device(plan: &Plan, unit: &Unit, at: usize, ramps: &[usize]) -> bool {
    if !plan.lanes[unit.lane].device {
        return false;
    }
    let Some(ramp) = ramps.iter().position(|ramp| *ramp == at) else {
        return unit.handlers.first().is_some_and(|first| plan.links.iter().all(|link| link.to.handler != *first));
    };
    let mut waiting = vec![plan.ramps[ramp].from.handler];
    let mut seen = vec![false; plan.handlers.len()];
    while let Some(handler) = waiting.pop() {
        if plan.lanes[plan.handlers[handler].lane].device {
            return false;
        }
        if !std::mem::replace(&mut seen[handler], true) {
            waiting.extend(plan.links.iter().filter(|link| link.to.handler == handler).map(|link| link.from.handler));
        }
    }
    plan.ramps[ramp].direction == Direction::Up
}
