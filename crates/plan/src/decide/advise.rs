//! Advice on plans that exist: which ramps they have, which of those could go, and who would have to change.
//!
//! Owns the warnings of a plan.
//! Does not change the plan.
//!
//! Always: every ramp that nobody asked for has one warning with direction and price; a saving that is claimed was
//! computed by planning again without its cause.

use crate::catalog::Direction;
use crate::profile::Profile;
use crate::words::{Rate, Space, SpaceSet};

use super::allow::{Allowed, Reason};
use super::cost::Costs;
use super::layout::{Layout, LayoutRamp, lay_out};
use super::net::Net;
use super::place::place;

/// Planning again for every suspect is exact but not free: beyond this much work the saving is left unsaid.
const WORK: usize = 200_000;

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
        let mut work = 0;
        let mut saving_of: Vec<Option<Option<Saving>>> = vec![None; self.net.nodes.len()];
        for ramp in self.layout.ramps.iter().filter(|r| !r.explicit) {
            let mut line = format!(
                "{} transfer of {}, ~{}",
                arrow(ramp.direction),
                self.net.port_name(self.net.output_at(self.net.nodes[ramp.from].fans[ramp.output][0])),
                ms(ramp.ns)
            );
            let suspect = self.suspect(ramp);
            if let Some(suspect) = suspect {
                line += &format!(": {}", self.because(suspect));
                if saving_of[suspect].is_none() && work < WORK {
                    work += self.net.nodes.len();
                    saving_of[suspect] = Some(self.without(suspect));
                }
                if let Some(Some(saving)) = &saving_of[suspect] {
                    line += &format!(
                        "; avoidable: {} would save {} a frame and {} transfer(s)",
                        self.remedy(suspect),
                        ms(saving.ns),
                        saving.ramps
                    );
                }
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

    /// The handler that forces a ramp: one confined to its side, nearest to the ramp, preferably one in the middle of
    /// the graph, which could be changed, before a source or sink, which is where it has to be.
    fn suspect(&self, ramp: &LayoutRamp) -> Option<usize> {
        let ends = ramp.wires.iter().map(|w| self.net.wires[*w].to).chain([ramp.from]);
        let confined: Vec<usize> = ends.filter(|at| self.is_confined(*at)).collect();
        let middle = |at: &&usize| !self.net.nodes[**at].inputs.is_empty() && !self.net.nodes[**at].outputs.is_empty();
        confined.iter().find(middle).or(confined.first()).copied()
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
            _ => format!("a {} version of {name}, or moving it to the end of the {} part,",
                self.spaces[at].other(), self.spaces[at]),
        }
    }

    /// What planning again saves when this handler is free to be anywhere; none where it would not help.
    fn without(&self, at: usize) -> Option<Saving> {
        let node = &self.net.nodes[at];
        if self.profile.gpu.is_none() || node.inputs.is_empty() || node.outputs.is_empty() || node.entry.transfer.is_some() {
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
