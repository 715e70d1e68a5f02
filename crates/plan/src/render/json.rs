//! A plan as JSON, with the keys that the command line's manual documents.
//!
//! Invariants: every key is present; a key that does not apply has the value `null`. Lists keep the plan's order. Times
//! in ms keep every digit of their nanoseconds.

use serde::Serialize;

use crate::plan::{self, Plan};
use crate::words::{Content, Format, Policy, Size, Space};

pub(super) fn pretty(plan: &Plan) -> String {
    serde_json::to_string_pretty(&PlanJson::of(plan)).expect("strings and finite numbers can be written as JSON")
}

pub(super) fn line(plan: &Plan) -> String {
    serde_json::to_string(&PlanJson::of(plan)).expect("strings and finite numbers can be written as JSON")
}

#[derive(Serialize)]
struct PlanJson<'a> {
    handlers: Vec<HandlerJson<'a>>,
    links: Vec<LinkJson>,
    /// The JSON key is `ramps`.
    #[serde(rename = "ramps")]
    transfers: Vec<TransferJson>,
    groups: Vec<GroupJson<'a>>,
    lanes: Vec<LaneJson<'a>>,
    memory: MemoryJson,
    segments: u32,
    profile: &'a str,
    cost_ms: f64,
    alternatives: AlternativesJson,
    latency: Option<LatencyJson<'a>>,
    warnings: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct HandlerJson<'a> {
    name: &'a str,
    kind: &'a str,
    space: Space,
    lane: usize,
    group: Option<usize>,
    inserted: bool,
    /// The cost of the handler on its own, in its space and in the other space.
    alone_ms: f64,
    other_ms: Option<f64>,
}

#[derive(Serialize)]
struct LinkJson {
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
struct TransferJson {
    from: String,
    to: Vec<String>,
    direction: String,
    bytes: u64,
    est_ms: f64,
    explicit: bool,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    id: usize,
    space: Space,
    handlers: Vec<&'a str>,
    dispatches: u32,
    cost_ms: f64,
    /// The cost of the whole group in the other space.
    other_ms: Option<f64>,
}

#[derive(Serialize)]
struct LaneJson<'a> {
    id: usize,
    handlers: Vec<&'a str>,
    device: bool,
}

#[derive(Serialize)]
struct MemoryJson {
    gpu_bytes: u64,
    cpu_bytes: u64,
}

#[derive(Serialize)]
struct AlternativesJson {
    cpu_ms: Option<f64>,
    gpu_ms: Option<f64>,
}

#[derive(Serialize)]
struct LatencyJson<'a> {
    asked_ms: f64,
    predicted_ms: f64,
    fits: bool,
    in_flight: u32,
    batch: u32,
    slowest: Option<SlowestJson<'a>>,
}

#[derive(Serialize)]
struct SlowestJson<'a> {
    name: &'a str,
    space: Space,
    ms: f64,
}

impl<'a> LatencyJson<'a> {
    fn of(latency: &'a plan::PlannedLatency) -> LatencyJson<'a> {
        let slowest = latency.slowest.as_ref();
        LatencyJson {
            asked_ms: ms(latency.asked_ns),
            predicted_ms: ms(latency.predicted_ns),
            fits: latency.fits(),
            in_flight: latency.in_flight,
            batch: latency.batch,
            slowest: slowest.map(|own| SlowestJson { name: &own.name, space: own.space, ms: ms(own.ns) }),
        }
    }
}

impl<'a> PlanJson<'a> {
    fn of(plan: &'a Plan) -> PlanJson<'a> {
        let names = |handlers: &[usize]| handlers.iter().map(|h| plan.handlers[*h].name.as_str()).collect();
        PlanJson {
            handlers: plan.handlers.iter().map(HandlerJson::of).collect(),
            links: plan.links.iter().map(|link| LinkJson::of(plan, link)).collect(),
            transfers: plan.transfers.iter().map(|transfer| TransferJson::of(plan, transfer)).collect(),
            groups: (plan.groups.iter().enumerate())
                .map(|(id, g)| GroupJson {
                    id,
                    space: g.space,
                    handlers: names(&g.handlers),
                    dispatches: g.dispatches,
                    cost_ms: ms(g
                        .handlers
                        .iter()
                        .fold(g.pass_ns, |sum, h| sum.saturating_add(plan.handlers[*h].cost_ns))),
                    other_ms: g.other_ns.map(ms),
                })
                .collect(),
            lanes: (plan.lanes.iter().enumerate())
                .map(|(id, l)| LaneJson { id, handlers: names(&l.handlers), device: l.device })
                .collect(),
            memory: MemoryJson { gpu_bytes: plan.memory.gpu_bytes, cpu_bytes: plan.memory.cpu_bytes },
            segments: plan.segments,
            profile: &plan.profile,
            cost_ms: ms(plan.cost_ns),
            alternatives: AlternativesJson {
                cpu_ms: plan.alternatives.cpu_ns.map(ms),
                gpu_ms: plan.alternatives.gpu_ns.map(ms),
            },
            latency: plan.latency.as_ref().map(LatencyJson::of),
            warnings: &plan.warnings,
            notes: &plan.notes,
        }
    }
}

impl<'a> HandlerJson<'a> {
    fn of(handler: &'a plan::PlannedHandler) -> HandlerJson<'a> {
        let plan::PlannedHandler { name, entry, space, lane, group, inserted, alone_ns, other_ns, .. } = handler;
        HandlerJson {
            name,
            kind: entry.name,
            space: *space,
            lane: *lane,
            group: *group,
            inserted: *inserted,
            alone_ms: ms(*alone_ns),
            other_ms: other_ns.map(ms),
        }
    }
}

impl LinkJson {
    fn of(plan: &Plan, link: &plan::PlannedLink) -> LinkJson {
        let frame = match &link.content {
            Content::Video(frame) => Some(frame),
            Content::Tensor(_) | Content::Data { .. } | Content::Audio { .. } => None,
        };
        LinkJson {
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

impl TransferJson {
    fn of(plan: &Plan, transfer: &plan::Transfer) -> TransferJson {
        TransferJson {
            from: plan.port_name(transfer.from),
            to: transfer.to.iter().map(|at| plan.port_name(*at)).collect(),
            direction: transfer.direction.to_string(),
            bytes: transfer.bytes,
            est_ms: ms(transfer.est_ns),
            explicit: transfer.explicit,
        }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
