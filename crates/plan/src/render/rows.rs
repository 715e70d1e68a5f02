//! The rows of the text form: one row for each fusion group and for each handler without a group.
//!
//! Invariants: a row comes after every row that feeds it. Each transfer is shown before the first row that needs its
//! frames.

use std::collections::BTreeSet;

use crate::plan::Plan;
use crate::words::{Content, Space};

/// Handlers that run as one unit.
pub(super) struct PlanRow<'a> {
    /// In running order.
    pub(super) handlers: Vec<usize>,
    pub(super) space: Space,
    /// `None` without a kernel.
    pub(super) group: Option<usize>,
    /// Cost per frame, including the pass over memory.
    pub(super) cost_ns: u64,
    /// The same cost in the other space; `None` if a handler of the row cannot run there.
    pub(super) other_ns: Option<u64>,
    /// The row's output, if there is one.
    pub(super) out: Option<&'a Content>,
    /// The handlers of other rows that feed this row, in order.
    pub(super) fed_by: BTreeSet<usize>,
    /// True if only the row above feeds this row.
    pub(super) follows: bool,
    /// The transfers to show before this row.
    pub(super) transfers: Vec<usize>,
}

pub(super) fn rows(plan: &Plan) -> Vec<PlanRow<'_>> {
    let mut rows: Vec<PlanRow<'_>> = Vec::new();
    let mut row_of = vec![0; plan.handlers.len()];
    for (h, handler) in plan.handlers.iter().enumerate() {
        let members = handler.group.map(|g| plan.groups[g].handlers.as_slice());
        // A group is shown at the position of its last member, because any member may have an extra input from a
        // handler just before that member.
        if members.is_some_and(|m| m.iter().max() != Some(&h)) {
            continue;
        }
        let handlers = members.map_or_else(|| vec![h], <[usize]>::to_vec);
        let pass_ns = handler.group.map_or(0, |g| plan.groups[g].pass_ns);
        let cost_ns = handlers.iter().fold(pass_ns, |sum, m| sum.saturating_add(plan.handlers[*m].cost_ns));
        let other_ns = handler.group.map_or(handler.other_ns, |g| plan.groups[g].other_ns);
        for member in &handlers {
            row_of[*member] = rows.len();
        }
        rows.push(PlanRow {
            handlers,
            space: handler.space,
            group: handler.group,
            cost_ns,
            other_ns,
            out: None,
            fed_by: BTreeSet::new(),
            follows: true,
            transfers: Vec::new(),
        });
    }
    for link in &plan.links {
        let (from, to) = (row_of[link.from.handler], row_of[link.to.handler]);
        if from != to {
            rows[from].out.get_or_insert(&link.content);
            rows[to].fed_by.insert(link.from.handler);
            rows[to].follows &= from + 1 == to;
        }
    }
    for (r, transfer) in plan.transfers.iter().enumerate() {
        // A `download` is itself on the device, so its transfer is shown between its own row and the next row.
        let place = |h: usize| row_of[h] + usize::from(plan.handlers[h].space != transfer.direction.to());
        let first = transfer.to.iter().map(|at| place(at.handler)).min();
        if let Some(first) = first.map(|at| at.min(rows.len() - 1)) {
            rows[first].transfers.push(r);
        }
    }
    rows
}
