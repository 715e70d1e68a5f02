//! A plan as a Graphviz drawing. `drawing` chooses the content.
//!
//! Invariant: ids are made from indices; names only appear inside quoted labels.

use std::fmt::Write as _;

use super::drawing::{group_label, handler_label, link_label, spaces, transfer_label, transfers_by_input};
use crate::plan::Plan;
use crate::words::Space;

pub(super) fn dot(plan: &Plan) -> String {
    let mut out = String::from(
        "digraph vramp {\n  rankdir=LR;\n  fontname=\"sans-serif\";\n  \
         node [fontname=\"sans-serif\", shape=box, style=\"rounded,filled\", fillcolor=white];\n  \
         edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    boxes(&mut out, plan);
    edges(&mut out, plan);
    out.push_str("}\n");
    out
}

fn boxes(out: &mut String, plan: &Plan) {
    for space in spaces(plan) {
        let fill = match space.space {
            Space::Cpu => "#fdf1d8",
            Space::Gpu => "#dff3e4",
        };
        let _ = writeln!(
            out,
            "  subgraph cluster_{0} {{\n    label=\"{0}\"; style=\"rounded,filled\"; color=\"{fill}\";",
            space.space
        );
        for h in space.single {
            let _ = writeln!(out, "    h{h} [label=\"{}\"];", handler_label(plan, h));
        }
        for g in space.fused {
            let label = group_label(plan, g);
            let _ = writeln!(
                out,
                "    subgraph cluster_group{g} {{\n      label=\"{label}\"; style=\"rounded\"; color=\"#555555\";"
            );
            for &h in &plan.groups[g].handlers {
                let _ = writeln!(out, "      h{h} [label=\"{}\"];", handler_label(plan, h));
            }
            out.push_str("    }\n");
        }
        out.push_str("  }\n");
    }
}

fn edges(out: &mut String, plan: &Plan) {
    let bold = "style=bold, penwidth=3, color=\"#a0206a\"";
    for (r, transfer) in plan.transfers.iter().enumerate().filter(|(_, transfer)| transfer.to.len() > 1) {
        let _ = writeln!(out, "  r{r} [shape=point, label=\"\"];");
        let _ = writeln!(
            out,
            "  h{} -> r{r} [{bold}, arrowhead=none, label=\"{}\"];",
            transfer.from.handler,
            transfer_label(transfer)
        );
    }
    let served = transfers_by_input(plan);
    for link in &plan.links {
        let (from, to, label) = (link.from.handler, link.to.handler, link_label(link));
        let _ = match served.get(&link.to).map(|r| (r, &plan.transfers[*r])) {
            Some((r, transfer)) if transfer.to.len() > 1 => {
                writeln!(out, "  r{r} -> h{to} [{bold}, label=\"{label}\"];")
            }
            Some((_, transfer)) => {
                writeln!(out, "  h{from} -> h{to} [{bold}, label=\"{}\\n{label}\"];", transfer_label(transfer))
            }
            None => writeln!(out, "  h{from} -> h{to} [label=\"{label}\"];"),
        };
    }
}
