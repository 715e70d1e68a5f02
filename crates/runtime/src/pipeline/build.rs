//! From a plan to nodes, links and lanes.
//!
//! Owns how the plan's parts become things that run: a group or a handler becomes a node, a ramp becomes a node of the
//! device's lane, a link becomes a ring.
//! Does not choose anything: two plans that are equal give pipelines that are equal.
//!
//! Always: handlers are made in the order of the plan; whoever is not built yet is named before anything is opened.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_gpu::Timed;
use vramp_plan::catalog::{Direction, Entry, Settings, SizeRule, Value};
use vramp_plan::{Content, Handler, OnError, Plan, PlannedLink, Policy, PortAt, Rate, Size, Space, Until};

use crate::bell::Bell;
use crate::blame::{Blame, Suspect, Together};
use crate::clock::Clock;
use crate::device_time::DeviceTimes;
use crate::devices::Devices;
use crate::failure::Member;
use crate::frame::Meta;
use crate::group::{Group, Ports, Side};
use crate::handler::{DeviceError, FrameHandler, HandlerError};
use crate::heap::Tally;
use crate::kind::{Setup, Worker};
use crate::lane::{Lane, MakePlayer, Recovery, Reopen};
use crate::node::Node;
use crate::passed::Passed;
use crate::playing::Playing;
use crate::pool::HostPool;
use crate::transfer::{Download, Pass, Upload};
use crate::workplace::Workplace;

use super::aim::{Aim, Replanned, left_behind};
use super::units::{Unit, add_ramps, enters_device, units};
use super::wiring::{Wired, Wiring, gates, segments};
use super::{Pipeline, PipelineBuilder, PrepareError, Stopper, Watched, WatchedLink, WatchedNode};

/// The host's pool is allowed this much more than planned: frames live a little longer in nodes than in links.
const SPARE_BYTES: u64 = 1 << 30;

/// Where to find what runs.
const WHAT_RUNS: &str = "`vramp inspect` lists what runs";

/// What a planned handler is made from.
pub(super) struct Planned<'a> {
    pub(super) entry: &'static Entry,
    settings: Settings,
    /// The user's own; none for converters that the planner put there.
    written: Option<&'a Handler>,
    inputs: Vec<Option<Content>>,
    pub(super) outputs: Vec<Option<Content>>,
}

impl Planned<'_> {
    pub(super) fn lead(&self) -> usize {
        self.written.map_or(0, |handler| handler.lead)
    }

    fn rate(&self) -> Option<Rate> {
        let content = self.outputs.iter().flatten().next().or_else(|| self.inputs.get(self.lead())?.as_ref());
        content.and_then(Content::rate)
    }

    fn is_source(&self) -> bool {
        self.entry.inputs.is_empty()
    }
}

pub(super) async fn build(wishes: PipelineBuilder<'_>) -> Result<Pipeline, PrepareError> {
    let plan = wishes.plan;
    let planned = planned(&wishes);
    check_all_run(&wishes, &planned)?;
    if let Some(on_device) = plan.handlers.iter().find(|h| h.space == Space::Gpu)
        && wishes.device.is_none()
    {
        return Err(PrepareError::NoDevice { handler: on_device.name.clone() });
    }
    let stop = Stopper {
        stopped: Arc::default(),
        finishing: Arc::default(),
        intended: Arc::default(),
        bells: Arc::new(plan.lanes.iter().map(|_| Bell::new()).collect()),
    };
    if let (Some(device), Some(limit)) = (&wishes.device, wishes.time_limit) {
        device.set_time_limit(limit);
    }
    let uses_device = plan.lanes.iter().any(|lane| lane.device);
    let devices = Arc::new(Devices::new(wishes.device.clone().filter(|_| uses_device)));
    let (mut units, unit_of) = units(plan, &planned);
    let ramps = add_ramps(plan, &planned, &mut units, &unit_of);
    let tally = Arc::new(Tally::default());
    // Where the device is lost, its frames are on the host from then on.
    let planned_bytes = plan.memory.cpu_bytes.saturating_add(plan.memory.gpu_bytes);
    let budget = wishes.budget_bytes.unwrap_or_else(|| planned_bytes.saturating_add(SPARE_BYTES));
    let pool = HostPool::new(budget);
    for frames in &plan.memory.host_frames {
        pool.reserve(frames.bytes, usize::try_from(frames.count).unwrap_or(usize::MAX));
    }
    let planned_memory = Arc::new(Mutex::new(plan.memory.clone()));
    let aim = Aim { pool: pool.clone(), devices: Arc::clone(&devices) };
    aim.at(&plan.memory);
    let lent_before = wishes.device.as_ref().map(|device| device.pool().leaks()).unwrap_or_default();
    if let Some(device) = &wishes.device {
        device.pool().restart_peak();
    }
    let passed = Arc::new(Passed::new(Arc::clone(&tally), pool.clone(), Arc::clone(&devices)));
    let replanned = Replanned { passed: &passed, planned: &planned_memory, aim: &aim };
    for at in 0..units.len() {
        let node = make_node(&wishes, &planned, &units[at], &stop, &replanned).await?;
        let owner = pool.enter(&node.name());
        let node = node.remembered_as(owner, left_behind(plan, &planned, &units, at));
        units[at].node = Some(node.entering_device(enters_device(plan, &units[at], at, &ramps)));
    }
    let mut wiring = Wiring {
        units: &mut units,
        unit_of: &unit_of,
        bells: &stop.bells,
        joined: Vec::new(),
        crossing: Vec::new(),
        links: Vec::new(),
    };
    wiring.connect_all(plan, &planned, &ramps);
    let Wiring { joined, crossing, links, .. } = wiring;

    let workplace = || {
        let place = Workplace::new(pool.clone())
            .threads(wishes.threads)
            .counting(Arc::clone(&tally))
            .slowed(wishes.slowed)
            .stopper(stop.clone());
        let place = place.passing(Arc::clone(&passed));
        match &wishes.listener {
            Some(listener) => place.listener(Arc::clone(listener)),
            None => place,
        }
    };
    let fastest = planned.iter().filter(|p| p.is_source()).filter_map(Planned::rate).map(Rate::per_second);
    let fastest = fastest.fold(0.0, f64::max);
    let frame_budget = wishes.pace.map(|rate| Duration::from_secs_f64(1.0 / rate.per_second()));
    let mut lanes = Vec::new();
    let mut watched = Vec::new();
    let mut watched_at = vec![0; units.len()];
    let (mut suspects, mut together, mut timed_segments) = (Vec::new(), Vec::new(), Vec::new());
    for (number, lane) in plan.lanes.iter().enumerate() {
        let segments = segments(number, lane.device, &units, &joined);
        for (place, unit) in segments.iter().flatten().enumerate() {
            let node = units[*unit].node.as_ref().expect("every unit has its node until the lanes are made");
            watched_at[*unit] = watched.len();
            watched.push(watch(plan, &units[*unit], node, number, place));
            suspects.push(Suspect {
                name: node.name(),
                lane: number,
                place,
                budget: frame_budget.map(|budget| budget.div_f64(share(&units[*unit], &planned, fastest))),
                stats: Arc::clone(node.stats()),
                waits_for: Vec::new(),
            });
        }
        let shares = segments.iter().map(|nodes| share(&units[nodes[0]], &planned, fastest)).collect();
        let mut nodes = |at: &Vec<usize>| -> Vec<Node> {
            at.iter().map(|unit| units[*unit].node.take().expect("each unit is in one segment")).collect()
        };
        let bell = stop.bells[number].clone();
        let names = |on: &[Vec<Node>]| on.iter().flatten().map(Node::name).collect::<Vec<String>>();
        let draw =
            |on: &[Vec<Node>]| wishes.trace.as_ref().map(|trace| trace.track(names(on).join(", "), false, names(on)));
        let made = match (&wishes.device, lane.device) {
            (Some(device), true) => {
                let timed = if wishes.trace.is_some() { Timed::Each } else { Timed::Sampled };
                let in_flight = wishes.in_flight;
                let make: MakePlayer = Arc::new(move |device| {
                    vramp_gpu::Player::on(device).frames_in_flight(in_flight).timed(timed).build()
                });
                let player = make(device).map_err(|error| PrepareError::Device {
                    handler: plan.handlers[lane.handlers[0]].name.clone(),
                    error: DeviceError::Play(error),
                })?;
                let gates = segments.iter().map(|segment| gates(segment, &joined, &crossing)).collect();
                let segments: Vec<Vec<Node>> = segments.iter().map(&mut nodes).collect();
                let place = workplace().at(device.clone()).drawing(draw(&segments));
                let track = wishes.trace.as_ref().map(|trace| {
                    trace.track(
                        format!("{} ({})", device.adapter().name, device.adapter().backend),
                        true,
                        names(&segments),
                    )
                });
                let stats = segments.iter().map(|own| own.iter().map(|node| Arc::clone(node.stats())).collect());
                let times = DeviceTimes::new(stats.collect(), track);
                for (own, time) in segments.iter().zip(times.segments()) {
                    let names = own.iter().map(Node::name).collect::<Vec<_>>().join(", ");
                    together.push(Together { names, lane: number, time: Arc::clone(time) });
                    timed_segments.push((Arc::clone(own[0].stats()), Arc::clone(time)));
                }
                let (reopen, lose_at) = (limited(&wishes), wishes.lose_at.clone().into());
                let mut recovery = Recovery::new(wishes.on_loss, reopen, make, Arc::clone(&devices), lose_at);
                recovery.first_pause = wishes.away.unwrap_or(recovery.first_pause);
                let lane = Lane::on_device(segments, gates, bell, place, Playing::new(player, shares, times));
                lane.batch(wishes.batch).recovering(recovery)
            }
            _ => {
                let nodes: Vec<Vec<Node>> = segments.iter().map(&mut nodes).collect();
                let place = workplace().drawing(draw(&nodes));
                Lane::new(nodes.into_iter().flatten().collect(), bell, place)
            }
        };
        lanes.push(made);
    }
    for Wired { link, to, ramp, .. } in &links {
        let (from, to) = (watched_at[unit_of[plan.links[*link].from.handler]], watched_at[*to]);
        let lossless = plan.links[*link].policy == Policy::Lossless;
        let ends = [Some(from), ramp.map(|ramp| watched_at[ramp]), Some(to)];
        let ends: Vec<usize> = ends.into_iter().flatten().collect();
        for pair in ends.windows(2) {
            suspects[pair[1]].waits_for.push(pair[0]);
            if lossless {
                suspects[pair[0]].waits_for.push(pair[1]);
            }
        }
    }
    let blame = Arc::new(Blame::new(suspects, together));
    for (number, lane) in lanes.iter_mut().enumerate() {
        lane.ask(&blame, number);
    }
    let links: Vec<WatchedLink> = links
        .into_iter()
        .map(|Wired { link, to, leads, ramp, rings }| WatchedLink {
            from: plan.port_name(plan.links[link].from),
            to: plan.port_name(plan.links[link].to),
            to_node: watched_at[to],
            leads,
            ramp: ramp.map(|ramp| watched_at[ramp]),
            rings,
        })
        .collect();
    if let Some(trace) = &wishes.trace {
        trace.watch(links.iter().map(|link| format!("{} -> {}", link.from, link.to)).collect());
    }
    let watched = Watched {
        nodes: watched,
        links,
        begun: passed.read(),
        counted_before: devices.counters(),
        pool,
        devices,
        tally,
        passed,
        lent_before: lent_before.into_iter().map(|row| row.tag).collect(),
        planned: planned_memory,
        trace: wishes.trace,
        segments: timed_segments,
    };
    Ok(Pipeline {
        lanes,
        watched: Arc::new(watched),
        stop,
        threads: wishes.threads,
        listener: wishes.listener,
        failed: None,
        time_is_up: false,
    })
}

/// How the device is opened again, with the same limit on its time.
fn limited(wishes: &PipelineBuilder<'_>) -> Option<Reopen> {
    let (open, limit) = (wishes.reopen.clone()?, wishes.time_limit);
    Some(Arc::new(move || {
        let device = open()?;
        if let Some(limit) = limit {
            device.set_time_limit(limit);
        }
        Ok(device)
    }))
}

fn planned<'a>(wishes: &PipelineBuilder<'a>) -> Vec<Planned<'a>> {
    let (plan, graph) = (wishes.plan, wishes.graph);
    let content_at = |handler: usize, port: &str, incoming: bool| {
        let end = |link: &PlannedLink| if incoming { link.to } else { link.from };
        plan.links.iter().find(|link| end(link).handler == handler && end(link).port == port).map(|l| l.content.clone())
    };
    let one = |(at, handler): (usize, &vramp_plan::PlannedHandler)| {
        let written = graph.handlers().iter().find(|h| !handler.inserted && h.name == handler.name);
        let entry = match written {
            Some(written) => written.entry,
            None => graph.catalog().converter().expect("only converters are inserted"),
        };
        let inputs: Vec<_> = entry.inputs.iter().map(|port| content_at(at, port.name, true)).collect();
        let outputs: Vec<_> = entry.outputs.iter().map(|port| content_at(at, port.name, false)).collect();
        let settings = written.map_or_else(
            || {
                let mut settings = Settings::default();
                if let Some(frame) = outputs.iter().flatten().find_map(Content::frame) {
                    settings.set("format", Value::Format(frame.format));
                }
                settings
            },
            |written| written.settings.clone(),
        );
        Planned { entry, settings, written, inputs, outputs }
    };
    plan.handlers.iter().enumerate().map(one).collect()
}

fn check_all_run(wishes: &PipelineBuilder<'_>, planned: &[Planned<'_>]) -> Result<(), PrepareError> {
    let missing = planned.iter().position(|p| p.entry.transfer.is_none() && wishes.kinds.maker(p.entry).is_none());
    match missing {
        None => Ok(()),
        Some(at) => Err(PrepareError::NotBuilt {
            handler: wishes.plan.handlers[at].name.clone(),
            what: planned[at].entry.name.to_owned(),
            instead: WHAT_RUNS.to_owned(),
        }),
    }
}

async fn make_node(
    wishes: &PipelineBuilder<'_>,
    planned: &[Planned<'_>],
    unit: &Unit,
    stop: &Stopper,
    replanned: &Replanned<'_>,
) -> Result<Node, PrepareError> {
    let plan = wishes.plan;
    let name = |at: usize| plan.handlers[at].name.clone();
    let transfer = |direction: Direction| -> Box<dyn FrameHandler> {
        match direction {
            Direction::Up => Box::new(Upload::new("upload")),
            Direction::Down => Box::new(Download),
        }
    };
    let Some(first) = unit.handlers.first().copied() else {
        let direction = unit.ramp.expect("a unit without handlers is a ramp");
        let word = if direction == Direction::Up { "upload" } else { "download" };
        return Ok(Node::new(word, transfer(direction), 1, 1));
    };
    if planned[first].entry.transfer.is_some() {
        // A second transfer of the same output rides on the first.
        let handler = unit.ramp.map_or_else(|| Box::new(Pass) as Box<dyn FrameHandler>, transfer);
        return Ok(Node::new(name(first), handler, 1, 1));
    }
    let members: Vec<Member> = unit
        .handlers
        .iter()
        .map(|at| Member { name: name(*at), on_error: planned[*at].written.map_or(OnError::default(), |w| w.on_error) })
        .collect();
    let mut pixels = Vec::new();
    let mut whole = None;
    for at in &unit.handlers {
        match make(wishes, planned, *at)? {
            Worker::Pixels(handler) => pixels.push(handler),
            Worker::Frames(handler) if unit.handlers.len() == 1 => whole = Some(handler),
            Worker::Frames(_) => return Err(PrepareError::NotPixels { handler: name(*at) }),
        }
    }
    let member_of = |at: usize| unit.handlers.iter().position(|handler| *handler == at).unwrap_or(0);
    let handler = match whole {
        Some(handler) => handler,
        None => {
            let last = *unit.handlers.last().unwrap_or(&first);
            let port = |at: usize, port: usize| unit.inputs.iter().position(|input| *input == (at, port));
            let sides = unit.handlers.iter().flat_map(|at| (1..planned[*at].entry.inputs.len()).map(|p| (*at, p)));
            let is_linked = |(at, port): &(usize, usize)| planned[*at].inputs[*port].is_some();
            let size = |content: Option<&Content>| content.and_then(Content::frame).map(|frame| frame.size);
            let coming = planned[first].inputs.first().and_then(Option::as_ref);
            let ports = Ports {
                source: port(first, 0),
                sides: sides
                    .filter(is_linked)
                    .filter_map(|(at, p)| Some(Side { port: port(at, p)?, member: member_of(at) }))
                    .collect(),
                size: size(coming.or(planned[first].outputs.first().and_then(Option::as_ref)))
                    .unwrap_or(Size { width: 1, height: 1 }),
                small_bytes: unit.handlers.iter().fold(0, |sum, at| plan.handlers[*at].small_bytes.saturating_add(sum)),
            };
            let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
            let group = Group::fuse(&names.join("+"), pixels, planned[last].rate(), ports);
            Box::new(match &wishes.device {
                Some(device) if plan.handlers[first].space == Space::Gpu => group
                    .tuned(device, &wishes.variants)
                    .await
                    .map_err(|error| PrepareError::Device { handler: names.join("+"), error })?,
                _ => group,
            })
        }
    };
    let outputs = planned[*unit.handlers.last().unwrap_or(&first)].entry.outputs.len();
    let input_of = unit.inputs.iter().map(|(at, _)| member_of(*at)).collect();
    let mut node = Node::of(members, handler, unit.inputs.len(), outputs).input_of(input_of);
    let lead = (first, planned[first].lead());
    if let Some(lead) = unit.inputs.iter().position(|input| *input == lead) {
        node = node.lead(lead);
    }
    let ends = |at: usize| planned[at].written.is_some_and(|written| written.until == Until::Shortest);
    for (input, _) in unit.inputs.iter().enumerate().filter(|(_, (at, _))| ends(*at)) {
        node = node.ends_with(input);
    }
    let (entry, settings) = (planned[first].entry, &planned[first].settings);
    node = node
        .delaying(entry.delay.under(settings) as usize, entry.keeps_times.under(settings))
        .every(entry.every.under(settings).into());
    if planned[first].is_source() {
        node = source(wishes, &planned[first], node, stop, replanned);
        let content = planned[first].outputs.iter().flatten().find_map(Content::frame);
        let host = plan.handlers[first].space == Space::Cpu;
        node = node.setting_aside(content.filter(|_| host).map(|frame| Meta::new(frame.format, frame.size)));
    }
    Ok(node)
}

/// Gives a source its clock, its end, and whom to ask when its frames change.
fn source(
    wishes: &PipelineBuilder<'_>,
    planned: &Planned<'_>,
    node: Node,
    stop: &Stopper,
    replanned: &Replanned<'_>,
) -> Node {
    let rate = planned.rate().or_else(|| Rate::new(30, 1)).expect("30 is a rate");
    let clock = match (wishes.pace, planned.entry.live) {
        (_, true) => Clock::paced(rate),
        (Some(pace), false) => Clock::slipping(rate, pace),
        (None, false) => Clock::free(rate),
    };
    let mut node = node.clock(clock).limit(wishes.frames, Arc::clone(&stop.finishing));
    if wishes.nominal {
        node = node.nominal();
    }
    let probed = planned.entry.outputs.iter().any(|output| matches!(output.size, SizeRule::Probed(_)));
    let size = planned.outputs.iter().flatten().find_map(Content::frame).map(|frame| frame.size);
    match (&wishes.replan, size) {
        (Some(replan), Some(size)) if probed => {
            let (replan, passed) = (Arc::clone(replan), Arc::clone(replanned.passed));
            let (most, aim) = (Arc::clone(replanned.planned), replanned.aim.clone());
            node.planned(
                size,
                Arc::new(move |name, size| {
                    let needed = replan(name, size)?;
                    passed.replans.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
                    most.gpu_bytes = most.gpu_bytes.max(needed.gpu_bytes);
                    most.cpu_bytes = most.cpu_bytes.max(needed.cpu_bytes);
                    aim.at(&most);
                    Ok(needed)
                }),
            )
        }
        _ => node,
    }
}

fn make(wishes: &PipelineBuilder<'_>, planned: &[Planned<'_>], at: usize) -> Result<Worker, PrepareError> {
    let handler = &wishes.plan.handlers[at];
    let own = &planned[at];
    let Some(make) = wishes.kinds.maker(own.entry) else {
        let (what, instead) = (own.entry.name.to_owned(), WHAT_RUNS.to_owned());
        return Err(PrepareError::NotBuilt { handler: handler.name.clone(), what, instead });
    };
    let lead = own.entry.inputs.get(own.lead()).map(|input| PortAt { handler: at, port: input.name });
    let is_own = |link: &&PlannedLink| lead.map_or(link.from.handler == at, |lead| link.to == lead);
    let setup = Setup {
        name: &handler.name,
        settings: &own.settings,
        inputs: &own.inputs,
        outputs: &own.outputs,
        tags: wishes.plan.links.iter().find(is_own).and_then(|link| link.tags.as_deref()),
        space: handler.space,
        rate: own.rate(),
        handlers: wishes.graph.handlers().len(),
        declared: own.written.and_then(|written| written.declared.as_ref()),
        watch: wishes.watch,
    };
    let handler = || handler.name.clone();
    make(&setup).map_err(|error| match error {
        HandlerError::NotBuilt { what, instead } => PrepareError::NotBuilt { handler: handler(), what, instead },
        error => PrepareError::Make { handler: handler(), error },
    })
}

/// How many frames a segment has for each of the fastest source's.
fn share(first: &Unit, planned: &[Planned<'_>], fastest: f64) -> f64 {
    let rate = first.handlers.first().and_then(|at| planned[*at].rate()).map(Rate::per_second);
    match rate {
        Some(rate) if fastest > 0.0 => rate / fastest,
        _ => 1.0,
    }
}

fn watch(plan: &Plan, unit: &Unit, node: &Node, lane: usize, place: usize) -> WatchedNode {
    let group = unit.handlers.first().and_then(|at| plan.handlers[*at].group);
    WatchedNode {
        names: unit.handlers.iter().map(|at| plan.handlers[*at].name.clone()).collect(),
        group,
        lane,
        place,
        sink: node.is_sink(),
        source: node.is_source(),
        inserted: unit.handlers.is_empty(),
        on_device: plan.lanes[lane].device && (group.is_some() || unit.ramp.is_some()),
        stats: Arc::clone(node.stats()),
    }
}
