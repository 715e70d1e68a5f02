//! A plan as a Mermaid flowchart, for pages that render Mermaid inline. `drawing` chooses the content.
//!
//! Invariant: ids are made from indices, so that no name can be a Mermaid keyword.

use std::fmt::Write as _;

use super::drawing::{group_label, handler_label, link_label, spaces, transfer_label, transfers_by_input};
use crate::plan::Plan;

pub(super) fn mermaid(plan: &Plan) -> String {
    let mut out = String::from("flowchart LR\n");
    for space in spaces(plan) {
        let _ = writeln!(out, "  subgraph space_{0}[\"{0}\"]", space.space);
        for h in space.single {
            let _ = writeln!(out, "    h{h}[\"{}\"]", handler_label(plan, h));
        }
        for g in space.fused {
            let _ = writeln!(out, "    subgraph group{g}[\"{}\"]", group_label(plan, g));
            for &h in &plan.groups[g].handlers {
                let _ = writeln!(out, "      h{h}[\"{}\"]", handler_label(plan, h));
            }
            out.push_str("    end\n");
        }
        out.push_str("  end\n");
    }
    for (r, transfer) in plan.transfers.iter().enumerate().filter(|(_, transfer)| transfer.to.len() > 1) {
        let _ =
            writeln!(out, "  r{r}((\" \"))\n  h{} ==>|\"{}\"| r{r}", transfer.from.handler, transfer_label(transfer));
    }
    let served = transfers_by_input(plan);
    for link in &plan.links {
        let (from, to, label) = (link.from.handler, link.to.handler, link_label(link));
        let _ = match served.get(&link.to).map(|r| (r, &plan.transfers[*r])) {
            Some((r, transfer)) if transfer.to.len() > 1 => writeln!(out, "  r{r} ==>|\"{label}\"| h{to}"),
            Some((_, transfer)) => writeln!(out, "  h{from} ==>|\"{}<br/>{label}\"| h{to}", transfer_label(transfer)),
            None => writeln!(out, "  h{from} -->|\"{label}\"| h{to}"),
        };
    }
    out
}
