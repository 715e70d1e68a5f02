//! Advice on plans that exist: which ramps they have, which of those could go, and who would have to change.
//!
//! Owns the warnings of a plan.
//! Does not change the plan.
//!
//! Always: every ramp that nobody asked for has one warning with direction and price; a saving that is claimed was
//! computed by planning again without its cause.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;

use crate::catalog::Direction;
use crate::profile::Profile;
use crate::words::{Rate, Space, SpaceSet};

use super::allow::{Allowed, Reason};
use super::cost::Costs;
use super::layout::{Layout, LayoutRamp, lay_out};
use super::net::Net;
use super::place::place;

/// Planning again for every suspect is exact but not free: beyond this much work the saving is left unsaid.
const WORK: usize = 20_000;
/// How far from a ramp its cause is looked for, in handlers.
const REGION: usize = 64;

pub(super) struct Advice<'a> {
    pub net: &'a Net<'a>,
    pub profile: &'a Profile,
    pub allowed: &'a [Allowed],
    pub spaces: &'a [Space],
    pub costs: &'a Costs,
    pub layout: &'a Layout,
}

impl Advice<'_> {
    pub fn warnings(&self, pace: Option<Rate>) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut tried = Tried { left: WORK, saving: vec![Trial::Open; self.net.nodes.len()] };
        for ramp in self.layout.ramps.iter().filter(|r| !r.explicit) {
            let mut line = format!(
                "{} transfer of {}, ~{}",
                arrow(ramp.direction),
                self.net.port_name(self.net.output_at(self.net.nodes[ramp.from].fans[ramp.output][0])),
                ms(ramp.ns)
            );
            let suspects = self.suspects(ramp);
            let best = suspects
                .iter()
                .filter_map(|at| Some((*at, tried.without(self, *at)?)))
                .max_by_key(|(at, saving)| (saving.ns, std::cmp::Reverse(*at)));
            if let Some(at) = best.map(|(at, _)| at).or(suspects.first().copied()) {
                let _ = write!(line, ": {}", self.because(at));
            }
            if let Some((at, saving)) = best {
                let (remedy, ramps) = (self.remedy(at), saving.ramps);
                let _ =
                    write!(line, "; avoidable: {remedy} would save {} a frame and {ramps} transfer(s)", ms(saving.ns));
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
        if let Some(pace) = pace {
            let budget = 1e9 / pace.per_second();
            if self.layout.cost_ns as f64 > budget {
                warnings.push(format!(
                    "a frame costs ~{}, more than the {} that {pace} fps leave",
                    ms(self.layout.cost_ns),
                    ms(budget as u64)
                ));
            }
        }
        warnings
    }

    /// The handlers that may force a ramp: the nearest ones on either side that are confined to it.
    fn suspects(&self, ramp: &LayoutRamp) -> Vec<usize> {
        let mut suspects = Vec::new();
        let served: Vec<usize> = ramp.wires.iter().map(|w| self.net.wires[*w].to).collect();
        for start in [served, vec![ramp.from]] {
            let mut seen: BTreeSet<usize> = start.iter().copied().collect();
            let mut queue: VecDeque<usize> = start.into();
            while let Some(at) = queue.pop_front() {
                if self.is_confined(at) {
                    suspects.push(at);
                    continue;
                }
                let node = &self.net.nodes[at];
                let before = node.inputs.iter().flatten().map(|w| self.net.wires[*w].from);
                let after = node.fans.iter().flatten().map(|w| self.net.wires[*w].to);
                for next in before.chain(after) {
                    if self.spaces[next] == self.spaces[at] && seen.len() < REGION && seen.insert(next) {
                        queue.push_back(next);
                    }
                }
            }
        }
        suspects
    }

    fn is_confined(&self, at: usize) -> bool {
        let spaces = self.allowed[at].spaces;
        spaces == SpaceSet::CPU || spaces == SpaceSet::GPU
    }

    fn because(&self, at: usize) -> String {
        let (name, space) = (&self.net.nodes[at].name, self.spaces[at]);
        match self.allowed[at].reasons.iter().find(|(taken, _)| *taken == space.other()) {
            Some((_, reason)) => format!("{name} is on the {space} because {}", reason.words()),
            None => format!("{name} works on the {space} only"),
        }
    }

    fn remedy(&self, at: usize) -> String {
        let name = &self.net.nodes[at].name;
        match self.allowed[at].reasons.iter().find(|(taken, _)| *taken == self.spaces[at].other()) {
            Some((_, Reason::Pinned(space))) => format!("dropping --place {name}={space}"),
            Some((_, Reason::Only(space))) => format!("dropping --{space}"),
            Some((_, Reason::Limit(_))) => format!("smaller frames or fewer inputs for {name}"),
            _ => format!("running {name} on the {}", self.spaces[at].other()),
        }
    }

    /// What planning again saves when this handler is free to be anywhere; none where it would not help.
    fn without(&self, at: usize) -> Option<Saving> {
        let node = &self.net.nodes[at];
        if self.profile.gpu.is_none()
            || node.inputs.is_empty()
            || node.outputs.is_empty()
            || node.entry.transfer.is_some()
        {
            return None;
        }
        let mut allowed = self.allowed.to_vec();
        allowed[at].spaces = SpaceSet::ALL;
        let spaces = place(self.net, &allowed, self.costs, false);
        let other = lay_out(self.net, &spaces, self.costs);
        let ramps = self.layout.ramps.len().checked_sub(other.ramps.len()).filter(|n| *n > 0)?;
        let ns = self.layout.cost_ns.checked_sub(other.cost_ns).filter(|ns| *ns > 0)?;
        Some(Saving { ns, ramps })
    }
}

/// What freeing a handler was found to save, each computed once and only while the work allows.
struct Tried {
    left: usize,
    /// By handler: not tried yet, or what came of it.
    saving: Vec<Trial>,
}

impl Tried {
    fn without(&mut self, advice: &Advice<'_>, at: usize) -> Option<Saving> {
        if let Trial::Open = self.saving[at] {
            self.left = self.left.checked_sub(advice.net.nodes.len())?;
            self.saving[at] = advice.without(at).map_or(Trial::Nothing, Trial::Saves);
        }
        match self.saving[at] {
            Trial::Saves(saving) => Some(saving),
            Trial::Open | Trial::Nothing => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Trial {
    Open,
    Nothing,
    Saves(Saving),
}

#[derive(Debug, Clone, Copy)]
struct Saving {
    ns: u64,
    ramps: usize,
}

fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "cpu->gpu",
        Direction::Down => "gpu->cpu",
    }
}

fn ms(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / 1e6)
}
