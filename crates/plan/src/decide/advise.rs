//! Step 11: writes the warnings of a plan. The warnings name the automatic transfers, the cause of each transfer and a
//! change that would avoid the transfer. Other warnings name exceeded limits of the device and a pace that the plan
//! cannot keep.
//!
//! If an option, a pin or a handler confined to one space causes a transfer, the graph is planned again without that
//! cause. The saving in the warning is the difference between the costs of the two plans.
//!
//! Invariant: every automatic transfer has one warning with its direction and cost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use crate::profile::Profile;
use crate::words::{Rate, Space, SpaceSet};

use super::allow::{Allowed, Orders, Reason, allow};
use super::cost::Costs;
use super::layout::{LayoutTransfer, UnitLayout, lay_out};
use super::net::Net;
use super::place::place;

/// Limit on repeated planning: the number of plans times the number of handlers. Beyond this limit no saving is
/// computed.
const WORK: usize = 20_000;
/// Maximum number of handlers that the search for the cause of a transfer visits.
const REGION: usize = 64;

pub(super) struct Advice<'a> {
    pub net: &'a Net<'a>,
    pub profile: &'a Profile,
    pub orders: &'a Orders,
    pub allowed: &'a [Allowed],
    pub spaces: &'a [Space],
    pub costs: &'a Costs,
    pub layout: &'a UnitLayout,
    /// True if a placement fits in memory.
    pub fits: &'a dyn Fn(&[Space], &UnitLayout) -> bool,
}

/// A change that may avoid a transfer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// Dropping `--cpu`, `--gpu` or `--require-gpu`.
    Order,
    /// Allowing these handlers to run in any space.
    Free(Vec<usize>),
}

#[derive(Debug, Clone, Copy)]
struct PossibleSaving {
    ns: u64,
    transfers: usize,
}

impl Advice<'_> {
    /// The warnings; `pace` holds the wanted rate and the time that the busiest lane takes per frame.
    pub fn warnings(&self, pace: Option<(Rate, u64)>) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut tried: BTreeMap<Change, Option<PossibleSaving>> = BTreeMap::new();
        let mut advised: BTreeSet<Change> = BTreeSet::new();
        for transfer in self.layout.transfers.iter().filter(|r| !r.explicit) {
            let from = self.net.port_name(self.net.output_at(self.net.nodes[transfer.from].fans[transfer.output][0]));
            let mut line = format!("{} transfer of {from}, ~{}", transfer.direction, ms(transfer.ns));
            let (behind, before) = (self.suspects(transfer, true), self.suspects(transfer, false));
            let mut best: Option<(Change, PossibleSaving)> = None;
            for change in self.changes(&behind, &before) {
                if !tried.contains_key(&change) && (tried.len() + 1) * self.net.nodes.len() <= WORK {
                    tried.insert(change.clone(), self.after(&change));
                }
                if let Some(Some(saving)) = tried.get(&change)
                    && best.as_ref().is_none_or(|(_, other)| saving.ns > other.ns)
                {
                    best = Some((change, *saving));
                }
            }
            let cause = match &best {
                Some((Change::Free(freed), _)) => freed.first(),
                _ => behind.first().or(before.first()),
            };
            if let Some(cause) = cause {
                let _ = write!(line, ": {}", self.because(*cause));
            }
            // One change may avoid several transfers; only the first warning suggests that change.
            if let Some((change, PossibleSaving { ns, transfers })) = best
                && advised.insert(change.clone())
            {
                let remedy = self.remedy(&change);
                let plural = if transfers == 1 { "" } else { "s" };
                let saved = format!("{} per frame and {transfers} transfer{plural}", ms(ns));
                let _ = write!(line, "; avoidable: {remedy} would save {saved}");
            }
            warnings.push(line);
        }
        for (at, allowed) in self.allowed.iter().enumerate() {
            for (space, reason) in &allowed.reasons {
                if let (Space::Gpu, Reason::Limit(limit)) = (space, reason) {
                    warnings.push(format!("{} stays on the cpu: {limit}", self.net.nodes[at].name));
                }
            }
        }
        if let Some((pace, busiest)) = pace {
            let budget = 1e9 / pace.per_second();
            if busiest as f64 > budget {
                let (busiest, budget) = (ms(busiest), ms(budget as u64));
                warnings.push(format!("the busiest lane takes ~{busiest} per frame, but {pace} fps allow {budget}"));
            }
        }
        warnings
    }

    /// The handlers that may cause a transfer, on one side of the transfer: the nearest handlers that are confined to
    /// the space of that side. If `behind` is true, the side is that of the consumers.
    fn suspects(&self, transfer: &LayoutTransfer, behind: bool) -> Vec<usize> {
        let served = transfer.wires.iter().map(|w| self.net.wires[*w].to);
        let mut seen: BTreeSet<usize> = if behind { served.collect() } else { BTreeSet::from([transfer.from]) };
        let mut suspects = Vec::new();
        let mut queue: VecDeque<usize> = seen.iter().copied().collect();
        while let Some(at) = queue.pop_front() {
            let confined = self.allowed[at].spaces != SpaceSet::ALL;
            if confined {
                suspects.push(at);
            }
            // Beyond a confined handler, only its confined neighbours can be a cause.
            let node = &self.net.nodes[at];
            let before = node.inputs.iter().flatten().map(|w| self.net.wires[*w].from);
            let after = node.fans.iter().flatten().map(|w| self.net.wires[*w].to);
            for next in before.chain(after) {
                let same = self.spaces[next] == self.spaces[at] && node.entry.transfer.is_none();
                let blame = !confined || self.allowed[next].spaces != SpaceSet::ALL;
                if same && blame && seen.len() < REGION && seen.insert(next) {
                    queue.push_back(next);
                }
            }
        }
        suspects
    }

    /// The changes to try: freeing each handler alone, freeing all handlers of a side together, or dropping the option
    /// that confines these handlers.
    fn changes(&self, behind: &[usize], before: &[usize]) -> Vec<Change> {
        let mut changes = Vec::new();
        for side in [behind, before] {
            let by_option = |reason: &Reason| matches!(reason, Reason::Only(_) | Reason::Latency(_) | Reason::Required);
            let ordered = |at: &usize| self.allowed[*at].reasons.iter().any(|(_, reason)| by_option(reason));
            if side.iter().any(ordered) {
                changes.push(Change::Order);
            }
            // Sources, sinks and transfers cannot be moved. A handler that runs the user's own shader cannot get a
            // second implementation.
            let changeable = |at: &&usize| {
                let node = &self.net.nodes[**at];
                let is_filter = !node.inputs.is_empty() && !node.outputs.is_empty() && node.entry.transfer.is_none();
                is_filter && !ordered(at) && !(node.entry.open_settings && self.lacks_implementation(**at))
            };
            let free: Vec<usize> = side.iter().filter(changeable).copied().collect();
            changes.extend(free.iter().map(|at| Change::Free(vec![*at])));
            if free.len() > 1 {
                changes.push(Change::Free(free));
            }
        }
        changes
    }

    /// The saving if the graph is planned again with a change; `None` if the change does not save both time and
    /// transfers, or if the new plan does not fit in memory.
    fn after(&self, change: &Change) -> Option<PossibleSaving> {
        self.profile.gpu.as_ref()?;
        let allowed = match change {
            Change::Order => {
                let orders = Orders { pins: self.orders.pins.clone(), ..Orders::default() };
                allow(self.net, self.profile, &orders).ok()?
            }
            Change::Free(freed) => {
                // If a handler is pinned, its pin is dropped, and the handler may run wherever the other options allow.
                // A handler that has an implementation for one space only is treated as if it had implementations for
                // both spaces.
                let pinned = |at: &usize| self.allowed[*at].reasons.iter().any(|(_, r)| matches!(r, Reason::Pinned(_)));
                let mut orders = self.orders.clone();
                for at in freed.iter().filter(|at| pinned(at)) {
                    orders.pins.remove(&self.net.nodes[*at].name);
                }
                let mut allowed = allow(self.net, self.profile, &orders).ok()?;
                for at in freed.iter().filter(|at| !pinned(at)) {
                    allowed[*at].spaces = SpaceSet::ALL;
                }
                allowed
            }
        };
        let spaces = place(self.net, &allowed, self.costs, false);
        let other = lay_out(self.net, &spaces, self.costs);
        if !(self.fits)(&spaces, &other) {
            return None;
        }
        let transfers = self.layout.transfers.len().checked_sub(other.transfers.len()).filter(|n| *n > 0)?;
        let ns = self.layout.cost_ns.checked_sub(other.cost_ns).filter(|ns| *ns > 0)?;
        Some(PossibleSaving { ns, transfers })
    }

    /// True if neither a pin nor a limit of the device confines a node to its space, so that only another
    /// implementation could free the node.
    fn lacks_implementation(&self, at: usize) -> bool {
        let other = self.spaces[at].other();
        match self.allowed[at].reasons.iter().find(|(taken, _)| *taken == other) {
            Some((_, reason)) => !matches!(reason, Reason::Pinned(_) | Reason::Limit(_)),
            None => true,
        }
    }

    fn because(&self, at: usize) -> String {
        let (name, space) = (&self.net.nodes[at].name, self.spaces[at]);
        if let Some(way) = self.net.nodes[at].entry.transfer {
            return format!("{name} transfers from the {} to the {}", way.from(), way.to());
        }
        match self.allowed[at].reasons.iter().find(|(taken, _)| *taken == space.other()) {
            Some((_, reason)) => format!("{name} is on the {space} because {}", reason.words()),
            None => format!("{name} only runs on the {space}"),
        }
    }

    fn remedy(&self, change: &Change) -> String {
        let freed = match (change, self.orders.only, self.orders.require_gpu) {
            (Change::Free(freed), ..) => freed,
            (Change::Order, Some(_), false) if self.orders.for_latency => return "dropping --latency".to_owned(),
            (Change::Order, Some(only), false) => return format!("dropping --{only}"),
            (Change::Order, Some(only), true) => return format!("dropping --{only} and --require-gpu"),
            (Change::Order, None, true) => return "dropping --require-gpu".to_owned(),
            (Change::Order, None, false) => return "dropping --cpu or --gpu".to_owned(),
        };
        let one = |at: &usize| {
            let (name, here) = (&self.net.nodes[*at].name, self.spaces[*at]);
            match self.allowed[*at].reasons.iter().find(|(taken, _)| *taken == here.other()) {
                Some((_, Reason::Pinned(space))) => format!("dropping --place {name}={space}"),
                Some((_, Reason::Limit(_))) => format!("smaller frames or fewer inputs for {name}"),
                _ => format!("a {} version of {name}", here.other()),
            }
        };
        freed.iter().map(one).collect::<Vec<_>>().join(" and ")
    }
}

fn ms(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}
