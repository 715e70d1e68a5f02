//! The builder of pipelines: from a text or a graph to an engine that is ready to run.
//!
//! The builder reads and checks the graph, chooses the profile, plans, opens the device if the plan needs one, and
//! builds the engine.
//!
//! **Fallback to the CPU.** A device is missing if no adapter exists, if no adapter matches the choice, or if the
//! device cannot be opened. Then everything runs on the CPU and the plan has a warning, unless an option requires a
//! device, the choice names an adapter, or the caller set a profile. After a failure to open, the drivers are queried
//! again, so that the next run does not rely on an outdated list of adapters.
//!
//! **A run does not overwrite its own files.** Each handler's entry declares which settings name files to read or write
//! (`PathUse`). [`FileUse`] finds out whether two of these settings name the same file on the disk. The builder makes
//! this check before it opens a device or writes anything.
//!
//! Invariant: a device is opened only if the plan uses one, and never with [`RunOptions::only`] set to the CPU.

use std::sync::{Arc, Mutex, PoisonError};

use vramp_gpu::{Adapter, Choice, Device, OpenError};
use vramp_handlers::files::{Clash, FileUse};
use vramp_machine::{self as machine, calibrated};
use vramp_plan::catalog::{Entry, EntryError};
use vramp_plan::{
    Graph, GraphSpec, Mistakes, NoPlan, ParsedGraph, Plan, PlannedMemory, Profile, RunOptions, Size, SourceText, Space,
    read_text, read_toml,
};
use vramp_runtime::engine::{Engine, EngineParts, Reopen, Replan};
use vramp_runtime::{HandlerError, IntoWorker, Kind, Listener, Registry, Setup, Stopper, Trace};

use super::control::replace::{ReplacedRun, Replacing};
use super::control::{PinnedPlanner, SharedGraph, follow};
use super::pipeline::BuiltEngine;
use super::{Controls, Error, Pipeline};

/// By default, the device's pool may exceed the planned memory by this many bytes, because small buffers are not known
/// when planning.
const SPARE_BYTES: u64 = 1 << 30;

/// Builder of a [`Pipeline`]. Functions of [`Pipeline`] create a builder, and [`PipelineBuilder::build`] makes the
/// pipeline.
#[derive(Clone)]
pub struct PipelineBuilder {
    graph: GraphInput,
    registry: Registry,
    /// Kinds that were registered on this builder.
    own: Vec<Kind>,
    options: RunOptions,
    profile: Option<Profile>,
    choice: Choice,
    device: Option<Device>,
    /// Opens the device again, if the builder opened it.
    reopen: Option<Reopen>,
    /// The run that the engine is to continue, and its stopper.
    continues: Option<(Stopper, ReplacedRun)>,
    listener: Option<Listener>,
    trace: Option<Trace>,
    writes: bool,
}

#[derive(Clone)]
enum GraphInput {
    Text(String),
    Toml(String),
    Spec(GraphSpec),
    Graph(Box<Graph>),
}

impl PipelineBuilder {
    pub(super) fn text(text: String) -> PipelineBuilder {
        PipelineBuilder::new(GraphInput::Text(text))
    }

    pub(super) fn toml(text: String) -> PipelineBuilder {
        PipelineBuilder::new(GraphInput::Toml(text))
    }

    pub(super) fn spec(spec: GraphSpec) -> PipelineBuilder {
        PipelineBuilder::new(GraphInput::Spec(spec))
    }

    pub(super) fn graph(graph: Graph) -> PipelineBuilder {
        PipelineBuilder::new(GraphInput::Graph(Box::new(graph)))
    }

    fn new(graph: GraphInput) -> PipelineBuilder {
        PipelineBuilder {
            graph,
            registry: vramp_handlers::registry(),
            own: Vec::new(),
            options: RunOptions::default(),
            profile: None,
            choice: machine::choose(),
            device: None,
            reopen: None,
            continues: None,
            listener: None,
            trace: None,
            writes: true,
        }
    }

    /// Adds a handler to the registry: the handler's entry, and the function that makes the handler from a setup.
    #[must_use]
    pub fn register<H: IntoWorker<K>, K>(
        self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.register_kind(Kind::new(entry, make))
    }

    /// Adds a handler with everything that a kind can have, such as a probe of the handler's files.
    #[must_use]
    pub fn register_kind(mut self, kind: Kind) -> Self {
        self.own.push(kind);
        self
    }

    /// Replaces the built-in handlers by this registry. Handlers that are registered on this builder are added to the
    /// registry.
    #[must_use]
    pub fn registry(mut self, registry: &Registry) -> Self {
        self.registry = registry.clone();
        self
    }

    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Plans with this profile instead of this machine's profile.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets how the adapter is chosen; [`machine::choose`] begins a choice.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Uses an open device, with the memory budget that the device was opened with. If the device is lost, the run
    /// continues on the CPU.
    #[must_use]
    pub fn device(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// Sets a function that receives events during the run.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Records the events of the run on this timeline.
    #[must_use]
    pub fn trace(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }

    /// Skips the check of the files that sinks write, for stand-ins that write no files.
    #[doc(hidden)]
    #[must_use]
    pub fn without_sinks(mut self) -> Self {
        self.writes = false;
        self
    }

    /// Reads and checks the graph (names, ports, settings) and probes its sources.
    pub fn check(&self) -> Result<Graph, Error> {
        let registry = self.whole_registry()?;
        let catalog = registry.catalog();
        let (reading, source) = match &self.graph {
            GraphInput::Graph(graph) => return Ok(Graph::clone(graph)),
            GraphInput::Spec(spec) => return Ok(registry.check(spec)?),
            GraphInput::Text(text) => (read_text(text, catalog), SourceText::new("pipeline", text.as_str())),
            GraphInput::Toml(text) => (read_toml(text), SourceText::new("pipeline", text.as_str())),
        };
        let ParsedGraph { spec, mistakes } = reading;
        if !mistakes.is_empty() {
            return Err(Mistakes { source: Some(source), list: mistakes }.into());
        }
        registry.check(&spec).map_err(|error| Error::of_check(error, Some(source)))
    }

    /// The registry together with the kinds that were registered on this builder.
    fn whole_registry(&self) -> Result<Registry, EntryError> {
        let mut registry = self.registry.clone();
        self.own.iter().try_for_each(|kind| registry.add_kind(kind.clone()))?;
        Ok(registry)
    }

    /// Plans without opening a device.
    pub fn plan(&self) -> Result<Plan, Error> {
        Ok(self.decided(&self.check()?)?.1)
    }

    /// Plans, opens the device if the plan uses one, and builds the engine. If no device can be opened, everything runs
    /// on the CPU and the plan has a warning, unless an option requires a device, the choice names an adapter, or the
    /// caller set a profile.
    ///
    /// Fails before opening a device and before writing anything if the run would overwrite a file that the run reads,
    /// or write one file twice.
    pub fn build(&self) -> Result<Pipeline, Error> {
        let graph = self.check()?;
        self.check_files(&graph)?;
        self.built(&graph)
    }

    fn built(&self, graph: &Graph) -> Result<Pipeline, Error> {
        let (profile, plan) = self.decided(graph)?;
        if let Some(device) = &self.device {
            let engine = self.engine(graph, &plan, &profile, Some(device), self.reopen.clone())?;
            return Ok(Pipeline::new(plan, Some(device.clone()), engine, &self.options));
        }
        if !plan.lanes.iter().any(|lane| lane.device) {
            let engine = self.engine(graph, &plan, &profile, None, None)?;
            return Ok(Pipeline::new(plan, None, engine, &self.options));
        }
        // The default budget is higher than the planned memory, as it is for host memory.
        let spare = || plan.memory.gpu_bytes.saturating_add(SPARE_BYTES);
        let choice = self.choice.clone().budget_bytes(self.options.gpu_memory_bytes.unwrap_or_else(spare));
        match choice.open() {
            Ok(device) => {
                let reopen: Reopen = Arc::new(move || choice.open());
                let engine = self.engine(graph, &plan, &profile, Some(&device), Some(reopen))?;
                Ok(Pipeline::new(plan, Some(device), engine, &self.options))
            }
            Err(why) if !self.insists() && self.profile.is_none() => {
                // The list of adapters or the driver was wrong. The next run should begin with a fresh list.
                machine::list_adapters();
                let on_cpu = self.clone().options(self.options.clone().only(Space::Cpu));
                let mut pipeline = on_cpu.built(graph)?;
                pipeline.access.plan.warnings.push(without_device(&why));
                Ok(pipeline)
            }
            Err(why) => Err(why.into()),
        }
    }

    /// The profile to plan with, and a warning if the adapter's readings are doubtful or there is no device. If the
    /// caller set a profile, that profile is used. Otherwise the profile is that of the adapter that would be opened:
    /// its calibration, or the profile of its class if the adapter is not calibrated.
    fn figures(&self) -> Result<(Profile, Option<String>), OpenError> {
        if let Some(profile) = &self.profile {
            return Ok((profile.clone(), None));
        }
        if self.options.only == Some(Space::Cpu) {
            return Ok((calibrated::figures_of(None), None));
        }
        match machine::chosen(&self.choice) {
            Ok(chosen) => {
                let warning = chosen.doubt.map(|doubt| format!("{}: {doubt}", chosen.adapter.name));
                Ok((calibrated::figures_of(Some(&chosen.adapter)), warning))
            }
            Err(why) if self.insists() => Err(why),
            Err(why) => Ok((calibrated::figures_of(None), Some(without_device(&why)))),
        }
    }

    /// Whether an option requires a device or the choice names an adapter. If so, the run does not fall back to the
    /// CPU.
    fn insists(&self) -> bool {
        self.options.needs_device() || self.choice.names_one()
    }

    /// The profile and the plan. If the GPU memory in the profile is too small, plans again with the real size of the
    /// adapter's memory.
    fn decided(&self, graph: &Graph) -> Result<(Profile, Plan), Error> {
        let (mut profile, warning) = self.figures()?;
        let mut decided = Plan::decide(graph, &profile, &self.options);
        let real = || {
            let open: Option<&Adapter> = self.device.as_ref().map(Device::adapter);
            let chosen = open.is_none().then(|| machine::chosen(&self.choice).ok()).flatten();
            let adapter = open.or(chosen.as_ref().map(|chosen| &chosen.adapter))?;
            machine::with_real_memory(profile.clone(), adapter)
        };
        if let Err(NoPlan::Memory { space: Space::Gpu, .. }) = &decided
            && self.profile.is_none()
            && self.options.gpu_memory_bytes.is_none()
            && let Some(real) = real()
        {
            profile = real;
            decided = Plan::decide(graph, &profile, &self.options);
        }
        let mut plan = decided?;
        plan.warnings.extend(warning);
        Ok((profile, plan))
    }

    fn check_files(&self, graph: &Graph) -> Result<(), Clash> {
        if self.writes { FileUse::of(graph).check() } else { Ok(()) }
    }

    fn engine(
        &self,
        graph: &Graph,
        plan: &Plan,
        profile: &Profile,
        device: Option<&Device>,
        reopen: Option<Reopen>,
    ) -> Result<BuiltEngine, Error> {
        let registry = self.whole_registry()?;
        let kept_reopen = reopen.clone();
        // Taken before handlers read their files, so that no change is missed.
        let followed = if self.options.watch { follow::files(graph) } else { Vec::new() };
        let (planner, shared) = (self.pinned(plan, profile), Arc::new(Mutex::new(graph.clone())));
        let run = self.continues.as_ref().map(|(_, run)| run.clone()).unwrap_or_default();
        let engine = Engine::build(EngineParts {
            device: device.cloned(),
            reopen,
            variants: profile.gpu.as_ref().map(|gpu| gpu.variants).unwrap_or_default(),
            replan: Some(replan(planner.clone(), Arc::clone(&shared))),
            listener: self.listener.clone(),
            trace: self.trace.clone(),
            stopper: self.continues.as_ref().map(|(stopper, _)| stopper.clone()),
            shared_values: run.shared_values.clone(),
            ..EngineParts::new(plan, graph, &registry, &self.options)
        })?;
        let (changer, listener) = (engine.changer(), self.listener.clone());
        let replacing = Replacing::new(&PipelineBuilder { reopen: kept_reopen, ..self.clone() }, plan, graph, run);
        let controls = Controls::new(shared, planner, registry, changer, listener, self.writes, replacing);
        Ok(BuiltEngine { engine, controls, followed })
    }

    /// Builds the engine that is to continue a run with another graph, on the device that the run uses.
    pub(crate) fn successor(
        &self,
        graph: &Graph,
        device: Option<Device>,
        stopper: &Stopper,
        run: &ReplacedRun,
    ) -> Result<(Plan, BuiltEngine), Error> {
        self.check_files(graph)?;
        let device = device.or_else(|| self.device.clone());
        let builder = PipelineBuilder { device, continues: Some((stopper.clone(), run.clone())), ..self.clone() };
        let (plan, built) = builder.built(graph)?.into_parts()?;
        Ok((plan, built))
    }

    /// Plans the graph again with every handler where it is, because its state and the waiting frames are there.
    fn pinned(&self, plan: &Plan, profile: &Profile) -> PinnedPlanner {
        let written = plan.handlers.iter().filter(|handler| !handler.inserted);
        let options = RunOptions {
            only: None,
            strict: false,
            threads: None,
            pace: None,
            latency_ms: None,
            in_flight: plan.latency.as_ref().map_or(self.options.in_flight, |need| need.in_flight),
            batch: plan.latency.as_ref().map_or(self.options.batch, |need| need.batch),
            pins: written.map(|handler| (handler.name.clone(), handler.space)).collect(),
            ..self.options.clone()
        };
        PinnedPlanner { profile: profile.clone(), options }
    }
}

/// The function that the engine calls when frames change their size. The function plans the graph with the new size.
/// From the new plan only the planned memory is used, to check that there is room. Handlers take the new size from the
/// frames. Inputs that must have equal sizes may change one after the other, and until all of them have changed no plan
/// is possible. This is not an error, because the handler that joins the inputs checks each frame.
fn replan(planner: PinnedPlanner, graph: SharedGraph) -> Replan {
    Arc::new(move |source: &str, size: Size| {
        let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
        *graph = graph.with_source_size(source, size);
        match planner.decide(&graph) {
            Ok(plan) => Ok(plan.memory),
            Err(NoPlan::Shape { .. } | NoPlan::Conflict(_)) => Ok(PlannedMemory::default()),
            Err(why) => Err(why.to_string()),
        }
    })
}

/// The warning for a run on the CPU that could have used a device.
fn without_device(why: &OpenError) -> String {
    format!("{why}; everything runs on the cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_class_does_not_refuse_what_the_machine_can_hold() {
        let memory_bytes = machine::figures_of(None).cpu.memory_bytes.whole();
        let shipped = Profile::shipped("software").expect("it ships");
        // The delay holds half of the machine's memory, even if the profile's class has less memory.
        let frames = memory_bytes / 2 / (4096 * 2160 * 4);
        let text = format!("pattern size=4096x2160 ! delay {frames} ! null");
        let builder = Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu));
        builder.plan().expect("the machine has the memory");
        if memory_bytes * 2 > shipped.cpu.memory_bytes.whole() * 4 {
            assert!(builder.profile(shipped).plan().is_err(), "figures that were given count as they are");
        }
    }
}
