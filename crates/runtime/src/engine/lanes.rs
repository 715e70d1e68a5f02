//! Builds the plan's lanes from nodes: the order of nodes, the device lane's player and times, and the nodes that each
//! node waits for (for [`Lateness`]).
//!
//! The units of one segment of the device lane record into one `Recording`. The recording is then played: it becomes
//! one submit, with one pass for each run of consecutive dispatches.

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Device, Player, Timed};
use vramp_plan::{Policy, Rate, Space, Unit};

use crate::device::lane_player::LanePlayer;
use crate::device::times::DeviceTimes;
use crate::handler::DeviceError;
use crate::lane::context::LaneContext;
use crate::lane::{Lane, MakePlayer, RecoveryState, Reopen};
use crate::node::Node;
use crate::observe::lateness::{Lateness, LatenessCandidate, SegmentTime};
use crate::observe::monitor::{Histogram, NodeStats};
use crate::observe::trace::Track;

use super::build::BuildContext;
use super::nodes::Planned;
use super::watch::WatchedNode;
use super::wiring::gates;
use super::{EngineParts, PrepareError};

/// All lanes, and the counters and times of these lanes that observers read.
pub(super) struct BuiltLanes {
    pub(super) all: Vec<Lane>,
    pub(super) watched: Vec<WatchedNode>,
    /// Index in `watched` of each unit.
    pub(super) watched_at: Vec<usize>,
    /// For each segment of the device lane: its first node and the device time per frame.
    pub(super) timed: Vec<(Arc<NodeStats>, Arc<Histogram>)>,
}

impl BuiltLanes {
    /// Distributes the nodes, one per unit of the plan, to their lanes.
    pub(super) fn of(shared: &BuildContext<'_>, nodes: Vec<Node>) -> Result<BuiltLanes, PrepareError> {
        let plan = shared.parts.plan;
        let mut work = LaneAssembly {
            shared,
            fastest: fastest(shared.planned),
            frame_time: shared.parts.options.pace.map(|rate| Duration::from_secs_f64(1.0 / rate.per_second())),
            candidates: Vec::new(),
            segment_times: Vec::new(),
            made: BuiltLanes {
                all: Vec::new(),
                watched: Vec::new(),
                watched_at: vec![0; nodes.len()],
                timed: Vec::new(),
            },
        };
        let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
        for (number, lane) in plan.lanes.iter().enumerate() {
            let mut take = |unit: &usize| nodes[*unit].take().expect("each unit is in one segment");
            let own = lane.segments.iter().map(|segment| segment.iter().map(&mut take).collect()).collect();
            work.lane(number, own)?;
        }
        Ok(work.judged())
    }
}

struct LaneAssembly<'a> {
    shared: &'a BuildContext<'a>,
    /// Frames per second of the fastest source.
    fastest: f64,
    /// Time available per frame if sources are paced.
    frame_time: Option<Duration>,
    candidates: Vec<LatenessCandidate>,
    segment_times: Vec<SegmentTime>,
    made: BuiltLanes,
}

impl LaneAssembly<'_> {
    fn lane(&mut self, number: usize, nodes: Vec<Vec<Node>>) -> Result<(), PrepareError> {
        let lane = &self.shared.parts.plan.lanes[number];
        for (position, (unit, node)) in lane.segments.iter().flatten().zip(nodes.iter().flatten()).enumerate() {
            self.watch(*unit, node, number, position);
        }
        let made = match &self.shared.parts.device {
            Some(device) if lane.device => self.device_lane(number, nodes, device)?,
            _ => {
                let context = self.context().drawing(self.track(&nodes));
                let signal = self.shared.signals[number].clone();
                Lane::new(nodes.into_iter().flatten().collect(), signal, context)
            }
        };
        self.made.all.push(made);
        Ok(())
    }

    fn watch(&mut self, unit: usize, node: &Node, lane: usize, position: usize) {
        let plan = self.shared.parts.plan;
        let own = &plan.units[unit];
        let group = own.handlers.first().and_then(|at| plan.handlers[*at].group);
        self.made.watched_at[unit] = self.made.watched.len();
        if !plan.lanes[lane].device {
            node.stats().set_in_host_lane();
        }
        self.made.watched.push(WatchedNode {
            names: own.handlers.iter().map(|at| plan.handlers[*at].name.clone()).collect(),
            between: own.handlers.iter().map(|at| plan.handlers[*at].is_between_ends()).collect(),
            space: if plan.lanes[lane].device { Space::Gpu } else { Space::Cpu },
            group,
            lane,
            position,
            sink: node.is_sink(),
            source: node.is_source(),
            inserted: own.is_inserted(),
            transfer: own.transfer,
            direction: own.transfer.map(|transfer| plan.transfers[transfer].direction),
            on_device: plan.lanes[lane].device && (group.is_some() || own.transfer.is_some()),
            stats: Arc::clone(node.stats()),
        });
        self.candidates.push(LatenessCandidate {
            name: node.name(),
            lane,
            position,
            budget: self.frame_time.map(|time| time.div_f64(self.share(own))),
            stats: Arc::clone(node.stats()),
            waits_for: Vec::new(),
        });
    }

    /// The lane that records for the device and plays the recordings.
    fn device_lane(&mut self, number: usize, nodes: Vec<Vec<Node>>, device: &Device) -> Result<Lane, PrepareError> {
        let EngineParts { plan, options, trace, .. } = self.shared.parts;
        let lane = &plan.lanes[number];
        let timed = if trace.is_some() { Timed::Each } else { Timed::Sampled };
        // To meet a latency need, the plan may have chosen less than the options allow.
        let (in_flight, batch) =
            plan.latency.as_ref().map_or((options.in_flight, options.batch), |need| (need.in_flight, need.batch));
        let in_flight = in_flight.max(1) as usize;
        let make: MakePlayer =
            Arc::new(move |device| Player::on(device).frames_in_flight(in_flight).timed(timed).build());
        let player = make(device).map_err(|error| PrepareError::Device {
            handler: plan.handlers[lane.handlers[0]].name.clone(),
            error: DeviceError::Play(error),
        })?;
        let shares = lane.segments.iter().map(|segment| self.share(&plan.units[segment[0]])).collect();
        let gates = lane.segments.iter().map(|segment| gates(segment, &plan.rings)).collect();
        let context = self.context().at(device.clone()).drawing(self.track(&nodes));
        let (adapter, backend) = (&device.adapter().name, device.adapter().backend);
        let track = trace.as_ref().map(|trace| trace.track(format!("{adapter} ({backend})"), true, names(&nodes)));
        let stats = nodes.iter().map(|own| own.iter().map(|node| Arc::clone(node.stats())).collect());
        let times = DeviceTimes::new(stats.collect(), track);
        for (own, time) in nodes.iter().zip(times.segments()) {
            let names = own.iter().map(Node::name).collect::<Vec<_>>().join(", ");
            self.segment_times.push(SegmentTime { names, lane: number, time: Arc::clone(time) });
            self.made.timed.push((Arc::clone(own[0].stats()), Arc::clone(time)));
        }
        let (device_history, lose_at) =
            (Arc::clone(&self.shared.device_history), options.lose_device_at.clone().into());
        let mut recovery =
            RecoveryState::new(options.on_loss, limited(self.shared.parts), make, device_history, lose_at);
        recovery.first_pause = options.away_ms.map_or(recovery.first_pause, Duration::from_millis);
        let signal = self.shared.signals[number].clone();
        let lane = Lane::on_device(nodes, gates, signal, context, LanePlayer::new(player, shares, times));
        Ok(lane.batch(batch.max(1) as usize).recovering(recovery))
    }

    fn context(&self) -> LaneContext {
        let context = LaneContext::new(self.shared.pool.clone())
            .threads(self.shared.threads)
            .counting(Arc::clone(&self.shared.tally))
            .slowed(self.shared.parts.options.slowed.max(1))
            .stopper(self.shared.stop.clone())
            .counting_sinks(Arc::clone(&self.shared.sink_counter))
            .sharing(self.shared.shared_values.clone());
        match &self.shared.parts.listener {
            Some(listener) => context.listener(Arc::clone(listener)),
            None => context,
        }
    }

    /// A track of the timeline for the calls of these nodes, if there is a timeline.
    fn track(&self, nodes: &[Vec<Node>]) -> Option<Track> {
        let names = names(nodes);
        self.shared.parts.trace.as_ref().map(|trace| trace.track(names.join(", "), false, names))
    }

    /// Frames of a unit per frame of the fastest source.
    fn share(&self, unit: &Unit) -> f64 {
        let rate = unit.handlers.first().and_then(|at| self.shared.planned[*at].rate()).map(Rate::per_second);
        match rate {
            Some(rate) if self.fastest > 0.0 => rate / self.fastest,
            _ => 1.0,
        }
    }

    /// The lanes, each connected to the analysis of late frames.
    fn judged(mut self) -> BuiltLanes {
        let plan = self.shared.parts.plan;
        for link in plan.links.iter().filter(|link| !link.rings.is_empty()) {
            let rings = (plan.rings[link.rings[0]], plan.rings[link.rings[link.rings.len() - 1]]);
            let ends = [Some(rings.0.from), plan.inserted_transfer(link), Some(rings.1.to)];
            let ends: Vec<usize> = ends.into_iter().flatten().map(|unit| self.made.watched_at[unit]).collect();
            for pair in ends.windows(2) {
                self.candidates[pair[1]].waits_for.push(pair[0]);
                if link.policy == Policy::Lossless {
                    self.candidates[pair[0]].waits_for.push(pair[1]);
                }
            }
        }
        let lateness = Arc::new(Lateness::new(self.candidates, self.segment_times));
        for (number, lane) in self.made.all.iter_mut().enumerate() {
            lane.ask(&lateness, number);
        }
        self.made
    }
}

fn names(nodes: &[Vec<Node>]) -> Vec<String> {
    nodes.iter().flatten().map(Node::name).collect()
}

/// Frames per second of the fastest source.
fn fastest(planned: &[Planned<'_>]) -> f64 {
    planned.iter().filter(|p| p.is_source()).filter_map(Planned::rate).map(Rate::per_second).fold(0.0, f64::max)
}

/// The caller's reopen function, extended so that it also sets the time limit of submissions on the new device.
fn limited(parts: &EngineParts<'_>) -> Option<Reopen> {
    let (open, limit_ms) = (parts.reopen.clone()?, parts.options.time_limit_ms);
    Some(Arc::new(move || {
        let device = open()?;
        if let Some(limit_ms) = limit_ms {
            device.set_time_limit(Duration::from_millis(limit_ms));
        }
        Ok(device)
    }))
}
