//! [`Pipeline`]: a plan, the device that the plan needs, and the engine that runs the plan.
//!
//! The builder plans and opens the device; this type runs or steps the engine.
//!
//! Invariant: a pipeline owns everything that it needs, so that the pipeline can be moved to another thread.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use vramp_gpu::Device;
use vramp_plan::{Graph, GraphSpec, Plan, RunOptions};
use vramp_runtime::engine::Engine;
use vramp_runtime::{Report, RunOutcome, Stepped};

use super::access::Access;
use super::control::follow::{FollowedFile, Follower};
use super::control::replace;
use super::{Controls, Error, PipelineBuilder, Running};

/// The result of [`Pipeline::step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Work was done, and more may be possible at once.
    Moved,
    /// No frame is due before this time has passed.
    Wait(Duration),
    /// Nothing can run before the device has finished some work ([`Pipeline::wait_for_device`]), or before the program
    /// has pushed or pulled a frame.
    Stuck,
    /// The sources have ended, and all frames have reached the sinks.
    Over,
}

/// A pipeline that is planned and ready to run.
///
/// Call [`Pipeline::finish`] after stepping. A stepped pipeline that is dropped without `finish` leaves its files
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
    pub(super) access: Access,
    /// Files to follow during the run.
    followed: Vec<FollowedFile>,
    follower: Option<Follower>,
    longest: Option<Duration>,
    /// `None` after the run.
    engine: Option<Engine>,
    /// The time of the first step.
    started: Option<Instant>,
}

/// An engine with the handle that changes its settings, and the files to follow.
pub(crate) struct BuiltEngine {
    pub(crate) engine: Engine,
    pub(crate) controls: Controls,
    pub(crate) followed: Vec<FollowedFile>,
}

impl Pipeline {
    /// Begins a pipeline from text, such as `pattern ! blur sigma=2 ! png path=out-%d.png`.
    pub fn parse(text: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder::text(text.into())
    }

    /// Begins a pipeline from TOML.
    pub fn parse_toml(text: impl Into<String>) -> PipelineBuilder {
        PipelineBuilder::toml(text.into())
    }

    /// Begins a pipeline from a graph that was built in Rust with [`Graph::builder`].
    pub fn from_spec(spec: GraphSpec) -> PipelineBuilder {
        PipelineBuilder::spec(spec)
    }

    /// Begins a pipeline from a checked graph. The graph must have been checked with the registry that the builder
    /// uses.
    pub fn from_graph(graph: Graph) -> PipelineBuilder {
        PipelineBuilder::graph(graph)
    }

    pub(super) fn new(
        plan: Plan,
        device: Option<Device>,
        BuiltEngine { engine, controls, followed }: BuiltEngine,
        options: &RunOptions,
    ) -> Pipeline {
        Pipeline {
            access: Access::new(plan, device, &engine, controls),
            followed,
            follower: None,
            longest: options.longest_ms.map(Duration::from_millis),
            engine: Some(engine),
            started: None,
        }
    }

    /// Runs the pipeline on threads of its own.
    ///
    /// ```
    /// use vramp::prelude::*;
    ///
    /// let running = Pipeline::parse("app 2x1 fps=30 ! invert ! app").build()?.spawn()?;
    /// running.push(&[0, 10, 20, 255, 255, 245, 235, 7])?;
    /// let frame = running.pull()?.expect("the stream has not ended");
    /// assert_eq!(frame.bytes()[..], [255, 245, 235, 255, 0, 10, 20, 7]);
    /// running.input("")?.close();
    /// assert_eq!(running.wait()?.frames_out, 1);
    /// # Ok::<(), vramp::Error>(())
    /// ```
    pub fn spawn(mut self) -> Result<Running, Error> {
        let engine = self.unused()?;
        engine.announce_run();
        let (longest, access, followed) = (self.longest, self.access, self.followed);
        let (controls, watch) = (access.controls(), access.watch());
        // Before the thread exists, so that a graph can be applied as soon as this method has returned.
        replace::announce(&controls, &engine, &watch);
        Running::start(access, move || replace::run(engine, followed, &controls, &watch, longest))
    }

    /// Runs until the sources end, a handler fails, the run is stopped, or the time limit in the options is reached. A
    /// stopped run is not an error.
    pub fn run(&mut self) -> Result<Report, Error> {
        Ok(self.outcome()?.into_result()?)
    }

    /// Runs like [`Pipeline::run`], and returns the report even if the run failed.
    pub fn outcome(&mut self) -> Result<RunOutcome, Error> {
        let engine = self.unused()?;
        let followed = std::mem::take(&mut self.followed);
        Ok(replace::run(engine, followed, &self.access.controls(), &self.access.watch(), self.longest)?)
    }

    /// Runs everything that can run now, on the caller's thread. This is for programs with their own loop, such as a
    /// window, a game or a test. The first step starts every handler. After an error or a stop, every step returns
    /// [`Step::Over`]. After [`RunOptions::longest_ms`] the sources end, and steps return [`Step::Over`] once the frames
    /// in flight have arrived.
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
                self.follower = Follower::begin(std::mem::take(&mut self.followed), &self.access.controls());
                started
            }
        };
        if self.longest.is_some_and(|longest| started.elapsed() >= longest) && !self.access.stopper().is_ending() {
            self.access.stopper().finish();
        }
        match engine.step(&|| started.elapsed()) {
            Stepped::Moved => Ok(Step::Moved),
            Stepped::Wait(time) => Ok(Step::Wait(time)),
            Stepped::Stuck => Ok(Step::Stuck),
            Stepped::Over => Ok(Step::Over),
            Stepped::Failed(failure) => Err(failure.into()),
        }
    }

    /// Waits up to 2 ms for the device if the device has work in flight. This is for loops that have nothing else to
    /// do.
    pub fn wait_for_device(&mut self) {
        const MOMENT: Duration = Duration::from_millis(2);
        if let Some(engine) = &mut self.engine
            && !engine.wait_for_device(MOMENT)
        {
            std::thread::yield_now();
        }
    }

    /// Ends a pipeline that was stepped: stops every handler, finishes files, and returns the report. Fails only if a
    /// handler fails to stop; earlier failures were returned by the steps in which they happened.
    pub fn finish(&mut self) -> Result<Report, Error> {
        let mut engine = self.engine.take().ok_or(Error::HasRun)?;
        self.follower = None;
        let elapsed = self.started.map(|started| started.elapsed()).unwrap_or_default();
        match engine.finish(elapsed) {
            (report, None) => Ok(report),
            (_, Some(failure)) => Err(failure.into()),
        }
    }

    /// Returns the engine of a pipeline that has not begun, for callers that step the engine with their own clock.
    pub fn into_engine(mut self) -> Result<Engine, Error> {
        self.unused()
    }

    /// The plan, and the engine of a pipeline that has not begun.
    pub(super) fn into_parts(mut self) -> Result<(Plan, BuiltEngine), Error> {
        let engine = self.unused()?;
        let controls = self.access.controls();
        Ok((self.access.plan, BuiltEngine { engine, controls, followed: self.followed }))
    }

    /// The engine of a pipeline that was neither run nor stepped.
    fn unused(&mut self) -> Result<Engine, Error> {
        if self.engine.is_some() && self.started.is_some() {
            return Err(Error::HasBegun);
        }
        self.engine.take().ok_or(Error::HasRun)
    }
}

impl Deref for Pipeline {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (&self.engine, self.started) {
            (None, _) => "has run",
            (Some(_), None) => "ready",
            (Some(_), Some(_)) => "being stepped",
        };
        let handlers: Vec<_> = self.access.plan.handlers.iter().map(|handler| &handler.name).collect();
        f.debug_struct("Pipeline").field("handlers", &handlers).field("state", &state).finish_non_exhaustive()
    }
}
