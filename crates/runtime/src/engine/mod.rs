//! The engine: a plan with memory, compiled kernels and threads.
//!
//! Owns everything that runs: lanes with their nodes, the links between them, the pools, the player.
//! Does not decide: spaces, groups, lanes and depths are the plan's.
//!
//! Always: what can fail for good fails while preparing; every frame is accounted for at the end, however it ends.

mod aim;
mod build;
mod glance;
mod lanes;
mod nodes;
#[cfg(not(target_arch = "wasm32"))]
mod run;
mod tell;
mod wiring;

pub use crate::lane::Reopen;
pub use crate::node::Replan;
pub use glance::{DeviceGlance, Glance, LinkGlance, MemoryGlance, NodeGlance};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_gpu::Device;
use vramp_plan::{Graph, Plan, RunOptions, Variants};

use crate::bell::Bell;
use crate::devices::Devices;
use crate::failure::Failure;
use crate::frame::Frame;
use crate::handler::{DeviceError, HandlerError};
use crate::heap::Tally;
use crate::lane::{Lane, Stepped};
use crate::link::Observed;
use crate::monitor::{Histogram, NodeStats, Progress};
use crate::passed::Passed;
use crate::pool::HostPool;
use crate::registry::Registry;
use crate::report::Report;
use crate::ring::DropReason;
use crate::trace::Trace;
use crate::workplace::Listener;

/// Why a plan could not be made ready to run.
#[derive(thiserror::Error)]
pub enum PrepareError {
    /// A handler exists as a plan only.
    #[error("{handler}: `{what}` can be planned, but it cannot run yet; {instead}")]
    NotBuilt {
        /// Which handler.
        handler: String,
        /// Its kind, with the setting that asks for it where others run.
        what: String,
        /// What does run.
        instead: String,
    },
    /// A handler could not be made from its settings.
    #[error("{handler}: {error}")]
    Make {
        /// Which handler.
        handler: String,
        /// What it said.
        #[source]
        error: HandlerError,
    },
    /// The plan uses a device and there is none.
    #[error("{handler} is planned on the gpu and no device was opened; open one, or plan with the cpu only")]
    NoDevice {
        /// A handler on the device.
        handler: String,
    },
    /// The device would not take the pipeline.
    #[error("{handler}: {error}")]
    Device {
        /// Whose kernel or memory it was about.
        handler: String,
        /// What it said.
        #[source]
        error: DeviceError,
    },
    /// A plan joins handlers into one kernel of which one has none.
    #[error("{handler} is planned as part of a kernel, but works on whole frames; its entry should say so")]
    NotPixels {
        /// Which handler.
        handler: String,
    },
    /// There are no threads to be had.
    #[error("could not start {count} threads: {problem}; ask for fewer with `--threads`")]
    Threads {
        /// How many.
        count: usize,
        /// What the system said.
        problem: String,
    },
}

vramp_plan::debug_as_display!(PrepareError);

impl PrepareError {
    /// The handler that it is about, where it is about one.
    pub fn handler(&self) -> Option<&str> {
        match self {
            PrepareError::NotBuilt { handler, .. }
            | PrepareError::Make { handler, .. }
            | PrepareError::NoDevice { handler }
            | PrepareError::Device { handler, .. }
            | PrepareError::NotPixels { handler } => Some(handler),
            PrepareError::Threads { .. } => None,
        }
    }
}

/// Why a run failed. What it did until then is in the report.
#[derive(thiserror::Error)]
pub enum RunError {
    /// A handler failed, and its policy is to stop the run.
    #[error(transparent)]
    Failed(Failure),
    /// A handler did not come back when the run was to stop.
    #[error("{} did not come back within {waited:?} of being asked to stop; it is left behind", .handlers.join(", "))]
    Unresponsive {
        /// Which handlers.
        handlers: Vec<String>,
        /// How long they were waited for.
        waited: Duration,
    },
}

vramp_plan::debug_as_display!(RunError);

impl RunError {
    /// The handler that failed, where one did.
    pub fn handler(&self) -> Option<&str> {
        match self {
            RunError::Failed(failure) => Some(&failure.handler),
            RunError::Unresponsive { .. } => None,
        }
    }
}

/// How a run ended, and what it did until then.
#[derive(Debug)]
pub struct Outcome {
    /// What it did.
    pub report: Report,
    /// Why it failed, if it did.
    pub error: Option<RunError>,
    /// Whether it was stopped from outside before its sources had ended.
    pub stopped: bool,
}

impl Outcome {
    /// The report of a run that did not fail.
    pub fn into_result(self) -> Result<Report, RunError> {
        match self.error {
            None => Ok(self.report),
            Some(error) => Err(error),
        }
    }
}

/// What an engine is built from.
#[derive(Clone)]
pub struct EngineParts<'a> {
    /// What was decided.
    pub plan: &'a Plan,
    /// The graph that was planned.
    pub graph: &'a Graph,
    /// How its handlers are made.
    pub registry: &'a Registry,
    /// What was asked of the run.
    pub options: &'a RunOptions,
    /// The device, if the plan uses one.
    pub device: Option<Device>,
    /// How the device is opened again when it is lost; without it the cpu takes over.
    pub reopen: Option<Reopen>,
    /// How kernels are spread over the device.
    pub variants: Variants,
    /// Asked when a source's frames change their size.
    pub replan: Option<Replan>,
    /// Told what happens while it happens.
    pub listener: Option<Listener>,
    /// The timeline on which everything is drawn; every submission of the device is timed for it.
    pub trace: Option<Trace>,
}

impl<'a> EngineParts<'a> {
    /// The parts of a run on the host, without anything to observe it.
    pub fn new(plan: &'a Plan, graph: &'a Graph, registry: &'a Registry, options: &'a RunOptions) -> EngineParts<'a> {
        EngineParts {
            plan,
            graph,
            registry,
            options,
            device: None,
            reopen: None,
            variants: Variants::default(),
            replan: None,
            listener: None,
            trace: None,
        }
    }
}

/// A plan that is ready to run: handlers made, kernels compiled, links connected.
pub struct Engine {
    lanes: Vec<Lane>,
    watched: Arc<Watched>,
    stop: Stopper,
    threads: usize,
    listener: Option<Listener>,
    /// Why frames that wait are dropped, where a handler has failed.
    failed: Option<DropReason>,
    /// Whether the time that it was to run was over before it was stopped.
    time_is_up: bool,
}

/// Looks at a pipeline while it runs, from anywhere.
#[derive(Clone)]
pub struct Watch {
    watched: Arc<Watched>,
}

impl Watch {
    /// How far it is, this long after its start.
    pub fn progress(&self, elapsed: Duration) -> Progress {
        self.watched.progress(elapsed)
    }

    /// Everything that its parts have counted, this long after its start.
    pub fn glance(&self, elapsed: Duration) -> Glance {
        self.watched.glance(elapsed)
    }

    /// The device it computes on now; none where that is the cpu.
    pub fn device(&self) -> Option<Device> {
        self.watched.devices.current()
    }
}

/// What can be seen of a pipeline while its lanes are elsewhere.
struct Watched {
    nodes: Vec<WatchedNode>,
    links: Vec<WatchedLink>,
    pool: HostPool,
    devices: Arc<Devices>,
    tally: Arc<Tally>,
    passed: Arc<Passed>,
    begun: crate::passed::Reading,
    counted_before: vramp_gpu::Counters,
    /// What was lent on the device before.
    lent_before: Vec<vramp_gpu::Tag>,
    /// The most that a plan of this graph said.
    planned: Arc<Mutex<vramp_plan::Memory>>,
    trace: Option<Trace>,
    /// Of each segment of the device's lane, its first node and the time of a frame on the device.
    segments: Vec<(Arc<NodeStats>, Arc<Histogram>)>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct WatchedNode {
    names: Vec<String>,
    group: Option<usize>,
    lane: usize,
    place: usize,
    sink: bool,
    source: bool,
    /// Whether it is a ramp that the planner put there: what it holds is on its links.
    inserted: bool,
    /// Whether all its work is the device's.
    on_device: bool,
    stats: Arc<NodeStats>,
}

struct WatchedLink {
    from: String,
    to: String,
    to_node: usize,
    leads: bool,
    /// The planner's own ramp that it crosses.
    ramp: Option<usize>,
    /// The rings that a frame goes through on this link: two where a ramp has one on each side.
    rings: Vec<Observed<Frame>>,
}

/// Stops a pipeline from anywhere.
#[derive(Debug, Clone)]
pub struct Stopper {
    stopped: Arc<AtomicBool>,
    finishing: Arc<AtomicBool>,
    intended: Arc<AtomicBool>,
    bells: Arc<Vec<Bell>>,
}

impl Stopper {
    /// Interrupts the run: what waits is dropped and counted. Files hold the frames so far; one that would replace an
    /// older file is left beside it.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.ring();
    }

    /// Stops everything now as [`Stopper::stop`] does, as the intended end of the run: files are finished as if their
    /// streams had ended.
    pub fn end(&self) {
        self.intended.store(true, Ordering::Release);
        self.stop();
    }

    /// Ends the sources; what is on its way still arrives.
    pub fn finish(&self) {
        self.finishing.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Whether it was stopped, or is to finish.
    pub fn is_ending(&self) -> bool {
        self.is_stopped() || self.finishing.load(Ordering::Acquire)
    }

    fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }
}

impl Engine {
    /// Makes handlers, compiles kernels, connects everything.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build(parts: EngineParts<'_>) -> Result<Engine, PrepareError> {
        vramp_gpu::now(Engine::build_async(parts))
    }

    /// As `build`, for places that may not block.
    pub async fn build_async(parts: EngineParts<'_>) -> Result<Engine, PrepareError> {
        build::build(parts).await
    }

    /// Threads that rows on the host are spread over.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Something that stops it, from this thread or another.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Something that sees how far it is, from this thread or another.
    pub fn watch(&self) -> Watch {
        Watch { watched: Arc::clone(&self.watched) }
    }

    /// Starts every handler; call it before the first step. `run` calls it itself. Later calls do nothing.
    pub fn start(&mut self) -> Result<(), Failure> {
        let started = self.lanes.iter_mut().try_for_each(Lane::start);
        if let Err(failure) = &started {
            self.failed = Some(failure.drops());
        }
        started
    }

    /// Lets every lane take one step, on this thread, for callers with a loop of their own, the web, and tests. `now`
    /// returns the time since the start. After a failure or [`Stopper::stop`] it returns [`Stepped::Over`].
    pub fn step(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        if self.failed.is_some() || self.stop.is_stopped() {
            return Stepped::Over;
        }
        let stepped = self.step_once(now);
        if matches!(stepped, Stepped::Moved) {
            self.watched.pool.press(false);
        }
        if !self.starves(&stepped) {
            return stepped;
        }
        // A whole round in which nobody moved: those who leave memory to others need not any more.
        self.watched.pool.press(true);
        let stepped = self.step_once(now);
        let shortage = self.lanes.iter().find_map(Lane::shortage).filter(|_| self.starves(&stepped)).cloned();
        let Some(shortage) = shortage else { return stepped };
        let failure = shortage.failure(&self.watched.pool, self.watched.devices.current().as_ref());
        self.failed = Some(failure.drops());
        Stepped::Failed(failure)
    }

    /// Whether only memory could make anything move, and nobody is left to give some back.
    fn starves(&self, stepped: &Stepped) -> bool {
        let waits = matches!(stepped, Stepped::Stuck) && self.lanes.iter().any(|lane| lane.shortage().is_some());
        waits && !self.lanes.iter().any(Lane::is_at_work)
    }

    fn step_once(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        let (mut moved, mut over, mut wait) = (false, true, None::<Duration>);
        self.watched.look_at_links(now);
        for lane in &mut self.lanes {
            match lane.step(now) {
                Stepped::Moved => (moved, over) = (true, false),
                Stepped::Stuck => over = false,
                Stepped::Wait(time) => {
                    over = false;
                    wait = Some(wait.map_or(time, |other| other.min(time)));
                }
                Stepped::Over => {}
                Stepped::Failed(failure) => {
                    self.failed = Some(failure.drops());
                    return Stepped::Failed(failure);
                }
            }
        }
        match (moved, over, wait) {
            (true, ..) => Stepped::Moved,
            (_, true, _) => Stepped::Over,
            (_, _, Some(wait)) => Stepped::Wait(wait),
            _ => Stepped::Stuck,
        }
    }

    /// Waits for the device where only that can make something move, at most this long; false where nothing is under way
    /// there. For whoever steps and has nothing else to do.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait_for_device(&mut self, most: Duration) -> bool {
        self.lanes.iter_mut().any(|lane| lane.wait_for_device(most))
    }

    /// Stops every handler and says what the run did in this time. The first handler that could not be stopped comes
    /// with it.
    pub fn finish(&mut self, elapsed: Duration) -> (Report, Option<Failure>) {
        let reason = self.failed.unwrap_or(DropReason::Stopped);
        let intended = self.failed.is_none() && (self.time_is_up || self.stop.intended.load(Ordering::Acquire));
        let (mut first, mut partial) = (None, Vec::new());
        for lane in &mut self.lanes {
            if let Err(failure) = lane.end(reason, intended, &mut partial) {
                first.get_or_insert(failure);
            }
        }
        let imbalance = self.watched.imbalance();
        debug_assert!(imbalance.is_none(), "frames are not accounted for: {imbalance:?}");
        let measured = self.lanes.iter().find_map(Lane::measured);
        let mut report = self.watched.report(elapsed, measured);
        report.partial_files = partial;
        (report, first)
    }
}
