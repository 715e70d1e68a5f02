//! Sessions: from a checked graph to a finished run.
//!
//! Owns the order of things: which profile describes this machine, the plan, the device that it needs, the pipeline.
//! Does not read text and does not print: programs do.
//!
//! Always: a device is opened only where the plan uses one, and never where the cpu was asked for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_gpu::{Adapter, Backend, Choice, Device, LimitSet, OpenError, Prefer};
use vramp_handlers::files::{Clash, FileUse};
use vramp_plan::{Graph, Memory, NoPlan, Plan, Planner, Profile, Rate, Size, Space};
use vramp_runtime::{Kinds, Listener, OnLoss, Outcome, Pipeline, PrepareError, Reopen, Trace};

use crate::{calibrate, machine};

/// The device's pool may hold this much more than planned: small data are not known when planning.
const SPARE_BYTES: u64 = 1 << 30;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It would write over a file that it reads, or write one file twice.
    #[error(transparent)]
    Files(#[from] Clash),
    /// The graph cannot be planned so.
    #[error(transparent)]
    NoPlan(#[from] NoPlan),
    /// The plan needs a device and none could be opened.
    #[error("{0}")]
    NoDevice(#[from] OpenError),
    /// The plan could not be made ready.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
}

/// The wishes for a run of a graph.
///
/// ```
/// use vramp::prelude::*;
///
/// let kinds = vramp::kinds();
/// let spec = vramp::read("pattern size=64x48 frames=3 ! blur ! null", kinds.catalog())?;
/// let graph = Graph::check(&spec, kinds.catalog(), &FileProbe)?;
/// let outcome = Session::of(&graph, &kinds).only(Space::Cpu).prepare()?.run(None)?;
/// assert_eq!(outcome.into_result()?.frames_out, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct Session<'a> {
    graph: &'a Graph,
    kinds: &'a Kinds,
    profile: Option<Profile>,
    only: Option<Space>,
    pins: Vec<(String, Space)>,
    strict: bool,
    fusion: bool,
    threads: Option<usize>,
    in_flight: u32,
    batch: u32,
    pace: Option<Rate>,
    frames: Option<u64>,
    cpu_memory_bytes: Option<u64>,
    gpu_memory_bytes: Option<u64>,
    choice: Choice,
    nominal: bool,
    watch: bool,
    time_limit: Option<Duration>,
    listener: Option<Listener>,
    on_loss: OnLoss,
    away: Option<Duration>,
    lose_at: Vec<u64>,
    trace: Option<Trace>,
    slowed: u32,
    writes: bool,
}

/// A run that is ready.
pub struct Prepared {
    /// What was decided.
    pub plan: Plan,
    /// The device, where the plan uses one.
    pub device: Option<Device>,
    /// What runs.
    pub pipeline: Pipeline,
}

impl Prepared {
    /// Runs to the end of the sources, until a handler fails, until it is stopped, or for this long.
    pub fn run(self, longest: Option<Duration>) -> Result<Outcome, PrepareError> {
        self.pipeline.run(longest)
    }
}

impl<'a> Session<'a> {
    /// A session with everything left to the figures.
    pub fn of(graph: &'a Graph, kinds: &'a Kinds) -> Session<'a> {
        Session {
            graph,
            kinds,
            profile: None,
            only: None,
            pins: Vec::new(),
            strict: false,
            fusion: true,
            threads: None,
            in_flight: 2,
            batch: 1,
            pace: None,
            frames: None,
            cpu_memory_bytes: None,
            gpu_memory_bytes: None,
            choice: machine::choose(),
            nominal: false,
            watch: false,
            time_limit: None,
            listener: None,
            on_loss: OnLoss::default(),
            away: None,
            lose_at: Vec::new(),
            trace: None,
            slowed: 1,
            writes: true,
        }
    }

    /// Plans with these figures instead of this machine's class.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Keeps everything on the cpu, or puts everything on the gpu that can be there.
    #[must_use]
    pub fn only(mut self, space: Space) -> Self {
        self.only = Some(space);
        self
    }

    /// Pins one handler, by name.
    #[must_use]
    pub fn place(mut self, handler: impl Into<String>, space: Space) -> Self {
        self.pins.push((handler.into(), space));
        self
    }

    /// Allows no transfer that is not written in the graph.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Whether neighbouring kernels are joined; they are unless told otherwise.
    #[must_use]
    pub fn fusion(mut self, fusion: bool) -> Self {
        self.fusion = fusion;
        self
    }

    /// Uses this many threads on the host.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// Lets this many submissions be under way on the device.
    #[must_use]
    pub fn in_flight(mut self, frames: u32) -> Self {
        self.in_flight = frames;
        self
    }

    /// Puts this many frames into one submit.
    #[must_use]
    pub fn batch(mut self, frames: u32) -> Self {
        self.batch = frames;
        self
    }

    /// Paces every source.
    #[must_use]
    pub fn pace(mut self, rate: Rate) -> Self {
        self.pace = Some(rate);
        self
    }

    /// Ends every source after this many frames.
    #[must_use]
    pub fn frames(mut self, frames: u64) -> Self {
        self.frames = Some(frames);
        self
    }

    /// Lets the frames of a space take at most this many bytes. A run that would need more waits for memory as long as
    /// that can help, and ends with an error that names who holds it where it cannot. Staging memory for transfers is
    /// no part of it.
    #[must_use]
    pub fn memory_bytes(mut self, space: Space, bytes: u64) -> Self {
        match space {
            Space::Cpu => self.cpu_memory_bytes = Some(bytes),
            Space::Gpu => self.gpu_memory_bytes = Some(bytes),
        }
        self
    }

    /// Talks to the device through this API only.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.choice = self.choice.backend(backend);
        self
    }

    /// Takes the adapter with this in its name.
    #[must_use]
    pub fn device_named(mut self, part: &str) -> Self {
        self.choice = self.choice.named(part);
        self
    }

    /// Takes the adapter at this place of the list.
    #[must_use]
    pub fn device_at(mut self, index: usize) -> Self {
        self.choice = self.choice.index(index);
        self
    }

    /// Takes only an adapter that is made of this; where there is none and nobody insists, the cpu does it all.
    #[must_use]
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.choice = self.choice.prefer(prefer);
        self
    }

    /// Takes only an adapter with at least this much memory, likewise. One whose memory cannot be read will not do.
    #[must_use]
    pub fn min_memory_bytes(mut self, bytes: u64) -> Self {
        self.choice = self.choice.least_memory_bytes(bytes);
        self
    }

    /// Takes only an adapter that is at most this busy now, likewise. One whose load cannot be read will not do.
    #[must_use]
    pub fn max_load_percent(mut self, percent: f32) -> Self {
        self.choice = self.choice.most_load_percent(percent);
        self
    }

    /// Takes the adapter that this choice takes; [`machine::choose`] begins one.
    #[must_use]
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Opens the device with these limits instead of all that it has.
    #[must_use]
    pub fn limits(mut self, limits: LimitSet) -> Self {
        self.choice = self.choice.limits(limits);
        self
    }

    /// Gives frames the times of the plan instead of measured ones, so that a run can be repeated exactly.
    #[must_use]
    pub fn nominal_time(mut self) -> Self {
        self.nominal = true;
        self
    }

    /// Lets handlers follow changes of the files that they are made from, such as shaders.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }

    /// Says how long the device may take for one submission before it counts as hung; 10 s unless told.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Tells somebody what happens while it happens.
    #[must_use]
    pub fn listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Says what happens when the device is lost in the middle of a run; it is opened again unless told.
    #[must_use]
    pub fn on_loss(mut self, rule: OnLoss) -> Self {
        self.on_loss = rule;
        self
    }

    /// How long a device that could not be opened again is left alone before the first attempt to go back to it.
    #[must_use]
    pub fn away(mut self, pause: Duration) -> Self {
        self.away = Some(pause);
        self
    }

    /// Destroys the device when so many frames have come to it, to see what becomes of the run.
    #[must_use]
    pub fn lose_device_at(mut self, frames: &[u64]) -> Self {
        self.lose_at = frames.to_vec();
        self
    }

    /// Draws everything that happens on this timeline.
    #[must_use]
    pub fn trace(mut self, trace: &Trace) -> Self {
        self.trace = Some(trace.clone());
        self
    }

    /// Computes every band of rows on the host this many times: for tests of placement.
    #[doc(hidden)]
    #[must_use]
    pub fn slowed(mut self, times: u32) -> Self {
        self.slowed = times.max(1);
        self
    }

    /// Does not check the files of its sinks, since others stand in for them that write none.
    #[must_use]
    pub(crate) fn without_sinks(mut self) -> Self {
        self.writes = false;
        self
    }

    /// The figures it plans with: those given, those measured on this machine, or those of the class of the adapter that
    /// it would open.
    pub fn figures(&self) -> Result<Profile, OpenError> {
        Ok(self.figures_and_warning()?.0)
    }

    /// With what there is to say about the adapter: why there is none, or what is doubtful in it.
    fn figures_and_warning(&self) -> Result<(Profile, Option<String>), OpenError> {
        if let Some(profile) = &self.profile {
            return Ok((profile.clone(), None));
        }
        if self.only == Some(Space::Cpu) {
            return Ok((calibrate::figures_of(None), None));
        }
        match machine::chosen(&self.choice) {
            Ok(chosen) => {
                let warning = chosen.doubt.map(|doubt| format!("{}: {doubt}", chosen.adapter.name));
                Ok((calibrate::figures_of(Some(&chosen.adapter)), warning))
            }
            Err(why) if self.insists() => Err(why),
            Err(why) => Ok((calibrate::figures_of(None), Some(without_device(&why)))),
        }
    }

    /// Whether a device was asked for, so that doing without it would be wrong.
    fn insists(&self) -> bool {
        self.only == Some(Space::Gpu)
            || self.choice.names_one()
            || self.pins.iter().any(|(_, space)| *space == Space::Gpu)
    }

    /// Decides, without opening a device.
    pub fn plan(&self) -> Result<Plan, SessionError> {
        Ok(self.decided(None)?.1)
    }

    /// The figures and the plan. If a class of devices has too little memory, the adapter's own counts.
    fn decided(&self, adapter: Option<&Adapter>) -> Result<(Profile, Plan), SessionError> {
        let (mut profile, warning) = self.figures_and_warning()?;
        let mut decided = self.planner(self.graph, &profile).decide();
        let real = || {
            let chosen = adapter.is_none().then(|| machine::chosen(&self.choice).ok()).flatten();
            let adapter = adapter.or(chosen.as_ref().map(|chosen| &chosen.adapter))?;
            machine::with_real_memory(profile.clone(), adapter)
        };
        if let Err(NoPlan::Memory { space: Space::Gpu, .. }) = &decided
            && self.profile.is_none()
            && self.gpu_memory_bytes.is_none()
            && let Some(real) = real()
        {
            profile = real;
            decided = self.planner(self.graph, &profile).decide();
        }
        let mut plan = decided?;
        plan.warnings.extend(warning);
        Ok((profile, plan))
    }

    /// Decides, opens the device if the plan uses one, and makes everything ready. Where nobody insists on a device and
    /// it cannot be opened, the cpu does it all, and the plan's warnings say so.
    ///
    /// A run that would write over a file that it reads, or write one file twice, is refused before anything is opened.
    pub fn prepare(&self) -> Result<Prepared, SessionError> {
        self.check_files()?;
        let (profile, plan) = self.decided(None)?;
        if !plan.lanes.iter().any(|lane| lane.device) {
            let pipeline = self.pipeline(&plan, &profile, None, None)?;
            return Ok(Prepared { plan, device: None, pipeline });
        }
        // As on the host: a little more than planned, unless told.
        let most = self.gpu_memory_bytes.unwrap_or_else(|| plan.memory.gpu_bytes.saturating_add(SPARE_BYTES));
        let choice = self.choice.clone().budget_bytes(most);
        match choice.open() {
            Ok(device) => {
                let reopen: Reopen = Arc::new(move || choice.open());
                let pipeline = self.pipeline(&plan, &profile, Some(&device), Some(reopen))?;
                Ok(Prepared { plan, device: Some(device), pipeline })
            }
            Err(why) if !self.insists() && self.profile.is_none() => {
                // What is remembered was wrong, or the driver is: the next run should begin with the truth.
                machine::list_adapters();
                let mut prepared = self.clone().only(Space::Cpu).prepare()?;
                prepared.plan.warnings.push(without_device(&why));
                Ok(prepared)
            }
            Err(why) => Err(why.into()),
        }
    }

    /// Makes a plan that was decided by this session ready, on a device that is open already. What its pool may hold
    /// was said when it was opened. Where it is lost, the cpu goes on: whoever opened it may open another.
    pub fn prepare_on(&self, device: &Device) -> Result<Prepared, SessionError> {
        self.check_files()?;
        let (profile, plan) = self.decided(Some(device.adapter()))?;
        let pipeline = self.pipeline(&plan, &profile, Some(device), None)?;
        Ok(Prepared { plan, device: Some(device.clone()), pipeline })
    }

    fn check_files(&self) -> Result<(), Clash> {
        if self.writes { FileUse::of(self.graph).check() } else { Ok(()) }
    }

    fn pipeline(
        &self,
        plan: &Plan,
        profile: &Profile,
        device: Option<&Device>,
        reopen: Option<Reopen>,
    ) -> Result<Pipeline, PrepareError> {
        let mut pipeline = Pipeline::of(plan, self.graph, self.kinds)
            .in_flight(self.in_flight as usize)
            .batch(self.batch as usize)
            .frames(self.frames)
            .pace(self.pace)
            .slowed(self.slowed)
            .variants(profile.gpu.as_ref().map(|gpu| gpu.variants).unwrap_or_default())
            .replan(self.replan(plan, profile))
            .on_loss(self.on_loss)
            .lose_device_at(&self.lose_at)
            .watch(self.watch);
        if let Some(limit) = self.time_limit {
            pipeline = pipeline.time_limit(limit);
        }
        if let Some(reopen) = reopen {
            pipeline = pipeline.reopen(reopen);
        }
        if let Some(pause) = self.away {
            pipeline = pipeline.away(pause);
        }
        if let Some(threads) = self.threads {
            pipeline = pipeline.threads(threads);
        }
        if let Some(device) = device {
            pipeline = pipeline.device(device.clone());
        }
        if let Some(bytes) = self.cpu_memory_bytes {
            pipeline = pipeline.budget_bytes(bytes);
        }
        if self.nominal {
            pipeline = pipeline.nominal_time();
        }
        if let Some(listener) = &self.listener {
            pipeline = pipeline.listener(Arc::clone(listener));
        }
        if let Some(trace) = &self.trace {
            pipeline = pipeline.trace(trace);
        }
        pipeline.prepare()
    }

    /// What happens when frames change their size: the graph is planned with it, every handler where it is, since its
    /// state and the frames that wait are there. Only whether there is room for such frames matters; frames carry their
    /// own sizes. Inputs that have to be equal may change one after the other: whoever joins them looks at each frame.
    fn replan(&self, plan: &Plan, profile: &Profile) -> vramp_runtime::Replan {
        let (graph, profile) = (Mutex::new(self.graph.clone()), profile.clone());
        let (in_flight, batch, fusion) = (self.in_flight, self.batch, self.fusion);
        let budgets: Vec<(Space, u64)> = self.budgets().collect();
        let places: Vec<(String, Space)> = plan
            .handlers
            .iter()
            .filter(|handler| !handler.inserted)
            .map(|handler| (handler.name.clone(), handler.space))
            .collect();
        Arc::new(move |source: &str, size: Size| {
            let mut graph = graph.lock().unwrap_or_else(PoisonError::into_inner);
            *graph = graph.with_source_size(source, size);
            let planner = Planner::new(&graph, &profile).in_flight(in_flight).batch(batch).fusion(fusion);
            let planner = places.iter().fold(planner, |planner, (name, at)| planner.place(name, *at));
            let planner = budgets.iter().fold(planner, |planner, (space, bytes)| planner.budget(*space, *bytes));
            match planner.decide() {
                Ok(plan) => Ok(plan.memory),
                Err(NoPlan::Shape { .. } | NoPlan::Conflict(_)) => Ok(Memory::default()),
                Err(why) => Err(why.to_string()),
            }
        })
    }

    fn planner<'g>(&self, graph: &'g Graph, profile: &'g Profile) -> Planner<'g> {
        let mut planner = Planner::new(graph, profile)
            .strict(self.strict)
            .fusion(self.fusion)
            .in_flight(self.in_flight)
            .batch(self.batch);
        if let Some(space) = self.only {
            planner = planner.only(space);
        }
        for (name, space) in &self.pins {
            planner = planner.place(name, *space);
        }
        if let Some(threads) = self.threads {
            planner = planner.threads(u32::try_from(threads).unwrap_or(u32::MAX));
        }
        if let Some(pace) = self.pace {
            planner = planner.pace(pace);
        }
        self.budgets().fold(planner, |planner, (space, bytes)| planner.budget(space, bytes))
    }

    fn budgets(&self) -> impl Iterator<Item = (Space, u64)> {
        let each = [(Space::Cpu, self.cpu_memory_bytes), (Space::Gpu, self.gpu_memory_bytes)];
        each.into_iter().filter_map(|(space, bytes)| Some((space, bytes?)))
    }
}

/// What is said where a device would have been welcome.
fn without_device(why: &OpenError) -> String {
    format!("{why}; everything runs on the cpu")
}
