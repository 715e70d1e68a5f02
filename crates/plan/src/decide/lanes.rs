//! Step 9: assigns stages, lanes, segments and the final depth of every link.
//!
//! A link is inline under three conditions. First, both ends are on the device, or both ends compute on the host.
//! Second, both ends run at the same rate. Third, no queue is needed, because the user set neither policy nor depth and
//! a depth of one frame is enough. A link that is not inline leads to a later stage. The device has one lane, each
//! blocking handler has its own lane, and host handlers that are connected inline within a stage share a lane.
//!
//! Host lanes therefore never wait for each other in a circle: a link between lanes leads to a later stage, and a host
//! lane has one stage. The device lane may span several stages, but never waits on a full ring. Links between stages of
//! the device lane have a depth, although both ends are in one lane; every other link inside a lane has depth 0. Units
//! connected by links of depth 0 form one segment. On the device, each segment is one submission.

use std::collections::BTreeMap;

use crate::graph::running_order;
use crate::words::{Policy, Space};

use super::depth::Depths;
use super::explain::{NoPlan, written_after, written_before};
use super::layout::UnitLayout;
use super::net::Net;

/// Default depth of a link between lanes.
pub(super) const USUAL_DEPTH: u32 = 3;

#[derive(Debug)]
pub(super) struct LaneAssignment {
    /// Nodes of each lane in running order.
    pub nodes: Vec<Vec<usize>>,
    pub lane_of: Vec<usize>,
    /// Frames that each wire can hold; 0 if both ends are in one segment.
    pub depth: Vec<u32>,
    pub segments: u32,
    /// Units in running order. A unit is a fusion group or a single node.
    pub units: Vec<Vec<usize>>,
    pub unit_of: Vec<usize>,
    /// For each unit, the first unit of its segment. The first unit identifies the segment.
    pub segment_of: Vec<usize>,
}

/// The place where a unit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Station {
    Device,
    Host,
    /// A handler that waits for the outside world and therefore has its own thread.
    Own(usize),
}

pub(super) fn lanes(
    net: &Net<'_>,
    spaces: &[Space],
    layout: &UnitLayout,
    depths: &Depths,
    usual_depth: u32,
) -> Result<LaneAssignment, NoPlan> {
    let (units, unit_of) = units(net, layout);
    let station: Vec<Station> = units
        .iter()
        .map(|nodes| match (spaces[nodes[0]], net.nodes[nodes[0]].entry.blocking) {
            (Space::Gpu, _) => Station::Device,
            (Space::Cpu, true) => Station::Own(nodes[0]),
            (Space::Cpu, false) => Station::Host,
        })
        .collect();
    let inline = |wire: usize| {
        let link = &net.wires[wire];
        // A frame that passes through the host between two kernels leaves the lane.
        let stays = net.space_out(link.from, spaces[link.from]) == net.space_in(wire, spaces[link.to])
            && net.space_out(link.from, spaces[link.from]) == spaces[link.to];
        // If an input has another rate than the lead, not every frame of the lead comes with a new frame of that input.
        let lead = net.lead_wire(link.to).map(|w| net.wires[w].content.rate());
        stays
            && lead == Some(link.content.rate())
            && station[unit_of[link.from]] == station[unit_of[link.to]]
            && !link.explicit_policy
            && link.depth.is_none()
            && depths.needed[wire] == 1
    };
    let mut stage = vec![0u32; units.len()];
    for (unit, nodes) in units.iter().enumerate() {
        let wires = nodes.iter().flat_map(|n| net.nodes[*n].inputs.iter().flatten().copied());
        let before = wires.filter(|w| unit_of[net.wires[*w].from] != unit);
        stage[unit] = before.map(|w| stage[unit_of[net.wires[w].from]] + u32::from(!inline(w))).max().unwrap_or(0);
    }
    let together = |wire: usize| {
        let link = &net.wires[wire];
        inline(wire) && stage[unit_of[link.from]] == stage[unit_of[link.to]]
    };
    let segment_of = join(net, &unit_of, &station, together);
    let device = station.iter().position(|s| *s == Station::Device);
    let lane_of_unit = |unit: usize| match (station[unit], device) {
        (Station::Device, Some(first)) => first,
        _ => segment_of[unit],
    };
    let mut lanes: Vec<Vec<usize>> = Vec::new();
    let mut number: BTreeMap<usize, usize> = BTreeMap::new();
    let mut lane_of = vec![0; net.nodes.len()];
    for (unit, nodes) in units.iter().enumerate() {
        let lane = *number.entry(lane_of_unit(unit)).or_insert_with(|| {
            lanes.push(Vec::new());
            lanes.len() - 1
        });
        for &node in nodes {
            lanes[lane].push(node);
            lane_of[node] = lane;
        }
    }
    let mut depth = Vec::with_capacity(net.wires.len());
    for wire in 0..net.wires.len() {
        depth.push(if together(wire) { 0 } else { real_depth(net, wire, depths.needed[wire], usual_depth)? });
    }
    Ok(LaneAssignment { nodes: lanes, lane_of, depth, segments: segments(net, spaces), units, unit_of, segment_of })
}

/// The depth of a link that is not inline.
fn real_depth(net: &Net<'_>, wire: usize, needed: u64, usual_depth: u32) -> Result<u32, NoPlan> {
    let link = &net.wires[wire];
    if let Some(given) = link.depth {
        if link.policy == Policy::Lossless && u64::from(given) < needed {
            let (from, to) = (net.output_at(written_before(net, wire)), net.input_at(written_after(net, wire)));
            let link = format!("{} -> {}", net.port_name(from), net.port_name(to));
            return Err(NoPlan::Depth { link, given, needed, held: needed - 1 });
        }
        return Ok(given);
    }
    Ok(u32::try_from(needed).unwrap_or(u32::MAX).max(usual_depth))
}

/// Units in running order, and the unit of each node.
fn units(net: &Net<'_>, layout: &UnitLayout) -> (Vec<Vec<usize>>, Vec<usize>) {
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut raw = vec![0; net.nodes.len()];
    let mut of_group = vec![usize::MAX; layout.groups.len()];
    for (node, unit) in raw.iter_mut().enumerate() {
        let slot = match layout.group_of[node] {
            Some(group) if of_group[group] != usize::MAX => of_group[group],
            group => {
                members.push(Vec::new());
                if let Some(group) = group {
                    of_group[group] = members.len() - 1;
                }
                members.len() - 1
            }
        };
        members[slot].push(node);
        *unit = slot;
    }
    // A group may have an extra input from a node that comes after the group's first member, so units are sorted again.
    let between = net.wires.iter().map(|wire| (raw[wire.from], raw[wire.to])).filter(|(from, to)| from != to);
    let (order, _) = running_order(members.len(), between);
    let mut unit_of = vec![0; net.nodes.len()];
    let mut units = Vec::with_capacity(order.len());
    for (at, unit) in order.into_iter().enumerate() {
        for &node in &members[unit] {
            unit_of[node] = at;
        }
        units.push(std::mem::take(&mut members[unit]));
    }
    (units, unit_of)
}

/// For each unit, the first unit of its segment. A blocking node is a segment of its own.
fn join(net: &Net<'_>, unit_of: &[usize], station: &[Station], together: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut first: Vec<usize> = (0..station.len()).collect();
    for (at, wire) in net.wires.iter().enumerate() {
        let (from, to) = (unit_of[wire.from], unit_of[wire.to]);
        if !matches!(station[from], Station::Own(_)) && together(at) {
            let (a, b) = (root(&mut first, from), root(&mut first, to));
            first[a.max(b)] = a.min(b);
        }
    }
    (0..station.len()).map(|unit| root(&mut first, unit)).collect()
}

fn root(first: &mut [usize], mut unit: usize) -> usize {
    while first[unit] != unit {
        first[unit] = first[first[unit]];
        unit = first[unit];
    }
    unit
}

/// How often a frame enters the device: once, and again after every download followed by an upload.
fn segments(net: &Net<'_>, spaces: &[Space]) -> u32 {
    let mut entered = vec![0u32; net.nodes.len()];
    let mut most = None;
    for (at, node) in net.nodes.iter().enumerate() {
        let carried = node.inputs.iter().flatten().filter(|w| net.wires[**w].content.bytes() > 0);
        let through = carried.map(|w| {
            let from = net.wires[*w].from;
            let down = net.space_out(from, spaces[from]) == Space::Gpu && net.space_in(*w, spaces[at]) == Space::Cpu;
            // The frame after a `download` has left the device.
            let left = net.nodes[from].entry.transfer.is_some() && net.space_out(from, spaces[from]) == Space::Cpu;
            entered[from] + u32::from(down || left)
        });
        entered[at] = through.max().unwrap_or(0);
        if spaces[at] == Space::Gpu {
            most = most.max(Some(entered[at]));
        }
    }
    most.map_or(0, |segment| segment + 1)
}
