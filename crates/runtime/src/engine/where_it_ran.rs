//! Where the handlers of a run computed, and where the time went, from the counters of the nodes.

use std::sync::Arc;

use vramp_plan::Space;
use vramp_plan::catalog::TransferDirection;

use crate::observe::report::{Placement, UnitTime};

use super::account::time;
use super::watch::{WatchedEngine, WatchedNode};

impl WatchedEngine {
    pub(super) fn placement(&self) -> Placement {
        let mut placement =
            Placement { device_losses: self.device_history.recoveries().len() as u64, ..Placement::default() };
        for node in &self.nodes {
            let (taken, on_host) = (node.stats.counts().taken, node.stats.on_host());
            let between = node.between.iter().filter(|between| **between).count() as u64;
            placement.frames = placement.frames.max(taken);
            placement.gpu_frames = placement.gpu_frames.max(taken.saturating_sub(on_host));
            if between > 0 {
                placement.cpu_frames = placement.cpu_frames.max(on_host);
            }
            match (node.space, on_host) {
                (Space::Gpu, 0) => placement.gpu_handlers += between,
                _ => placement.cpu_handlers += between,
            }
            if node.space == Space::Gpu {
                placement.moved_frames = placement.moved_frames.max(on_host);
            }
        }
        placement.graphs_off_device = u64::from(placement.frames > 0 && placement.gpu_frames == 0);
        placement
    }

    /// The time of each unit, longest first. If the device's clock gives only the total time of a segment, the segment
    /// is one entry.
    pub(super) fn unit_times(&self) -> Vec<UnitTime> {
        let mut units = Vec::new();
        let mut at = 0;
        while at < self.nodes.len() {
            let nodes = self.segment_at(at);
            let whole = self.segments.iter().find(|(first, _)| Arc::ptr_eq(first, &nodes[0].stats));
            let is_unknown = |node: &WatchedNode| node.on_device && time(node).count() == 0;
            match whole {
                Some((_, whole)) if nodes.iter().any(is_unknown) && whole.count() > 0 => {
                    let names = nodes.iter().map(|node| self.unit_name(node)).collect::<Vec<_>>().join(", ");
                    let calls = nodes[0].stats.counts().taken;
                    units.extend(whole.mean_ns().map(|ns| unit(names, nodes, calls, ns)));
                }
                _ => units.extend(nodes.iter().filter_map(|node| {
                    let mean_ns = mean_ns(node)?;
                    Some(unit(self.unit_name(node), std::slice::from_ref(node), node.stats.counts().taken, mean_ns))
                })),
            }
            at += nodes.len();
        }
        let sum: f64 = units.iter().map(|unit| unit.share).sum();
        for unit in &mut units {
            unit.share = if sum > 0.0 { unit.share / sum } else { 0.0 };
        }
        units.sort_by(|a, b| b.share.total_cmp(&a.share));
        units
    }

    /// The nodes of the segment that begins at this index; one node of a host lane.
    fn segment_at(&self, at: usize) -> &[WatchedNode] {
        let begins = |node: &WatchedNode| self.segments.iter().any(|(first, _)| Arc::ptr_eq(first, &node.stats));
        let rest = &self.nodes[at..];
        let more = rest[1..].iter().take_while(|node| node.lane == rest[0].lane && !begins(node)).count();
        if begins(&rest[0]) { &rest[..=more] } else { &rest[..1] }
    }

    fn unit_name(&self, node: &WatchedNode) -> String {
        if !node.inserted {
            return node.names.join("+");
        }
        let same = |other: &WatchedNode| Arc::ptr_eq(&other.stats, &node.stats);
        let crossing = |link: &&super::watch::WatchedLink| link.transfer.is_some_and(|at| same(&self.nodes[at]));
        let word = if node.direction == Some(TransferDirection::Up) { "upload" } else { "download" };
        let link = self.links.iter().find(crossing);
        link.map_or_else(|| word.to_owned(), |link| format!("{word} of {}", link.from))
    }
}

/// An entry whose `share` is its total time in nanoseconds.
fn unit(name: String, nodes: &[WatchedNode], calls: u64, mean_ns: f64) -> UnitTime {
    UnitTime {
        name,
        handlers: nodes.iter().flat_map(|node| node.names.clone()).collect(),
        space: nodes[0].space,
        calls,
        mean_us: mean_ns / 1e3,
        share: mean_ns * calls as f64,
    }
}

/// Mean time per call. After a device loss, the calls on the CPU count with the mean time of all calls, which also
/// contains the short calls that only recorded commands.
fn mean_ns(node: &WatchedNode) -> Option<f64> {
    let (taken, on_host) = (node.stats.counts().taken, node.stats.on_host());
    if taken == 0 {
        return None;
    }
    let own = time(node).mean_ns();
    match node.stats.call.mean_ns() {
        Some(call) if node.on_device && on_host > 0 => {
            Some((own.unwrap_or(0.0) * (taken - on_host.min(taken)) as f64 + call * on_host as f64) / taken as f64)
        }
        _ => own,
    }
}
