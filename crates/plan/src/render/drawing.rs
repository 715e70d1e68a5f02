//! The content of the Graphviz and Mermaid drawings: boxes by space and fusion group, edges and transfers with their
//! labels.
//!
//! Invariants: every handler is in exactly one box. A transfer with several consumers is one edge that forks.

use std::collections::BTreeMap;

use super::units::{bytes, count, time};
use crate::catalog::TransferDirection;
use crate::plan::{Plan, PlannedLink, PortAt, Transfer};
use crate::words::Space;

/// The handlers of one space, with fused handlers listed separately.
pub(super) struct SpaceBox {
    pub(super) space: Space,
    /// Handlers that are not fused with another handler.
    pub(super) single: Vec<usize>,
    /// Fusion groups of two or more handlers.
    pub(super) fused: Vec<usize>,
}

/// The spaces that have handlers.
pub(super) fn spaces(plan: &Plan) -> Vec<SpaceBox> {
    let fused = |g: &usize| plan.groups[*g].handlers.len() > 1;
    let boxes = [Space::Cpu, Space::Gpu].map(|space| SpaceBox {
        space,
        single: (0..plan.handlers.len())
            .filter(|h| plan.handlers[*h].space == space && !plan.handlers[*h].group.is_some_and(|g| fused(&g)))
            .collect(),
        fused: (0..plan.groups.len()).filter(|g| plan.groups[*g].space == space && fused(g)).collect(),
    });
    boxes.into_iter().filter(|b| !b.single.is_empty() || !b.fused.is_empty()).collect()
}

pub(super) fn group_label(plan: &Plan, group: usize) -> String {
    match plan.groups[group].dispatches {
        0 => format!("group {group}"),
        n => format!("group {group}, {}", count(n as usize, "dispatch")),
    }
}

pub(super) fn handler_label(plan: &Plan, handler: usize) -> String {
    let handler = &plan.handlers[handler];
    format!("{}{}", handler.name, if handler.inserted { " (inserted)" } else { "" })
}

/// The label of a link: its content, the input port if this port is not `video`, and the policy and depth if the depth
/// is not 0.
pub(super) fn link_label(link: &PlannedLink) -> String {
    let port = if link.to.port == "video" { String::new() } else { format!("{}: ", link.to.port) };
    let depth = if link.depth == 0 { String::new() } else { format!(", {} {}", link.policy, link.depth) };
    format!("{port}{}{depth}", link.content)
}

/// The transfer that serves each input, including explicit `upload` and `download` handlers.
pub(super) fn transfers_by_input(plan: &Plan) -> BTreeMap<PortAt, usize> {
    plan.transfers.iter().enumerate().flat_map(|(r, transfer)| transfer.to.iter().map(move |at| (*at, r))).collect()
}

pub(super) fn transfer_label(transfer: &Transfer) -> String {
    let way = match transfer.direction {
        TransferDirection::Up => "up",
        TransferDirection::Down => "down",
    };
    format!("{way} {}, {}", bytes(transfer.bytes), time(transfer.est_ns))
}
