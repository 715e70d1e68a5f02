//! Step 8: the fusion groups and transfers that follow from a placement, and the total cost of the plan.
//!
//! The cost is summed up independently of the minimum cut, so that the two sums can be checked against each other.
//!
//! Invariants: every node with a kernel is in exactly one group. There is at most one transfer per output and
//! direction.

use crate::catalog::TransferDirection;
use crate::words::Space;

use super::cost::Costs;
use super::net::Net;

#[derive(Debug)]
pub(super) struct UnitLayout {
    pub groups: Vec<LayoutGroup>,
    /// The group of each node; `None` without a kernel.
    pub group_of: Vec<Option<usize>>,
    pub transfers: Vec<LayoutTransfer>,
    /// The transfer that each wire crosses, if any.
    pub transfer_of: Vec<Option<usize>>,
    /// The compute time of each node in ns, without the time that fusing the node with its producer saves.
    pub compute: Vec<u64>,
    pub cost_ns: u64,
}

#[derive(Debug)]
pub(super) struct LayoutGroup {
    pub space: Space,
    pub nodes: Vec<usize>,
    pub dispatches: u32,
    pub pass_ns: u64,
}

#[derive(Debug)]
pub(super) struct LayoutTransfer {
    pub from: usize,
    pub output: usize,
    pub direction: TransferDirection,
    /// The wires that share the transfer.
    pub wires: Vec<usize>,
    pub ns: u64,
    pub explicit: bool,
}

pub(super) fn lay_out(net: &Net<'_>, spaces: &[Space], costs: &Costs) -> UnitLayout {
    let (groups, group_of) = form_groups(net, spaces, costs);
    let (transfers, transfer_of, resubmits) = form_transfers(net, spaces, costs);
    let left = |at: usize| {
        if net.nodes[at].entry.transfer.is_some() {
            return 0;
        }
        let joined = net.lead_wire(at).filter(|wire| spaces[net.wires[*wire].from] == spaces[at]);
        costs.compute[at].of(spaces[at]) - joined.map_or(0, |wire| costs.folded[wire].of(spaces[at]))
    };
    let compute: Vec<u64> = (0..net.nodes.len()).map(left).collect();
    let passes: u64 = groups.iter().map(|g| g.pass_ns).sum();
    let carried: u64 = transfers.iter().map(|r| r.ns).sum();
    let device = spaces.contains(&Space::Gpu);
    let submits = resubmits + if device { costs.submit } else { 0 };
    let cost_ns = compute.iter().sum::<u64>() + passes + carried + submits;
    UnitLayout { groups, group_of, transfers, transfer_of, compute, cost_ns }
}

fn form_groups(net: &Net<'_>, spaces: &[Space], costs: &Costs) -> (Vec<LayoutGroup>, Vec<Option<usize>>) {
    let mut groups: Vec<LayoutGroup> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; net.nodes.len()];
    for at in 0..net.nodes.len() {
        let Some(kernel) = net.nodes[at].kernel else { continue };
        let space = spaces[at];
        let pass = costs.pass[at].of(space);
        let dispatches = if space == Space::Gpu { kernel.dispatches } else { 0 };
        let joined = net.lead_wire(at).and_then(|wire| {
            let from = net.wires[wire].from;
            let saving = costs.saving[wire].of(space);
            (saving > 0 && spaces[from] == space).then_some((group_of[from]?, saving))
        });
        let group = match joined {
            Some((group, saving)) => {
                let one = &mut groups[group];
                one.nodes.push(at);
                one.pass_ns = one.pass_ns + pass - saving;
                one.dispatches = (one.dispatches + dispatches).saturating_sub(u32::from(space == Space::Gpu));
                group
            }
            None => {
                groups.push(LayoutGroup { space, nodes: vec![at], dispatches, pass_ns: pass });
                groups.len() - 1
            }
        };
        group_of[at] = Some(group);
    }
    (groups, group_of)
}

fn form_transfers(net: &Net<'_>, spaces: &[Space], costs: &Costs) -> (Vec<LayoutTransfer>, Vec<Option<usize>>, u64) {
    let mut transfers: Vec<LayoutTransfer> = Vec::new();
    let mut transfer_of = vec![None; net.wires.len()];
    let mut resubmits = 0;
    let own_way = |w: &usize| net.nodes[net.wires[*w].to].entry.transfer;
    for (at, node) in net.nodes.iter().enumerate() {
        let here = net.space_out(at, spaces[at]);
        let away = if here == Space::Gpu { TransferDirection::Down } else { TransferDirection::Up };
        for (output, fan) in node.fans.iter().enumerate() {
            if node.outputs[output].bytes() == 0 {
                continue;
            }
            let price = costs.transfer[at][output];
            let mut priced = |direction: TransferDirection| {
                resubmits += if direction == TransferDirection::Up { price.resubmit } else { 0 };
                if direction == TransferDirection::Up { price.up } else { price.down }
            };
            let crosses = |w: &usize| net.space_in(*w, spaces[net.wires[*w].to]) != here;
            let explicit_here = |w: &usize| own_way(w) == Some(away);
            let wires: Vec<usize> = fan.iter().copied().filter(|w| crosses(w) || explicit_here(w)).collect();
            if !wires.is_empty() {
                for wire in wires.iter().filter(|w| crosses(w)) {
                    transfer_of[*wire] = Some(transfers.len());
                }
                let explicit = wires.iter().any(explicit_here);
                transfers.push(LayoutTransfer { from: at, output, direction: away, ns: priced(away), wires, explicit });
            }
            // The user may have written a transfer from the other space after this output, such as an `upload` although
            // the frames are already on the device. The frames then cross twice: the transfer above carries the frames
            // to the other space, and the user's transfer carries the frames back.
            let back_and_forth = |w: &usize| own_way(w).is_some_and(|way| way != away);
            let back: Vec<usize> = fan.iter().copied().filter(back_and_forth).collect();
            if let Some(first) = back.first() {
                let direction = own_way(first).expect("the filter keeps only transfers");
                let wires = back.iter().flat_map(|w| net.nodes[net.wires[*w].to].fans[0].iter().copied()).collect();
                let from = net.wires[*first].to;
                transfers.push(LayoutTransfer {
                    from,
                    output: 0,
                    direction,
                    ns: priced(direction),
                    wires,
                    explicit: true,
                });
            }
        }
    }
    (transfers, transfer_of, resubmits)
}
