//! Building pipelines: the order of things from a text to an engine that is ready.
//!
//! Owns which figures describe this machine, the plan, the device that it needs, and the engine.
//! Does not print: programs do.
//!
//! Invariants: a device is opened only if the plan uses one, and never if only the cpu was asked for.

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
use vramp_runtime::{HandlerError, IntoWorker, Kind, Listener, Registry, Setup, Trace};

use super::{Error, Pipeline};

/// The device's pool may hold this much more than planned: small data are not known when planning.
const SPARE_BYTES: u64 = 1 << 30;

/// What a pipeline is built from; [`PipelineBuilder::build`] ends it. [`Pipeline`] has the functions that begin one.
#[derive(Clone)]
pub struct PipelineBuilder {
    graph: GraphInput,
    registry: Registry,
    /// Kinds to add to the registry.
    own: Vec<Kind>,
    options: RunOptions,
    profile: Option<Profile>,
    choice: Choice,
    device: Option<Device>,
    listener: Option<Listener>,
    trace: Option<Trace>,
    writes: bool,
}

/// What was given as the graph.
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
            listener: None,
            trace: None,
            writes: true,
        }
    }

    /// Adds a handler of one's own to the built-in ones: its entry, and the function that makes one from its setup.
    #[must_use]
    pub fn register<H: IntoWorker<K>, K>(
        self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Self {
        self.register_kind(Kind::new(entry, make))
    }

    /// Adds a handler of one's own, with everything that is known about it, such as how its files are probed.
    #[must_use]
    pub fn register_kind(mut self, kind: Kind) -> Self {
        self.own.push(kind);
        self
    }

    /// Uses these handlers instead of the built-in ones. Handlers registered on this builder are added to them.
    #[must_use]
    pub fn registry(mut self, registry: &Registry) -> Self {
        self.registry = registry.clone();
        self
    }

    /// Sets what is asked of the run.
    #[must_use]
    pub fn options(mut self, options: RunOptions) -> Self {
        self.options = options;
        self
    }

    /// Plans with these figures instead of this machine's.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Takes the adapter that this choice takes; [`machine::choose`] begins one.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Uses a device that is open already. What its pool may hold was set when it was opened; if it is lost, the cpu
    /// takes over.
    #[must_use]
    pub fn device(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// Tells this function what happens while it happens.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Draws everything that happens on this timeline.
    #[must_use]
    pub fn trace(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }

    /// Does not check the files of its sinks, since others stand in for them that write none.
    #[doc(hidden)]
    #[must_use]
    pub fn without_sinks(mut self) -> Self {
        self.writes = false;
        self
    }

    /// Reads and checks the graph: names, ports and settings, and what its sources hold.
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

    /// The registry with the kinds that were registered here.
    fn whole_registry(&self) -> Result<Registry, EntryError> {
        let mut registry = self.registry.clone();
        self.own.iter().try_for_each(|kind| registry.add_kind(kind.clone()))?;
        Ok(registry)
    }

    /// Decides, without opening a device.
    pub fn plan(&self) -> Result<Plan, Error> {
        Ok(self.decided(&self.check()?)?.1)
    }

    /// Decides, opens the device if the plan uses one, and makes everything ready. If a device is not insisted on and
    /// cannot be opened, everything runs on the cpu, and the plan's warnings say so.
    ///
    /// A run that would write over a file that it reads, or write one file twice, is refused before a device is opened and
    /// before anything is written.
    pub fn build(&self) -> Result<Pipeline, Error> {
        let graph = self.check()?;
        self.check_files(&graph)?;
        self.built(&graph)
    }

    fn built(&self, graph: &Graph) -> Result<Pipeline, Error> {
        let (profile, plan) = self.decided(graph)?;
        if let Some(device) = &self.device {
            let engine = self.engine(graph, &plan, &profile, Some(device), None)?;
            return Ok(Pipeline::new(plan, Some(device.clone()), engine, &self.options));
        }
        if !plan.lanes.iter().any(|lane| lane.device) {
            let engine = self.engine(graph, &plan, &profile, None, None)?;
            return Ok(Pipeline::new(plan, None, engine, &self.options));
        }
        // As on the host: a little more than planned by default.
        let spare = || plan.memory.gpu_bytes.saturating_add(SPARE_BYTES);
        let choice = self.choice.clone().budget_bytes(self.options.gpu_memory_bytes.unwrap_or_else(spare));
        match choice.open() {
            Ok(device) => {
                let reopen: Reopen = Arc::new(move || choice.open());
                let engine = self.engine(graph, &plan, &profile, Some(&device), Some(reopen))?;
                Ok(Pipeline::new(plan, Some(device), engine, &self.options))
            }
            Err(why) if !self.insists() && self.profile.is_none() => {
                // What is remembered was wrong, or the driver is: the next run should begin with the truth.
                machine::list_adapters();
                let on_cpu = self.clone().options(self.options.clone().only(Space::Cpu));
                let mut pipeline = on_cpu.built(graph)?;
                pipeline.plan.warnings.push(without_device(&why));
                Ok(pipeline)
            }
            Err(why) => Err(why.into()),
        }
    }

    /// The figures to plan with (those given, those measured on this machine, or those of the class of the adapter that
    /// would be opened), and what there is to say about the adapter.
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

    /// Whether a device was asked for, so that doing without it would be wrong.
    fn insists(&self) -> bool {
        self.options.needs_device() || self.choice.names_one()
    }

    /// The figures and the plan. If a class of devices has too little memory, the adapter's own counts.
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
    ) -> Result<Engine, Error> {
        let registry = self.whole_registry()?;
        Ok(Engine::build(EngineParts {
            device: device.cloned(),
            reopen,
            variants: profile.gpu.as_ref().map(|gpu| gpu.variants).unwrap_or_default(),
            replan: Some(self.replan(graph, plan, profile)),
            listener: self.listener.clone(),
            trace: self.trace.clone(),
            ..EngineParts::new(plan, graph, &registry, &self.options)
        })?)
    }

    /// What happens when frames change their size: the graph is planned with it, every handler where it is, since its
    /// state and the frames that wait are there. Only whether there is room for such frames matters; frames carry their
    /// own sizes. Inputs that have to be equal may change one after the other: the handler that joins them looks at each
    /// frame.
    fn replan(&self, graph: &Graph, plan: &Plan, profile: &Profile) -> Replan {
        let (graph, profile) = (Mutex::new(graph.clone()), profile.clone());
        let written = plan.handlers.iter().filter(|handler| !handler.inserted);
        let options = RunOptions {
            only: None,
            strict: false,
            threads: None,
            pace: None,
            pins: written.map(|handler| (handler.name.clone(), handler.space)).collect(),
            ..self.options.clone()
        };
        Arc::new(move |source: &str, size: Size| {
            let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
            *graph = graph.with_source_size(source, size);
            match Plan::decide(&graph, &profile, &options) {
                Ok(plan) => Ok(plan.memory),
                Err(NoPlan::Shape { .. } | NoPlan::Conflict(_)) => Ok(PlannedMemory::default()),
                Err(why) => Err(why.to_string()),
            }
        })
    }
}

/// What is said if a device would have been welcome.
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
        // Half of the memory in one delay, whatever the class says.
        let frames = memory_bytes / 2 / (4096 * 2160 * 4);
        let text = format!("pattern size=4096x2160 ! delay {frames} ! null");
        let builder = Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu));
        builder.plan().expect("the machine has the memory");
        if memory_bytes * 2 > shipped.cpu.memory_bytes.whole() * 4 {
            assert!(builder.profile(shipped).plan().is_err(), "figures that were given count as they are");
        }
    }
}
