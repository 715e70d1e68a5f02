//! Pipelines: from a text or a graph to a finished run, in three calls.
//!
//! Owns the value that programs hold: a plan, the device that it needs, and the engine that runs it.
//! Does not decide or compute: the builder asks the planner, the engine runs.
//!
//! Invariants: a pipeline owns everything it needs, so that it can be moved to a thread; a device is opened only if the
//! plan uses one.

use std::fmt;
use std::time::{Duration, Instant};

use vramp_gpu::Device;
use vramp_plan::{Graph, GraphSpec, Plan, RunOptions};
use vramp_runtime::engine::Engine;
use vramp_runtime::{Report, RunOutcome, Stepped, Stopper, Watch};

use super::{Error, PipelineBuilder};

/// What a step of a pipeline came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Something was done; more can be done at once.
    Moved,
    /// Nothing can be done before this time has passed: no frame is due.
    Wait(Duration),
    /// Nothing can be done before the device has finished something.
    Stuck,
    /// The sources have ended, and all frames have arrived.
    Over,
}

/// A pipeline that is planned and ready to run.
///
/// Call [`Pipeline::finish`] after stepping: a pipeline that is dropped without it leaves the files it was writing
/// unfinished.
///
/// ```
/// use vramp::prelude::*;
///
/// let mut pipeline = Pipeline::parse("pattern size=64x48 frames=3 ! blur ! null")
///     .options(RunOptions::new().only(Space::Cpu))
///     .build()?;
/// println!("{}", pipeline.plan());
/// assert_eq!(pipeline.run()?.frames_out, 3);
/// # Ok::<(), vramp::Error>(())
/// ```
pub struct Pipeline {
    pub(super) plan: Plan,
    device: Option<Device>,
    stopper: Stopper,
    watch: Watch,
    threads: usize,
    longest: Option<Duration>,
    /// None once it has run.
    engine: Option<Engine>,
    /// When it was stepped first.
    started: Option<Instant>,
}

impl Pipeline {
    /// A pipeline in text form, such as `pattern ! blur sigma=2 ! png path=out-%d.png`.
    pub fn parse(text: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder::text(text.into())
    }

    /// A pipeline in TOML form.
    pub fn parse_toml(text: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder::toml(text.into())
    }

    /// A graph that was built in Rust with [`Graph::builder`].
    pub fn from_spec(spec: GraphSpec) -> PipelineBuilder {
        PipelineBuilder::spec(spec)
    }

    /// A graph that was checked before, against the registry that the builder is given.
    pub fn from_graph(graph: Graph) -> PipelineBuilder {
        PipelineBuilder::graph(graph)
    }

    pub(super) fn new(plan: Plan, device: Option<Device>, engine: Engine, options: &RunOptions) -> Pipeline {
        Pipeline {
            plan,
            device,
            stopper: engine.stopper(),
            watch: engine.watch(),
            threads: engine.threads(),
            longest: options.longest_ms.map(Duration::from_millis),
            engine: Some(engine),
            started: None,
        }
    }

    /// What was decided: where everything runs, what is fused and transferred, and what that costs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device, if the plan uses one.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Threads that rows on the host are spread over.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Stops the run, from this thread or another.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Looks at the run while it goes on, from this thread or another.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Runs to the end of its sources, until a handler fails, until it is stopped, or as long as its options say. A run
    /// that was stopped is not an error.
    pub fn run(&mut self) -> Result<Report, Error> {
        Ok(self.outcome()?.into_result()?)
    }

    /// Runs like [`Pipeline::run`], and returns the report however the run ended.
    pub fn outcome(&mut self) -> Result<RunOutcome, Error> {
        Ok(self.unused()?.run(self.longest)?)
    }

    /// Does what can be done now, on this thread, for programs with a loop of their own: a window, a game, a test. The
    /// first step starts every handler. After an error or [`Stopper::stop`], every step returns [`Step::Over`]. After
    /// [`RunOptions::longest_ms`] the sources end, and steps return [`Step::Over`] once the frames in flight have arrived.
    ///
    /// ```
    /// use vramp::prelude::*;
    ///
    /// let mut pipeline = Pipeline::parse("pattern size=64x48 frames=3 ! blur ! null").build()?;
    /// loop {
    ///     match pipeline.step()? {
    ///         Step::Moved => {}
    ///         Step::Wait(time) => std::thread::sleep(time),
    ///         Step::Stuck => pipeline.wait_for_device(),
    ///         Step::Over => break,
    ///     }
    /// }
    /// assert_eq!(pipeline.finish()?.frames_out, 3);
    /// # Ok::<(), vramp::Error>(())
    /// ```
    pub fn step(&mut self) -> Result<Step, Error> {
        let engine = self.engine.as_mut().ok_or(Error::HasRun)?;
        let started = match self.started {
            Some(started) => started,
            None => {
                let started = *self.started.insert(Instant::now());
                engine.start()?;
                started
            }
        };
        if self.longest.is_some_and(|longest| started.elapsed() >= longest) && !self.stopper.is_ending() {
            self.stopper.finish();
        }
        match engine.step(&|| started.elapsed()) {
            Stepped::Moved => Ok(Step::Moved),
            Stepped::Wait(time) => Ok(Step::Wait(time)),
            Stepped::Stuck => Ok(Step::Stuck),
            Stepped::Over => Ok(Step::Over),
            Stepped::Failed(failure) => Err(failure.into()),
        }
    }

    /// Waits a moment for the device, if something is under way there: for loops that have nothing else to do.
    pub fn wait_for_device(&mut self) {
        const MOMENT: Duration = Duration::from_millis(2);
        if let Some(engine) = &mut self.engine
            && !engine.wait_for_device(MOMENT)
        {
            std::thread::yield_now();
        }
    }

    /// Ends a pipeline that was stepped: stops every handler, finishes files, and returns the report. The only error is a
    /// handler that fails to stop: an earlier failure was returned by its step.
    pub fn finish(&mut self) -> Result<Report, Error> {
        let mut engine = self.engine.take().ok_or(Error::HasRun)?;
        let elapsed = self.started.map(|started| started.elapsed()).unwrap_or_default();
        match engine.finish(elapsed) {
            (report, None) => Ok(report),
            (_, Some(failure)) => Err(failure.into()),
        }
    }

    /// The engine itself, for callers with a clock of their own.
    pub fn into_engine(mut self) -> Result<Engine, Error> {
        self.unused()
    }

    /// The engine of a pipeline that was neither run nor stepped.
    fn unused(&mut self) -> Result<Engine, Error> {
        if self.engine.is_some() && self.started.is_some() {
            return Err(Error::HasBegun);
        }
        self.engine.take().ok_or(Error::HasRun)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (&self.engine, self.started) {
            (None, _) => "has run",
            (Some(_), None) => "ready",
            (Some(_), Some(_)) => "being stepped",
        };
        let handlers: Vec<_> = self.plan.handlers.iter().map(|handler| &handler.name).collect();
        f.debug_struct("Pipeline").field("handlers", &handlers).field("state", &state).finish_non_exhaustive()
    }
}
