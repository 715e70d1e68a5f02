//! Trials: runs of the same graph in different ways, with stand-ins for the graph's sources and sinks.
//!
//! Invariants: nothing outside the process is written, and no source is read twice. Every trial has the same source
//! frames, frame numbers and times.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::Device;
use vramp_plan::catalog::{
    DeclareError, DeclaredShader, Entry, KernelKind, ProbeError, Probed, SettingValues, SourceProbe,
};
use vramp_plan::{
    Content, Format, Graph, GraphSpec, Handler, HandlerSpec, LinkEnd, OnLoss, Plan, PlannedLink, Policy, PortAt, Rate,
    RunOptions, Space, SpaceSet,
};
use vramp_runtime::{Registry, Report};

use crate::app;
use crate::harness::Caught;
use crate::harness::on_device::figures;
use vramp_handlers::app::{AppInput, AppOutput, PullError, PulledFrame, PushError, Wait};
use vramp_pipeline::{Error, Pipeline, Running};

use super::stand_ins::{CARRY, Captured, cut_off};
use super::{Options, VerifyError};

/// Answers probes from the checked graph, so that no source is opened twice.
struct KnownSources<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
}

impl SourceProbe for KnownSources<'_> {
    fn probe(&self, entry: &Entry, settings: &SettingValues) -> Result<Probed, ProbeError> {
        let same = |handler: &&Handler| handler.entry == entry && handler.settings == *settings;
        Ok(self.graph.handlers().iter().find(same).map_or_else(Probed::default, |handler| handler.probed.clone()))
    }

    /// Reads the shader again, because the shader's text defines the types of its settings.
    fn declared(&self, entry: &Entry, settings: &SettingValues) -> Result<Option<DeclaredShader>, DeclareError> {
        self.registry.declared(entry, settings)
    }
}

/// A graph to run in trials, with the captured frames of its sources.
pub(super) struct Subject<'a> {
    graph: &'a Graph,
    spec: &'a GraphSpec,
    names: Vec<String>,
    /// All handlers and links, including inserted converters and their links.
    pub(super) plan: Plan,
    registry: Registry,
    captured: Captured,
    /// Handlers whose GPU implementation does not fit this device, with the reason.
    pub(super) kept_off: BTreeMap<String, String>,
    /// Frames per run for generators, which are not captured.
    pub(super) frames: u64,
}

/// The result of a trial. `frames` has the frames at the sinks and taps, by `handler.port`.
pub(super) struct Tried {
    pub(super) frames: BTreeMap<String, Vec<Caught>>,
    pub(super) plan: Plan,
    pub(super) report: Report,
}

/// Which part of the graph runs, and how.
#[derive(Clone, Copy)]
pub(super) struct TrialRun<'t> {
    /// Runs only this handler and the handlers before it. `None` runs the whole graph.
    pub(super) up_to: Option<&'t str>,
    /// The outputs to capture besides the sinks' inputs.
    pub(super) taps: TappedOutputs<'t>,
    pub(super) fusion: bool,
    pub(super) device: Option<&'t Device>,
    /// The handlers that run on the device. All other handlers run on the CPU.
    pub(super) on: On<'t>,
}

/// The outputs whose frames are captured.
#[derive(Clone, Copy)]
pub(super) enum TappedOutputs<'t> {
    None,
    /// All outputs, or only the outputs of the last handler if only a part of the graph runs.
    All,
    /// The outputs of these handlers. A tap after the last handler of a fusion group does not change the group.
    Of(&'t BTreeSet<String>),
}

/// The handlers that run on the device.
#[derive(Clone, Copy)]
pub(super) enum On<'t> {
    /// Only handlers that run nowhere else.
    Host,
    /// This handler, and handlers that run nowhere else.
    DeviceFor(&'t str),
    /// Every handler that offers the device and fits the device, except sinks.
    Device,
}

impl<'a> Subject<'a> {
    /// Captures, once, the frames of every source that reads its frames from outside the process.
    pub(super) fn capture(
        spec: &'a GraphSpec,
        graph: &'a Graph,
        plan: Plan,
        registry: &Registry,
        options: &Options,
    ) -> Result<Subject<'a>, VerifyError> {
        let outputs: BTreeSet<_> = plan.links.iter().map(|link| link.from).collect();
        let bytes_of = |from| plan.links.iter().find(|link| link.from == from).map_or(0, |link| link.content.bytes());
        // Every output is kept twice: as the reference and as the result.
        let frame_bytes = 2 * outputs.into_iter().map(bytes_of).sum::<u64>().max(1);
        let frames = options.frames.min(options.most_bytes / frame_bytes).max(1);
        let registry = &app::added_to(registry)?;
        let mut captured = BTreeMap::new();
        let sources: Vec<&Handler> = graph.handlers().iter().filter(|handler| is_read(handler)).collect();
        let names = spec.names();
        for source in &sources {
            let most_bytes = options.most_bytes / 2 / sources.len() as u64;
            let written = names.iter().position(|name| *name == source.name).map(|at| &spec.handlers()[at]);
            let written = written.cloned().unwrap_or_else(|| HandlerSpec::new(source.entry.name));
            captured.insert(source.name.clone(), read(graph, source, written, registry, (frames, most_bytes))?);
        }
        let captured = Arc::new(captured);
        let registry = cut_off(registry, graph.handlers().len(), &captured)?;
        let kept_off = options.device.as_ref().map_or_else(|| Ok(BTreeMap::new()), |device| kept_off(graph, device))?;
        Ok(Subject { graph, spec, names, plan, registry, captured, kept_off, frames })
    }

    /// The handler of this name. `None` for converters that the planner inserted.
    pub(super) fn handler(&self, name: &str) -> Option<&'a Handler> {
        self.graph.handlers().iter().find(|handler| handler.name == name)
    }

    /// The handlers without outputs.
    pub(super) fn sinks(&self) -> impl Iterator<Item = &'a Handler> {
        self.graph.handlers().iter().filter(|handler| handler.entry.outputs.is_empty())
    }

    /// Names of the handlers that can run in both spaces and be compared, including converters that the planner
    /// inserted.
    pub(super) fn twins(&self) -> impl Iterator<Item = &str> {
        let written = self.graph.handlers().iter().filter(move |handler| {
            let (entry, spaces) = (handler.entry, self.spaces(handler));
            let both = spaces.contains(Space::Cpu) && spaces.contains(Space::Gpu);
            let fits = !self.kept_off.contains_key(&handler.name);
            both && fits && entry.transfer.is_none() && !entry.outputs.is_empty() && !is_read(handler)
        });
        let both = |entry: &Entry| entry.offers(Space::Cpu) && entry.offers(Space::Gpu);
        let converts = self.graph.catalog().converter().is_some_and(both);
        let inserted = self.plan.handlers.iter().filter(move |handler| handler.inserted && converts);
        written.map(|handler| handler.name.as_str()).chain(inserted.map(|handler| handler.name.as_str()))
    }

    /// Handlers that can compute only on the device.
    pub(super) fn device_only(&self) -> impl Iterator<Item = &'a Handler> {
        self.graph
            .handlers()
            .iter()
            .filter(|handler| !handler.entry.outputs.is_empty() && self.runs_on_device_only(handler))
    }

    /// The spaces in which a handler of the graph or of a trial can run, under its settings. A handler of nothing but
    /// data stays on the host.
    fn spaces(&self, handler: &Handler) -> SpaceSet {
        let offered = handler.entry.spaces_under(&handler.settings);
        let own = |at: PortAt| self.plan.handlers[at.handler].name == handler.name;
        let mut links = self.plan.links.iter().filter(|link| own(link.from) || own(link.to)).peekable();
        let only_data = links.peek().is_some() && links.all(|link| link.content.is_data());
        if only_data && offered.contains(Space::Cpu) { SpaceSet::CPU } else { offered }
    }

    fn runs_on_device_only(&self, handler: &Handler) -> bool {
        handler.entry.transfer.is_none() && !self.spaces(handler).contains(Space::Cpu)
    }

    /// The names of a handler and of all handlers before it.
    pub(super) fn names_up_to(&self, name: &str) -> impl Iterator<Item = &str> {
        self.up_to(name).into_iter().map(|at| self.plan.handlers[at].name.as_str())
    }

    /// A handler and all handlers before it.
    fn up_to(&self, name: &str) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut asked: Vec<usize> = self.plan.handlers.iter().position(|h| h.name == name).into_iter().collect();
        while let Some(at) = asked.pop() {
            if found.insert(at) {
                asked.extend(self.plan.links.iter().filter(|link| link.to.handler == at).map(|link| link.from.handler));
            }
        }
        found
    }

    /// Whether the graph has a handler that runs only on the device.
    pub(super) fn needs_device(&self) -> bool {
        self.graph.handlers().iter().any(|handler| self.runs_on_device_only(handler))
    }

    /// Runs the graph, or a part of the graph.
    pub(super) fn run(&self, trial: TrialRun<'_>) -> Result<Tried, VerifyError> {
        let (spec, taps) = self.written(&trial);
        let graph = Graph::check(
            &spec,
            self.registry.catalog(),
            &KnownSources { graph: self.graph, registry: &self.registry },
        )?;
        let mut options = RunOptions::new().fusion(trial.fusion).frames(self.frames).nominal_time();
        for handler in graph.handlers().iter().filter(|handler| handler.entry.transfer.is_none()) {
            let place = match trial.on {
                // Frames are compared on the CPU.
                _ if handler.entry.outputs.is_empty() => Space::Cpu,
                On::DeviceFor(name) if handler.name == name => Space::Gpu,
                On::Host | On::DeviceFor(_) => Space::Cpu,
                On::Device if self.kept_off.contains_key(&handler.name) => Space::Cpu,
                On::Device => Space::Gpu,
            };
            if trial.device.is_some() && self.spaces(handler).contains(place) {
                options = options.place(&handler.name, place);
            }
        }
        let builder = Pipeline::from_graph(graph).registry(&self.registry).without_sinks();
        let pipeline = match trial.device {
            None => builder.options(options.only(Space::Cpu)).build()?,
            // The trial stops if the device is lost. Otherwise the CPU would continue, and the result would not come
            // from the GPU.
            Some(device) => {
                builder.options(options.on_loss(OnLoss::Stop)).profile(figures(device)).device(device).build()?
            }
        };
        let plan = pipeline.plan().clone();
        let mut pushes = Vec::new();
        for handler in &plan.handlers {
            if let Some(frames) = self.captured.get(&handler.name) {
                pushes.push((pipeline.input(&handler.name)?, frames.as_slice()));
            }
        }
        // A sink with several inputs has several taps, and is pulled once.
        let names: BTreeSet<&String> = taps.iter().map(|(name, _)| name).collect();
        let outputs: Vec<AppOutput> = names.into_iter().map(|name| pipeline.output(name)).collect::<Result<_, _>>()?;
        let running = pipeline.spawn()?;
        // Every end has a thread of its own, because a graph may have to move at all of its ends to move at one.
        let pulled: Vec<Result<Vec<Caught>, PullError>> = std::thread::scope(|scope| {
            for (input, frames) in &pushes {
                scope.spawn(|| replay(&running, input, frames));
            }
            let running = &running;
            let pulls: Vec<_> = outputs.iter().map(|output| scope.spawn(move || pull_all(running, output))).collect();
            pulls.into_iter().map(|pull| pull.join().expect("a thread that copies frames does not panic")).collect()
        });
        let report = running.wait().map_err(of_run)?;
        let pulled = outputs.iter().zip(pulled).map(|(output, frames)| Ok((output.name(), frames?)));
        let mut pulled: BTreeMap<&str, Vec<Caught>> = pulled.collect::<Result<_, PullError>>().map_err(Error::from)?;
        let frames = taps.iter().map(|(name, at)| (at.clone(), pulled.remove(name.as_str()).unwrap_or_default()));
        Ok(Tried { frames: frames.collect(), plan, report })
    }

    /// The graph of a trial, and the port that each catch captures.
    fn written(&self, trial: &TrialRun<'_>) -> (GraphSpec, Vec<(String, String)>) {
        let kept = trial.up_to.map_or_else(|| (0..self.plan.handlers.len()).collect(), |name| self.up_to(name));
        let transfers = matches!(trial.on, On::Device);
        let mut spec = GraphSpec::new();
        let (mut ids, mut taps) = (BTreeMap::new(), Vec::new());
        for at in &kept {
            let planned = &self.plan.handlers[*at];
            let stand_in = self.stand_in(*at, transfers);
            let same = stand_in.kind == planned.kind();
            ids.insert(*at, (spec.add(stand_in.named(&planned.name)), same));
        }
        // A stand-in of another kind has only one port, and the port's name may differ.
        let end = |at: PortAt| match ids[&at.handler] {
            (id, true) => id.port(at.port),
            (id, false) => LinkEnd::from(id),
        };
        for link in self.plan.links.iter().filter(|link| kept.contains(&link.to.handler)) {
            // No source in a trial is live, so every link without a policy waits. An explicit policy would prevent
            // fusion.
            spec.connect(end(link.from), end(link.to));
            let name = &self.plan.handlers[link.to.handler].name;
            if self.sinks().any(|sink| sink.name == *name) {
                taps.push((name.clone(), format!("{name}.{}", link.to.port)));
            }
        }
        let outputs: BTreeSet<_> = self.plan.links.iter().map(|link| link.from).collect();
        for from in outputs.into_iter().filter(|from| kept.contains(&from.handler)) {
            let name = &self.plan.handlers[from.handler].name;
            let wanted = match trial.taps {
                TappedOutputs::None => false,
                TappedOutputs::All => trial.up_to.is_none_or(|last| last == name),
                TappedOutputs::Of(names) => names.contains(name),
            };
            let feeds = |link: &PlannedLink| link.from == from && kept.contains(&link.to.handler);
            // An output must be linked, even if its consumers are not in this part of the graph.
            if wanted || !self.plan.links.iter().any(feeds) {
                // Default names are a kind followed by a number, so no other handler has this name.
                let name = format!("verify-tap-{}", taps.len());
                let tap = spec.add(app::sink().named(&name));
                spec.connect(end(from), tap);
                taps.push((name, self.plan.port_name(from)));
            }
        }
        (spec, taps)
    }

    /// The handler that takes a planned handler's place in a trial.
    fn stand_in(&self, at: usize, transfers: bool) -> HandlerSpec {
        let planned = &self.plan.handlers[at];
        let content = self.plan.links.iter().find(|link| link.from.handler == at).map(|link| &link.content);
        let Some(handler) = self.handler(&planned.name) else {
            let format = content.and_then(Content::frame).map_or(Format::Rgba8, |frame| frame.format);
            return HandlerSpec::new(planned.kind()).set("format", format);
        };
        if handler.entry.transfer.is_some() && !transfers {
            return HandlerSpec::new(CARRY.name);
        }
        if handler.entry.outputs.is_empty() && (!self.spaces(handler).contains(Space::Cpu) || is_app(handler)) {
            return app::sink();
        }
        // A live source cannot wait, so the speed of the trial would decide which frames arrive.
        if let (true, Some(first)) =
            (handler.entry.live.under(&handler.settings), self.captured.get(&handler.name).and_then(|all| all.first()))
        {
            let rate = content.and_then(Content::rate).or_else(|| Rate::new(30, 1)).expect("30 is a rate");
            return app::source(&first.content, rate);
        }
        let written = self.names.iter().position(|name| *name == planned.name);
        written.map_or_else(|| HandlerSpec::new(planned.kind()), |written| self.spec.handlers()[written].clone())
    }
}

/// Handlers that offer the GPU but do not fit this device. The reasons come from the warnings of a plan for the GPU.
fn kept_off(graph: &Graph, device: &Device) -> Result<BTreeMap<String, String>, VerifyError> {
    let figures = figures(device);
    let plan = Plan::decide(graph, &figures, &RunOptions::new().only(Space::Gpu).fusion(false))?;
    let said =
        |name: &str| plan.warnings.iter().find_map(|words| words.strip_prefix(&format!("{name} stays on the cpu: ")));
    Ok(plan
        .handlers
        .iter()
        .filter_map(|handler| Some((handler.name.clone(), said(&handler.name)?.to_owned())))
        .collect())
}

/// Whether a source reads its frames from outside the process instead of computing the frames.
fn is_read(handler: &Handler) -> bool {
    let kernel = handler.kernel();
    handler.entry.inputs.is_empty() && kernel.is_none_or(|kernel| kernel.kind != KernelKind::Generator)
}

/// Whether the program pushes or pulls the frames of this handler.
fn is_app(handler: &Handler) -> bool {
    handler.entry == &vramp_handlers::source::app::ENTRY || handler.entry == &vramp_handlers::sink::app::ENTRY
}

/// How long an end waits before it checks whether the run is over. A lane that hangs does not close its ends.
const MOMENT: Duration = Duration::from_secs(1);

/// Pushes the captured frames of a source. They have the times of the source's clock.
fn replay(running: &Running, input: &AppInput, frames: &[Caught]) {
    let mut left = frames.iter().peekable();
    while let Some(frame) = left.peek() {
        match frame.lent(input).and_then(|frame| input.send(frame, Wait::For(MOMENT))) {
            Ok(()) => drop(left.next()),
            Err(PushError::Timeout { .. } | PushError::NotStarted { .. }) if !running.is_over() => {}
            // The run has ended early, and its report or its failure tells why.
            Err(_) => break,
        }
    }
    input.close();
}

/// The next frame of a sink; `None` at the end of the stream or of the run.
fn pull(running: &Running, output: &AppOutput) -> Result<Option<PulledFrame>, PullError> {
    loop {
        match output.pull_timeout(MOMENT) {
            Err(PullError::Timeout { .. } | PullError::NotStarted { .. }) if running.is_over() => return Ok(None),
            Err(PullError::Timeout { .. } | PullError::NotStarted { .. }) => {}
            pulled => return pulled,
        }
    }
}

/// Copies of all frames of a sink.
fn pull_all(running: &Running, output: &AppOutput) -> Result<Vec<Caught>, PullError> {
    let mut frames = Vec::new();
    while let Some(frame) = pull(running, output)? {
        frames.push(Caught::of(&frame));
    }
    Ok(frames)
}

/// The failure of a run, told apart from a pipeline that cannot run.
fn of_run(error: Error) -> VerifyError {
    match error {
        Error::Run(error) => VerifyError::Run(error),
        error => VerifyError::Pipeline(error),
    }
}

/// Reads the first frames of a source, limited in number and in bytes, but at least one.
fn read(
    graph: &Graph,
    source: &Handler,
    written: HandlerSpec,
    registry: &Registry,
    (frames, most_bytes): (u64, u64),
) -> Result<Vec<Caught>, VerifyError> {
    if source.entry.outputs.len() > 1 {
        return Err(VerifyError::ManyOutputs { handler: source.name.clone(), outputs: source.entry.outputs.len() });
    }
    if is_app(source) {
        return Err(VerifyError::OfProgram { handler: source.name.clone() });
    }
    let mut spec = GraphSpec::new();
    let (from, to) = (spec.add(written.named(&source.name)), spec.add(app::sink()));
    spec.connect(from, to).policy(Policy::Lossless);
    let alone = Graph::check(&spec, registry.catalog(), &KnownSources { graph, registry })?;
    let options = RunOptions::new().only(Space::Cpu).frames(frames).nominal_time();
    let running = Pipeline::from_graph(alone).registry(registry).options(options).build()?.spawn()?;
    let output = running.output("")?;
    let (mut read, mut left_bytes) = (Vec::new(), most_bytes);
    while let Some(frame) = pull(&running, &output).map_err(Error::from)? {
        let bytes = frame.bytes().len() as u64;
        if bytes > left_bytes && !read.is_empty() {
            output.close();
            running.finish();
            break;
        }
        left_bytes = left_bytes.saturating_sub(bytes);
        read.push(Caught::of(&frame));
    }
    running.wait().map_err(of_run)?;
    if read.is_empty() { Err(VerifyError::NoFrames { handler: source.name.clone() }) } else { Ok(read) }
}
