//! A plan for a program: JSON with the keys that the command line's manual promises.
//!
//! Owns the shape of that object.
//! Does not round: a time in ms has every digit of its nanoseconds.
//!
//! Always: every key is there, `null` where it does not apply; lists keep the plan's order.

use serde::Serialize;

use crate::plan::{self, Plan};
use crate::words::{Content, Format, Policy, Size, Space};

pub(super) fn pretty(plan: &Plan) -> String {
    serde_json::to_string_pretty(&View::of(plan)).expect("strings and finite numbers can be written as JSON")
}

pub(super) fn line(plan: &Plan) -> String {
    serde_json::to_string(&View::of(plan)).expect("strings and finite numbers can be written as JSON")
}

#[derive(Serialize)]
struct View<'a> {
    handlers: Vec<Handler<'a>>,
    links: Vec<Link>,
    ramps: Vec<Ramp>,
    groups: Vec<Group<'a>>,
    lanes: Vec<Lane<'a>>,
    memory: Memory,
    segments: u32,
    profile: &'a str,
    cost_ms: f64,
    alternatives: Alternatives,
    warnings: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct Handler<'a> {
    name: &'a str,
    kind: &'a str,
    space: Space,
    lane: usize,
    group: Option<usize>,
    inserted: bool,
}

#[derive(Serialize)]
struct Link {
    from: String,
    to: String,
    space: Space,
    format: Option<Format>,
    size: Option<Size>,
    policy: Policy,
    depth: u32,
    from_space: Space,
}

#[derive(Serialize)]
struct Ramp {
    from: String,
    to: Vec<String>,
    direction: String,
    bytes: u64,
    est_ms: f64,
    explicit: bool,
}

#[derive(Serialize)]
struct Group<'a> {
    id: usize,
    space: Space,
    handlers: Vec<&'a str>,
    dispatches: u32,
}

#[derive(Serialize)]
struct Lane<'a> {
    id: usize,
    handlers: Vec<&'a str>,
    device: bool,
}

#[derive(Serialize)]
struct Memory {
    gpu_bytes: u64,
    cpu_bytes: u64,
}

#[derive(Serialize)]
struct Alternatives {
    cpu_ms: Option<f64>,
    gpu_ms: Option<f64>,
}

impl<'a> View<'a> {
    fn of(plan: &'a Plan) -> View<'a> {
        let names = |handlers: &[usize]| handlers.iter().map(|h| plan.handlers[*h].name.as_str()).collect();
        View {
            handlers: plan.handlers.iter().map(Handler::of).collect(),
            links: plan.links.iter().map(|link| Link::of(plan, link)).collect(),
            ramps: plan.ramps.iter().map(|ramp| Ramp::of(plan, ramp)).collect(),
            groups: (plan.groups.iter().enumerate())
                .map(|(id, g)| Group { id, space: g.space, handlers: names(&g.handlers), dispatches: g.dispatches })
                .collect(),
            lanes: (plan.lanes.iter().enumerate())
                .map(|(id, l)| Lane { id, handlers: names(&l.handlers), device: l.device })
                .collect(),
            memory: Memory { gpu_bytes: plan.memory.gpu_bytes, cpu_bytes: plan.memory.cpu_bytes },
            segments: plan.segments,
            profile: &plan.profile,
            cost_ms: ms(plan.cost_ns),
            alternatives: Alternatives {
                cpu_ms: plan.alternatives.cpu_ns.map(ms),
                gpu_ms: plan.alternatives.gpu_ns.map(ms),
            },
            warnings: &plan.warnings,
            notes: &plan.notes,
        }
    }
}

impl<'a> Handler<'a> {
    fn of(handler: &'a plan::PlannedHandler) -> Handler<'a> {
        let plan::PlannedHandler { name, entry, space, lane, group, inserted, .. } = handler;
        Handler { name, kind: entry.name, space: *space, lane: *lane, group: *group, inserted: *inserted }
    }
}

impl Link {
    fn of(plan: &Plan, link: &plan::PlannedLink) -> Link {
        let frame = match &link.content {
            Content::Video(frame) => Some(frame),
            Content::Tensor(_) | Content::Data { .. } => None,
        };
        Link {
            from: plan.port_name(link.from),
            to: plan.port_name(link.to),
            space: link.space,
            format: frame.map(|f| f.format),
            size: frame.map(|f| f.size),
            policy: link.policy,
            depth: link.depth,
            from_space: link.from_space,
        }
    }
}

impl Ramp {
    fn of(plan: &Plan, ramp: &plan::Ramp) -> Ramp {
        Ramp {
            from: plan.port_name(ramp.from),
            to: ramp.to.iter().map(|at| plan.port_name(*at)).collect(),
            direction: ramp.direction.to_string(),
            bytes: ramp.bytes,
            est_ms: ms(ramp.est_ns),
            explicit: ramp.explicit,
        }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
