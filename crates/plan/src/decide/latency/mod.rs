//! Chooses among plans by their predicted latency, if the user needs one (`--latency`).
//!
//! The cheapest plan is preferred. If its predicted latency is too long, the planner tries smaller batches, shallower
//! links between lanes and fewer submissions in flight, which cost throughput but no time per frame. Then it tries the
//! same with every handler on the CPU, and with every handler on the GPU that can run there. The first plan that fits
//! is taken; if none fits, the plan with the shortest latency, with a warning that names the handler that takes longest.
//!
//! `stage` turns a plan into costs per call, and `rehearse` passes frames through it to predict the latency.
//!
//! Invariants: without a need, this module does nothing. A plan with a need is never predicted slower than the plan
//! without it.

mod rehearse;
mod stage;

use std::fmt::Write as _;

use crate::options::RunOptions;
use crate::plan::{Plan, PlannedLatency, SlowestHandler};
use crate::profile::Profile;
use crate::words::Space;

use super::explain::NoPlan;
use super::lanes::USUAL_DEPTH;
use super::{Orders, Planner};

/// What the planner may reduce to shorten the latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tuning {
    /// Submissions in flight.
    pub in_flight: u32,
    /// Frames per submission.
    pub batch: u32,
    /// Depth of a link between lanes, if neither the user nor a diamond needs another depth.
    pub usual_depth: u32,
}

impl Tuning {
    /// All tunings to try, the user's own first.
    fn all(asked: Tuning) -> Vec<Tuning> {
        let halved = |from: u32| std::iter::successors(Some(from.max(1)), |at| (*at > 1).then_some(at / 2));
        let batches = if asked.batch > 1 { vec![asked.batch, 1] } else { vec![asked.batch] };
        let mut all = Vec::new();
        for batch in batches {
            for usual_depth in (1..=asked.usual_depth).rev() {
                all.extend(halved(asked.in_flight).map(|in_flight| Tuning { in_flight, batch, usual_depth }));
            }
        }
        // What changes least comes first. The sort is stable.
        all.sort_by_key(|one| {
            let halvings = asked.in_flight.max(1).ilog2() - one.in_flight.ilog2();
            (one.batch != asked.batch, asked.usual_depth - one.usual_depth + halvings)
        });
        all
    }
}

impl Planner<'_> {
    /// The plan for a need of this many nanoseconds.
    pub(super) fn decide_within(&self, asked_ns: u64) -> Result<Plan, NoPlan> {
        let first = self.predicted(asked_ns)?;
        if first.fits() {
            return Ok(first);
        }
        let mut best = first;
        let tunings = Tuning::all(self.tuning);
        for placement in self.placements() {
            for tuning in &tunings {
                let other = Planner { tuning: *tuning, ..placement.clone() };
                if (other.tuning, other.orders.only) == (self.tuning, self.orders.only) {
                    continue;
                }
                let Ok(plan) = other.predicted(asked_ns) else { continue };
                if plan.fits() {
                    return Ok(plan);
                }
                if plan.predicted_ns() < best.predicted_ns() {
                    best = plan;
                }
            }
        }
        let warning = best.latency.as_ref().map(PlannedLatency::misses);
        best.warnings.extend(warning);
        Ok(best)
    }

    /// The user's placement, then one plan for each space, the cheaper first.
    fn placements(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        if self.orders.only.is_none() {
            let of = |only: Space| Planner {
                orders: Orders { only: Some(only), for_latency: true, ..self.orders.clone() },
                ..self.clone()
            };
            let mut extremes: Vec<(u64, Self)> = Space::RANKED
                .into_iter()
                .filter_map(|only| Some((of(only).decide_once().ok()?.cost_ns, of(only))))
                .collect();
            extremes.sort_by_key(|(cost_ns, _)| *cost_ns);
            all.extend(extremes.into_iter().map(|(_, planner)| planner));
        }
        all
    }

    /// A plan with its predicted latency.
    fn predicted(&self, asked_ns: u64) -> Result<Plan, NoPlan> {
        let mut plan = self.decide_for_memory()?;
        let stage = stage::stage(&plan, self.profile, self.options.pace, self.options.threads, self.tuning);
        let times: Vec<f64> = stage.stations.iter().map(stage::unit_ns).collect();
        let longest = (0..plan.units.len()).max_by(|a, b| times[*a].total_cmp(&times[*b]).then(b.cmp(a)));
        plan.latency = Some(PlannedLatency {
            asked_ns,
            // In a graph of thousands of lanes, no frame may arrive in the steps of a rehearsal.
            predicted_ns: stage.latency_ns().map_or(plan.cost_ns, |ns| ns.ceil() as u64),
            in_flight: self.tuning.in_flight,
            batch: self.tuning.batch,
            slowest: longest.map(|unit| slowest(&plan, unit, times[unit])),
        });
        Ok(plan)
    }
}

/// The handler that takes most of a unit's time, or the transfer.
fn slowest(plan: &Plan, unit: usize, ns: f64) -> SlowestHandler {
    let own = &plan.units[unit];
    let dearest = own.handlers.iter().max_by_key(|at| (plan.handlers[**at].cost_ns, usize::MAX - **at));
    let name = match (dearest, own.transfer) {
        (Some(at), _) => plan.handlers[*at].name.clone(),
        (None, Some(transfer)) => {
            let transfer = &plan.transfers[transfer];
            format!("the {} transfer of {}", transfer.direction, plan.port_name(transfer.from))
        }
        (None, None) => "a transfer".to_owned(),
    };
    SlowestHandler { name, space: stage::space_of(plan, own), ns: ns.ceil() as u64 }
}

impl Plan {
    /// Predicts the latency of this plan on a machine, whatever its costs are now, so that measured times can replace
    /// the costs. `None` if no frame arrives.
    #[doc(hidden)]
    pub fn rehearsed_ns(&self, profile: &Profile, options: &RunOptions) -> Option<u64> {
        let tuning = Tuning { in_flight: options.in_flight, batch: options.batch, usual_depth: USUAL_DEPTH };
        let stage = stage::stage(self, profile, options.pace, options.threads, tuning);
        stage.latency_ns().map(|ns| ns.ceil() as u64)
    }

    fn predicted_ns(&self) -> u64 {
        self.latency.as_ref().map_or(0, |latency| latency.predicted_ns)
    }

    fn fits(&self) -> bool {
        self.latency.as_ref().is_none_or(PlannedLatency::fits)
    }
}

impl PlannedLatency {
    /// The warning of a plan that does not fit.
    fn misses(&self) -> String {
        let ms = |ns: u64| ns as f64 / 1e6;
        let (asked, predicted) = (ms(self.asked_ns), ms(self.predicted_ns));
        let mut line = format!("no plan has a latency of {asked} ms: the shortest is ~{predicted:.2} ms");
        if let Some(SlowestHandler { name, space, ns }) = &self.slowest {
            let _ = write!(line, "; {name} takes ~{:.2} ms of it on the {space}", ms(*ns));
            if self.predicted_ns > ns.saturating_mul(2) {
                line.push_str(", and frames wait before it");
            }
            let _ = write!(line, "; smaller frames for {name} would help, or a longer --latency");
        }
        line
    }
}
