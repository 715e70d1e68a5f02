//! A finished plan as the stage of a rehearsal: what each unit costs per call, and which rings it reads and feeds.
//!
//! The costs of a plan count per frame of the fastest source. Here they count per call, so that a unit after `every
//! n=10` has its full cost.

use crate::catalog::{Class, TransferDirection};
use crate::plan::{Plan, PlannedHandler, Unit};
use crate::profile::{LEAST_BAND_PIXELS, Profile};
use crate::words::{Policy, Rate, Space};

use super::Tuning;
use super::rehearse::{SourceClock, Stage, Station, StationRing};

/// The frames per second of a stream whose rate is unknown.
const NOMINAL: f64 = 30.0;
/// Time on a lane's thread to record one unit of a submission.
const RECORD_NS: f64 = 3_000.0;

/// The stage of a plan.
pub(super) fn stage(plan: &Plan, profile: &Profile, pace: Option<Rate>, most: Option<u32>, tuning: Tuning) -> Stage {
    let threads = profile.cpu.threads.value.max(1.0);
    let most = most.map_or(threads, |most| f64::from(most).min(threads)).max(1.0);
    let streams = Streams::of(plan);
    let mut stations: Vec<Station> =
        plan.units.iter().map(|unit| station(plan, profile, &streams, unit, pace, most)).collect();
    let rings = plan.rings.iter().map(|ring| StationRing {
        depth: (ring.depth as usize).max(1),
        policy: ring.policy,
        inline: ring.depth == 0,
    });
    for (at, ring) in plan.rings.iter().enumerate() {
        stations[ring.from].outputs.push(at);
        let leads = plan.units[ring.to].lead(&plan.handlers) == Some(ring.input);
        match (&mut stations[ring.to], leads) {
            (to, true) if to.source.is_none() => to.lead = Some(at),
            (to, _) => to.others.push((at, ring.link_policy == Policy::Lossless)),
        }
    }
    Stage {
        stations,
        rings: rings.collect(),
        lanes: plan.lanes.iter().map(|lane| lane.segments.clone()).collect(),
        device_lane: plan.lanes.iter().position(|lane| lane.device),
        threads,
        in_flight: tuning.in_flight.max(1) as usize,
        batch: tuning.batch.max(1) as usize,
        submit_ns: profile.gpu.as_ref().map_or(0.0, |gpu| gpu.submit_us.value * 1e3),
        software: profile.gpu.as_ref().is_some_and(|gpu| gpu.software),
    }
}

/// The time that each unit takes of a frame, wherever it works.
pub(super) fn unit_ns(station: &Station) -> f64 {
    station.host_ns + station.device_ns + station.receive_ns
}

/// Moving a frame takes as long as its bytes need, but costs count pixels of rgba8.
fn bytes_share(handler: &PlannedHandler, streams: &Streams, at: usize) -> f64 {
    let moves = handler.group.is_none() && handler.entry.work_under(&handler.settings).class == Class::Move;
    if moves && streams.elements[at] > 0 { streams.bytes[at] as f64 / (4.0 * streams.elements[at] as f64) } else { 1.0 }
}

/// The streams around each handler.
struct Streams {
    /// Rate of the lead input, or of the output of a source.
    called: Vec<Option<Rate>>,
    made: Vec<Option<Rate>>,
    /// Pixels or elements of the output, or of the input if there is no output.
    elements: Vec<u64>,
    bytes: Vec<u64>,
    fastest: Option<Rate>,
}

impl Streams {
    fn of(plan: &Plan) -> Streams {
        let handlers = plan.handlers.len();
        let mut streams = Streams {
            called: vec![None; handlers],
            made: vec![None; handlers],
            elements: vec![0; handlers],
            bytes: vec![0; handlers],
            fastest: None,
        };
        let is_source = |at: usize| plan.handlers[at].entry.inputs.is_empty();
        for link in plan.links.iter().rev() {
            let (from, to, rate) = (link.from.handler, link.to.handler, link.content.rate());
            streams.made[from] = rate;
            (streams.elements[from], streams.bytes[from]) = (link.content.elements(), link.content.bytes());
            let consumer = &plan.handlers[to];
            if consumer.entry.inputs.get(consumer.lead).is_some_and(|input| input.name == link.to.port) {
                streams.called[to] = rate;
                if consumer.entry.outputs.is_empty() {
                    (streams.elements[to], streams.bytes[to]) = (link.content.elements(), link.content.bytes());
                }
            }
            if is_source(from) {
                streams.called[from] = rate;
                streams.fastest = streams.fastest.max(rate);
            }
        }
        streams
    }

    /// A cost per frame of the fastest source as a cost per call.
    fn per_call(&self, ns: u64, rate: Option<Rate>) -> f64 {
        match (rate, self.fastest) {
            (Some(rate), Some(fastest)) => ns as f64 * fastest.per_second() / rate.per_second(),
            _ => ns as f64,
        }
    }
}

fn station(plan: &Plan, profile: &Profile, streams: &Streams, unit: &Unit, pace: Option<Rate>, most: f64) -> Station {
    let mut station = Station { threads: 1.0, every: 1, ..Station::default() };
    let on_device = plan.lanes[unit.lane].device;
    let mut host_ns = 0.0;
    for &at in &unit.handlers {
        let handler = &plan.handlers[at];
        host_ns += streams.per_call(handler.cost_ns, streams.called[at]) * bytes_share(handler, streams, at);
        station.holds += handler.entry.latency(&handler.settings) as usize;
        station.is_sink |= handler.entry.outputs.is_empty();
        if let (Some(called), Some(made)) = (streams.called[at], streams.made[at])
            && !handler.entry.outputs.is_empty()
        {
            station.every *= ((called.per_second() / made.per_second()).round() as u64).max(1);
        }
    }
    if let Some((&first, &last)) = unit.handlers.first().zip(unit.handlers.last()) {
        let handler = &plan.handlers[first];
        if let Some(group) = handler.group {
            host_ns += streams.per_call(plan.groups[group].pass_ns, streams.called[first]);
            let bands = (streams.elements[last] / LEAST_BAND_PIXELS) as f64;
            station.threads = bands.clamp(1.0, most);
        }
        station.source = source_clock(handler, streams.called[first], pace);
    }
    if on_device {
        station.device_ns = host_ns;
        host_ns = RECORD_NS;
    }
    if let Some(transfer) = unit.transfer.map(|at| &plan.transfers[at]) {
        let ns = streams.per_call(transfer.est_ns, streams.made[transfer.from.handler]);
        match transfer.direction {
            TransferDirection::Up => host_ns += ns,
            TransferDirection::Down => (station.receive_ns, station.is_download) = (ns, true),
        }
    }
    let calls = profile.cpu.call_us.value * 1e3;
    station.host_ns = if on_device || unit.handlers.iter().any(|at| plan.handlers[*at].group.is_some()) {
        host_ns
    } else {
        // The cost of a handler without a kernel does not include its call.
        host_ns + calls.min(RECORD_NS)
    };
    station
}

fn source_clock(handler: &PlannedHandler, rate: Option<Rate>, pace: Option<Rate>) -> Option<SourceClock> {
    if !handler.entry.inputs.is_empty() {
        return None;
    }
    let period_ns = |rate: Rate| 1e9 / rate.per_second();
    let live = handler.entry.live.under(&handler.settings);
    Some(SourceClock {
        step_ns: rate.map_or(1e9 / NOMINAL, period_ns),
        period_ns: pace.or(rate.filter(|_| live)).map(period_ns),
    })
}

/// The space in which a unit's work is done.
pub(super) fn space_of(plan: &Plan, unit: &Unit) -> Space {
    if plan.lanes[unit.lane].device { Space::Gpu } else { Space::Cpu }
}

impl Unit {
    /// Index of the lead input among the unit's inputs; `None` if no input leads.
    fn lead(&self, handlers: &[PlannedHandler]) -> Option<usize> {
        let Some(&first) = self.handlers.first() else { return Some(0) };
        self.inputs.iter().position(|input| *input == (first, handlers[first].lead))
    }
}
