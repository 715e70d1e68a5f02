//! The engine: a plan with memory, compiled kernels and threads.
//!
//! Owns everything that runs: lanes with their nodes, the links between them, the pools, the player.
//! Does not decide: spaces, groups, lanes and depths are the plan's.
//!
//! Always: what can fail for good fails while preparing; every frame is accounted for at the end, however it ends.

mod account;
mod build;
mod error;
mod lanes;
mod nodes;
mod pool_target;
#[cfg(not(target_arch = "wasm32"))]
mod run;
mod snapshot;
mod stopper;
mod watch;
mod wiring;

pub use crate::lane::Reopen;
pub use crate::node::Replan;
pub use error::{PrepareError, RunError, RunOutcome};
pub use snapshot::{DeviceSnapshot, LinkSnapshot, MemorySnapshot, NodeSnapshot, Snapshot};
pub use stopper::Stopper;
pub use watch::Watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use vramp_gpu::Device;
use vramp_plan::{Graph, Plan, RunOptions, Variants};

use crate::failure::HandlerFailure;
use crate::lane::context::Listener;
use crate::lane::{Lane, Stepped};
use crate::link::ring::DropReason;
use crate::observe::report::Report;
use crate::observe::trace::Trace;
use crate::registry::Registry;

use watch::WatchedEngine;

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
    watched: Arc<WatchedEngine>,
    stop: Stopper,
    threads: usize,
    listener: Option<Listener>,
    /// Why frames that wait are dropped, where a handler has failed.
    failed: Option<DropReason>,
    /// Whether the time that it was to run was over before it was stopped.
    time_is_up: bool,
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
    pub fn start(&mut self) -> Result<(), HandlerFailure> {
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
        let failure = shortage.failure(&self.watched.pool, self.watched.device_history.current().as_ref());
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
    pub fn finish(&mut self, elapsed: Duration) -> (Report, Option<HandlerFailure>) {
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
