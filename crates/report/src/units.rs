//! The units of a plan with their planned and measured times: one for each box of the drawing and each row of the table.
//!
//! Times are those of the plan's text and of the report's `units`, so that the page agrees with both.

use vramp_plan::catalog::TransferDirection;
use vramp_plan::{Plan, Space, Unit};
use vramp_runtime::Report;
use vramp_runtime::observe::{RunDistributions, TimeDistribution, UnitTime};

/// A unit of the plan.
#[derive(Debug)]
pub(crate) struct UnitFigures<'a> {
    /// The handlers joined by `+`, or the transfer and the port whose frames it carries; as in the report.
    pub(crate) name: String,
    pub(crate) unit: &'a Unit,
    pub(crate) space: Space,
    /// Dispatches per frame of the unit's kernel.
    pub(crate) dispatches: u32,
    pub(crate) planned_ns: u64,
    /// The same work in the other space; `None` if it cannot run there.
    pub(crate) other_ns: Option<u64>,
    pub(crate) measured: Measured<'a>,
    /// Empty without a run, or if only the time of several units together is known.
    pub(crate) times: Option<&'a TimeDistribution>,
}

/// What a run has measured of a unit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measured<'a> {
    /// There was no run, or the unit was not called.
    Nothing,
    Alone(&'a UnitTime),
    /// The device gives only the time of several units together.
    Together(&'a UnitTime),
}

impl Measured<'_> {
    /// The mean time of a call, if the unit's own time is known.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        match self {
            Measured::Alone(time) => Some(time.mean_us * 1e3),
            Measured::Nothing | Measured::Together(_) => None,
        }
    }

    pub(crate) fn share(&self) -> Option<f64> {
        match self {
            Measured::Alone(time) => Some(time.share),
            Measured::Nothing | Measured::Together(_) => None,
        }
    }
}

impl UnitFigures<'_> {
    /// Whether the unit is on the device, and the device gave no time for it alone.
    pub(crate) fn is_unknown(&self) -> bool {
        self.space == Space::Gpu && self.measured.mean_ns().is_none()
    }
}

/// The figures of every unit, in the plan's order.
pub(crate) fn units<'a>(
    plan: &'a Plan,
    report: Option<&'a Report>,
    distributions: Option<&'a RunDistributions>,
) -> Vec<UnitFigures<'a>> {
    plan.units.iter().map(|unit| figures(plan, unit, report, distributions)).collect()
}

fn figures<'a>(
    plan: &'a Plan,
    unit: &'a Unit,
    report: Option<&'a Report>,
    distributions: Option<&'a RunDistributions>,
) -> UnitFigures<'a> {
    let transfer = unit.transfer.map(|at| &plan.transfers[at]);
    let handlers: Vec<&str> = unit.handlers.iter().map(|at| plan.handlers[*at].name.as_str()).collect();
    let first = unit.handlers.first().map(|at| &plan.handlers[*at]);
    let group = first.and_then(|first| first.group).map(|at| &plan.groups[at]);
    let name = match transfer {
        Some(transfer) if handlers.is_empty() => {
            format!("{} of {}", direction(transfer.direction), plan.port_name(transfer.from))
        }
        _ => handlers.join("+"),
    };
    // A transfer that the user wrote is a handler without costs of its own.
    let pass_ns = group.map_or(0, |group| group.pass_ns) + transfer.map_or(0, |transfer| transfer.est_ns);
    let planned_ns = unit.handlers.iter().fold(pass_ns, |sum, at| sum.saturating_add(plan.handlers[*at].cost_ns));
    let other_ns = match group {
        Some(group) => group.other_ns,
        None => first.and_then(|first| first.other_ns),
    };
    let is_it = |own: &&vramp_runtime::observe::UnitDistribution| {
        own.handlers == handlers && (!handlers.is_empty() || own.transfer == unit.transfer)
    };
    let times = distributions.and_then(|all| all.units.iter().find(is_it)).map(|own| &own.time);
    UnitFigures {
        measured: report.map_or(Measured::Nothing, |report| measured(report, &name, &handlers)),
        name,
        unit,
        space: if plan.lanes[unit.lane].device { Space::Gpu } else { Space::Cpu },
        dispatches: group.map_or(0, |group| group.dispatches),
        planned_ns,
        other_ns,
        times,
    }
}

fn measured<'a>(report: &'a Report, name: &str, handlers: &[&str]) -> Measured<'a> {
    if let Some(time) = report.units.iter().find(|time| time.name == name) {
        return Measured::Alone(time);
    }
    let is_part = |time: &&UnitTime| {
        time.name.split(", ").any(|part| part == name)
            || !handlers.is_empty() && handlers.iter().all(|own| time.handlers.iter().any(|other| other == own))
    };
    report.units.iter().find(is_part).map_or(Measured::Nothing, Measured::Together)
}

pub(crate) fn direction(direction: TransferDirection) -> &'static str {
    match direction {
        TransferDirection::Up => "upload",
        TransferDirection::Down => "download",
    }
}
