//! Makes the node of each unit of a plan: makes handlers from their settings, fuses pixel handlers, and gives each
//! source a clock and a limit.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use vramp_plan::catalog::{SizeRule, TransferDirection};
use vramp_plan::{
    Content, Handler, OnError, Plan, PlannedHandler, PlannedLink, Policy, PortAt, Rate, Size, Space, Unit, Until,
};

use crate::clock::Clock;
use crate::device::transfer::{Download, PassThrough, Upload};
use crate::failure::{NodeMember, catch};
use crate::frame::Meta;
use crate::fused::{DataInput, ExtraInput, FusedPorts, FusedUnit};
use crate::handler::{FrameHandler, HandlerError};
use crate::node::Node;
use crate::registry::{OwnedSetup, Worker};
use crate::waker::Waker;

use super::barrier::SourceMark;
use super::build::BuildContext;
use super::{EngineParts, PrepareError};

const WHAT_RUNS: &str = "`vramp inspect` lists what runs";

/// A planned handler with the content of its ports.
pub(super) struct Planned<'a> {
    pub(super) handler: &'a PlannedHandler,
    /// The handler as the user wrote it; `None` for converters that the planner inserted.
    written: Option<&'a Handler>,
    inputs: Vec<Option<Content>>,
    pub(super) outputs: Vec<Option<Content>>,
}

impl Planned<'_> {
    pub(super) fn rate(&self) -> Option<Rate> {
        let content = self.outputs.iter().flatten().next().or_else(|| self.inputs.get(self.handler.lead)?.as_ref());
        content.and_then(Content::rate)
    }

    pub(super) fn is_source(&self) -> bool {
        self.handler.entry.inputs.is_empty()
    }

    /// Whether this port is the lead input.
    pub(super) fn leads_with(&self, port: &str) -> bool {
        self.handler.entry.input(port) == Some(self.handler.lead)
    }

    fn member(&self) -> NodeMember {
        let on_error = self.written.map_or(OnError::default(), |written| written.on_error);
        let (inputs, outputs) = (self.inputs.clone(), self.outputs.clone());
        NodeMember { name: self.handler.name.clone(), on_error, inputs, outputs }
    }
}

pub(super) fn planned<'a>(parts: &EngineParts<'a>) -> Vec<Planned<'a>> {
    let written: BTreeMap<&str, &Handler> = parts.graph.handlers().iter().map(|h| (h.name.as_str(), h)).collect();
    let one = |handler: &'a PlannedHandler| Planned {
        handler,
        written: written.get(handler.name.as_str()).copied().filter(|_| !handler.inserted),
        inputs: vec![None; handler.entry.inputs.len()],
        outputs: vec![None; handler.entry.outputs.len()],
    };
    let mut all: Vec<Planned<'a>> = parts.plan.handlers.iter().map(one).collect();
    for link in &parts.plan.links {
        let (from, to) = (&mut all[link.from.handler], link.from.port);
        if let Some(output) = from.handler.entry.output(to) {
            from.outputs[output].get_or_insert_with(|| link.content.clone());
        }
        let (to, port) = (&mut all[link.to.handler], link.to.port);
        if let Some(input) = to.handler.entry.input(port) {
            to.inputs[input].get_or_insert_with(|| link.content.clone());
        }
    }
    all
}

pub(super) fn check_all_run(parts: &EngineParts<'_>) -> Result<(), PrepareError> {
    if let Some(missing) = parts.plan.handlers.iter().find(|handler| !parts.registry.runs(handler.entry)) {
        return Err(not_built(missing));
    }
    match parts.plan.links.iter().find(|link| matches!(link.content, Content::Audio { .. })) {
        None => Ok(()),
        Some(link) => {
            Err(PrepareError::Audio { from: parts.plan.port_name(link.from), to: parts.plan.port_name(link.to) })
        }
    }
}

fn not_built(handler: &PlannedHandler) -> PrepareError {
    PrepareError::NotBuilt {
        handler: handler.name.clone(),
        what: handler.kind().to_owned(),
        instead: WHAT_RUNS.to_owned(),
    }
}

pub(super) async fn make_node(shared: &BuildContext<'_>, unit: &Unit) -> Result<Node, PrepareError> {
    let (plan, planned) = (shared.parts.plan, shared.planned);
    let direction = unit.transfer.map(|transfer| plan.transfers[transfer].direction);
    let Some(first) = unit.handlers.first().copied() else {
        let direction = direction.expect("a unit without handlers is a transfer");
        let word = if direction == TransferDirection::Up { "upload" } else { "download" };
        return Ok(Node::new(word, transfer(direction), 1, 1));
    };
    if planned[first].handler.entry.transfer.is_some() {
        // A second transfer of the same output shares the frames of the first transfer.
        let handler = direction.map_or_else(|| Box::new(PassThrough) as Box<dyn FrameHandler>, transfer);
        return Ok(Node::new(planned[first].handler.name.clone(), handler, 1, 1));
    }
    let member_of = |at: usize| unit.handlers.iter().position(|handler| *handler == at).unwrap_or(0);
    let handler = make_handler(shared, unit, first).await?;
    let members = unit.handlers.iter().map(|at| planned[*at].member()).collect();
    let outputs = planned[*unit.handlers.last().unwrap_or(&first)].handler.entry.outputs.len();
    let input_of = unit.inputs.iter().map(|(at, _)| member_of(*at)).collect();
    let mut node = Node::of(members, handler, unit.inputs.len(), outputs).input_of(input_of);
    let lead = (first, planned[first].handler.lead);
    if let Some(lead) = unit.inputs.iter().position(|input| *input == lead) {
        node = node.lead(lead);
    }
    let ends = |at: usize| planned[at].written.is_some_and(|written| written.until == Until::Shortest);
    for (input, _) in unit.inputs.iter().enumerate().filter(|(_, (at, _))| ends(*at)) {
        node = node.ends_with(input);
    }
    let PlannedHandler { entry, settings, .. } = planned[first].handler;
    node = node
        .delaying(entry.delay.under(settings) as usize, entry.keeps_times.under(settings))
        .every(entry.every.under(settings).into());
    let pace = shared.parts.options.pace;
    let waker = Waker::new(&shared.signals[unit.lane], &shared.driver);
    let is_lead = |link: &&PlannedLink| link.to.handler == first && planned[first].leads_with(link.to.port);
    let policy = plan.links.iter().find(is_lead).map(|link| link.policy);
    // On a link that keeps only the newest frame, a frame that waits for its time is replaced and never shown.
    let is_newest = policy == Some(Policy::Latest);
    node = node
        .waking(&waker)
        .presenting(entry.presents && pace.is_none() && !is_newest)
        .never_waited_for(entry.presents && policy.is_some_and(|policy| policy != Policy::Lossless));
    if planned[first].is_source() {
        node = source(shared, &planned[first], node);
        let content = planned[first].outputs.iter().flatten().find_map(Content::frame);
        let host = plan.handlers[first].space == Space::Cpu;
        node = node.setting_aside(content.filter(|_| host).map(|frame| Meta::new(frame.format, frame.size)));
    }
    Ok(node)
}

fn transfer(direction: TransferDirection) -> Box<dyn FrameHandler> {
    match direction {
        TransferDirection::Up => Box::new(Upload::new("upload")),
        TransferDirection::Down => Box::new(Download),
    }
}

/// Makes the handlers of a unit. Pixel handlers become one [`FusedUnit`].
async fn make_handler(
    shared: &BuildContext<'_>,
    unit: &Unit,
    first: usize,
) -> Result<Box<dyn FrameHandler>, PrepareError> {
    let mut pixels = Vec::new();
    for at in &unit.handlers {
        match make(shared, *at)? {
            Worker::Pixels(handler) => {
                check_ports(&shared.planned[*at])?;
                pixels.push(handler);
            }
            Worker::Frames(handler) if unit.handlers.len() == 1 => return Ok(handler),
            Worker::Frames(_) => {
                return Err(PrepareError::NotPixels { handler: shared.planned[*at].handler.name.clone() });
            }
        }
    }
    let last = *unit.handlers.last().unwrap_or(&first);
    let names: Vec<&str> = unit.handlers.iter().map(|at| shared.planned[*at].handler.name.as_str()).collect();
    let name = names.join("+");
    let fused = FusedUnit::fuse(&name, pixels, shared.planned[last].rate(), ports(shared, unit, first));
    Ok(Box::new(match &shared.parts.device {
        Some(device) if shared.planned[first].handler.space == Space::Gpu => fused
            .tuned(device, &shared.parts.variants)
            .await
            .map_err(|error| PrepareError::Device { handler: name, error })?,
        _ => fused,
    }))
}

/// Refuses a handler of pixels with a port that carries something else than pictures. Inputs other than the first and
/// the lead may carry data.
fn check_ports(planned: &Planned<'_>) -> Result<(), PrepareError> {
    let entry = planned.handler.entry;
    let name = || planned.handler.name.clone();
    let inputs = entry.inputs.iter().map(|port| port.name).zip(&planned.inputs);
    let others = inputs.clone().filter(|(_, content)| !content.as_ref().is_some_and(Content::is_data));
    let outputs = entry.outputs.iter().map(|port| port.name).zip(&planned.outputs);
    let other = |(port, content): (&'static str, &Option<Content>)| {
        Some((port, content.as_ref().filter(|content| content.frame().is_none())?.to_string()))
    };
    if let Some((port, content)) = others.chain(outputs).find_map(other) {
        return Err(PrepareError::NotPictures { handler: name(), port: port.to_owned(), content });
    }
    let mut leading = inputs.enumerate().filter(|(at, _)| [0, planned.handler.lead].contains(at));
    match leading.find_map(|(_, input)| other(input)) {
        None => Ok(()),
        Some((port, _)) => Err(PrepareError::LedByData { handler: name(), port: port.to_owned() }),
    }
}

/// The inputs that the fused kernel of a unit reads, and the size of the unit's frames.
fn ports(shared: &BuildContext<'_>, unit: &Unit, first: usize) -> FusedPorts {
    let planned = shared.planned;
    let port = |at: usize, port: usize| unit.inputs.iter().position(|input| *input == (at, port));
    let inputs = unit.handlers.iter().enumerate().flat_map(|(member, at)| {
        let inputs = planned[*at].inputs.iter().enumerate();
        inputs.filter_map(move |(input, content)| Some((member, input, content.as_ref()?, port(*at, input)?)))
    });
    let (data, pictures): (Vec<_>, Vec<_>) = inputs.partition(|(_, _, content, _)| content.is_data());
    let main = |contents: &'_ [Option<Content>]| contents.first().and_then(Option::as_ref).cloned();
    let content = main(&planned[first].inputs).or_else(|| main(&planned[first].outputs));
    FusedPorts {
        source: port(first, 0),
        extra_inputs: pictures
            .into_iter()
            .filter(|(_, input, ..)| *input > 0)
            .map(|(member, .., port)| ExtraInput { port, member })
            .collect(),
        data_inputs: data.into_iter().map(|(member, input, _, port)| DataInput { port, member, input }).collect(),
        size: content.as_ref().and_then(Content::frame).map_or(Size { width: 1, height: 1 }, |frame| frame.size),
        small_bytes: unit.handlers.iter().fold(0, |sum, at| planned[*at].handler.small_bytes.saturating_add(sum)),
    }
}

/// Gives a source its clock, its end, and the function that plans the graph again when sizes change.
fn source(shared: &BuildContext<'_>, planned: &Planned<'_>, node: Node) -> Node {
    let options = shared.parts.options;
    let rate = planned.rate().or_else(|| Rate::new(30, 1)).expect("30 is a valid rate");
    let PlannedHandler { entry, settings, .. } = planned.handler;
    // Under nominal time a run can be repeated exactly, so arrivals must not count.
    let live = entry.live.under(settings) && !options.nominal_time;
    let clock = if live { Clock::arrivals(rate) } else { Clock::free(rate) };
    let clock = options.pace.map_or(clock.clone(), |pace| clock.pace(pace));
    let mark = Arc::new(SourceMark::new(&planned.handler.name));
    let mut node = node.clock(clock).limit(options.frames);
    node = node.pausing(shared.stop.sources_pause(), shared.stop.barrier(), &mark);
    shared.marks.borrow_mut().push(mark);
    if options.nominal_time {
        node = node.nominal();
    }
    let probed = planned.handler.entry.outputs.iter().any(|output| matches!(output.size, SizeRule::Probed(_)));
    let size = planned.outputs.iter().flatten().find_map(Content::frame).map(|frame| frame.size);
    match (&shared.parts.replan, size) {
        (Some(replan), Some(size)) if probed => {
            let (replan, sink_counter) = (Arc::clone(replan), Arc::clone(&shared.sink_counter));
            let (most, target) = (Arc::clone(&shared.needed), shared.target.clone());
            node.planned(
                size,
                Arc::new(move |name, size| {
                    let needed = replan(name, size)?;
                    sink_counter.replans.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let mut most = most.lock().unwrap_or_else(PoisonError::into_inner);
                    most.gpu_bytes = most.gpu_bytes.max(needed.gpu_bytes);
                    most.cpu_bytes = most.cpu_bytes.max(needed.cpu_bytes);
                    most.cpu_held_bytes = most.cpu_held_bytes.max(needed.cpu_held_bytes);
                    target.at(&most);
                    Ok(needed)
                }),
            )
        }
        _ => node,
    }
}

fn make(shared: &BuildContext<'_>, at: usize) -> Result<Worker, PrepareError> {
    let handler = shared.planned[at].handler;
    let Some(make) = shared.parts.registry.maker(handler.entry) else { return Err(not_built(handler)) };
    let setup = setup(shared, at);
    let name = || handler.name.clone();
    catch(|| make(&setup.setup())).map_err(|error| match error {
        HandlerError::NotBuilt { what, instead } => PrepareError::NotBuilt { handler: name(), what, instead },
        error => PrepareError::Make { handler: name(), error },
    })
}

/// What a handler is made from.
pub(super) fn setup(shared: &BuildContext<'_>, at: usize) -> OwnedSetup {
    let (parts, own) = (shared.parts, &shared.planned[at]);
    let handler = own.handler;
    let lead = handler.entry.inputs.get(handler.lead).map(|input| PortAt { handler: at, port: input.name });
    let is_own = |link: &&PlannedLink| lead.map_or(link.from.handler == at, |lead| link.to == lead);
    OwnedSetup {
        name: handler.name.clone(),
        settings: handler.settings.clone(),
        inputs: own.inputs.clone(),
        outputs: own.outputs.clone(),
        tags: parts.plan.links.iter().find(is_own).and_then(|link| link.tags.clone()),
        space: handler.space,
        rate: own.rate(),
        handlers: parts.graph.handlers().len(),
        declared: own.written.and_then(|written| written.declared.clone()),
        pool: shared.pool.clone(),
        device: parts.device.clone().filter(|_| handler.space == Space::Gpu),
        handles: shared.handles.clone(),
    }
}

/// Whether frames first reach the device in this unit: the unit is a source on the device, or an upload of frames that
/// have not been on the device before.
pub(super) fn enters_device(plan: &Plan, at: usize) -> bool {
    let unit = &plan.units[at];
    if !plan.lanes[unit.lane].device {
        return false;
    }
    let Some(transfer) = unit.transfer.map(|transfer| &plan.transfers[transfer]) else {
        return unit.handlers.first().is_some_and(|first| plan.links.iter().all(|link| link.to.handler != *first));
    };
    let mut waiting = vec![transfer.from.handler];
    let mut seen = vec![false; plan.handlers.len()];
    while let Some(handler) = waiting.pop() {
        if plan.lanes[plan.handlers[handler].lane].device {
            return false;
        }
        if !std::mem::replace(&mut seen[handler], true) {
            waiting.extend(plan.links.iter().filter(|link| link.to.handler == handler).map(|link| link.from.handler));
        }
    }
    transfer.direction == TransferDirection::Up
}
