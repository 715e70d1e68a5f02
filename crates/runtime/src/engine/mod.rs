//! The engine: a plan with handlers, memory, compiled kernels and threads.
//!
//! `build` turns each unit of the plan into one node (`nodes`), each ring into a link (`wiring`) and each planned lane
//! into a lane of nodes (`lanes`). [`run`](Engine::run) gives every lane a thread; [`Engine::step`] steps all lanes on
//! the caller's thread. The plan has decided on spaces, fusion groups, lanes and depths; an engine decides nothing.
//!
//! **Stop and finish.** [`Stopper::stop`] (Ctrl-C) drops queued frames and counts them as `stopped`.
//! [`Stopper::finish`] (`--seconds`) ends the sources and lets frames in flight arrive. If the run has not failed,
//! `stop` is called on every handler whose stream has ended; a file sink then gives its file the final name. On every
//! other handler `stop_early` is called: a file sink then leaves an older file of that name unchanged and keeps its own
//! file beside the older file (`partial_files` of the report). [`Stopper::end`] (`q` in `vramp top`) also stops at
//! once, but as the intended end of the run: `stop` is called on all handlers.
//!
//! **When sizes change.** A folder of images of mixed sizes is one stream. Frames carry their sizes, kernels read sizes
//! from each frame's parameters, and pools lend memory by size. So nothing is drained: frames of several sizes are in
//! flight at once. When a source whose size was probed sends frames of another size, [`EngineParts::replan`] plans the
//! graph again with every handler pinned where it is, because the handler's state and queued frames are there. Only the
//! feasibility of the new plan matters: if a buffer would be too large for the device, the run ends with that reason
//! and the frame's number; if `mix` receives frames of two sizes, `mix` reports that. The counter `replans` counts how
//! often the graph was planned again. Several sources may change their sizes one after the other, so a join checks the
//! sizes of each frame. Depths and budgets stay as in the first plan; the pools' targets are computed from the largest
//! plan so far. The format of a stream never changes: formats decide which converters exist, and each source has one
//! format. Sinks with one header per stream (`y4m`, `raw`) refuse a second size.
//!
//! Invariants: permanent failures are reported while the engine is built. Every frame is accounted for at the end,
//! however the run ends.

mod account;
pub(crate) mod barrier;
mod build;
#[cfg(not(target_arch = "wasm32"))]
mod changes;
mod error;
mod lanes;
mod nodes;
mod pool_target;
#[cfg(not(target_arch = "wasm32"))]
mod run;
mod snapshot;
mod stopper;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod succession;
mod watch;
mod where_it_ran;
mod wiring;

pub use crate::lane::Reopen;
pub use crate::node::Replan;
use barrier::SourceMark;
pub use barrier::Unrest;
#[cfg(not(target_arch = "wasm32"))]
pub use changes::{AcceptedChange, ChangeError, Changer, HandlerChange};
pub use error::{PrepareError, RunError, RunOutcome};
pub use snapshot::{DeviceSnapshot, LinkSnapshot, MemorySnapshot, NodeSnapshot, Snapshot};
pub use stopper::Stopper;
#[cfg(not(target_arch = "wasm32"))]
pub use succession::Kept;
pub use watch::Watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use vramp_gpu::Device;
use vramp_plan::{Graph, Plan, RunOptions, Variants};

use crate::failure::HandlerFailure;
use crate::handles::Handles;
use crate::lane::context::Listener;
use crate::lane::{Lane, Stepped};
use crate::link::ring::DropReason;
use crate::link::wake_signal::WakeSignal;
use crate::observe::report::Report;
use crate::observe::trace::Trace;
use crate::registry::Registry;
use crate::services::SharedValues;
use crate::waker::Driver;

use watch::WatchedEngine;

/// The inputs of [`Engine::build`].
#[derive(Clone)]
pub struct EngineParts<'a> {
    pub plan: &'a Plan,
    /// The graph that was planned.
    pub graph: &'a Graph,
    pub registry: &'a Registry,
    pub options: &'a RunOptions,
    /// Required if the plan uses a device.
    pub device: Option<Device>,
    /// Opens a device again after a loss. Without this function, the CPU takes over.
    pub reopen: Option<Reopen>,
    /// How kernels are spread over the device.
    pub variants: Variants,
    /// Called when a source's frames change their size.
    pub replan: Option<Replan>,
    /// Receives events while the run continues.
    pub listener: Option<Listener>,
    /// The timeline to record. If there is one, every device submission is timed.
    pub trace: Option<Trace>,
    /// The stopper of the engine that this engine will succeed.
    pub stopper: Option<Stopper>,
    /// What the handlers of the run share. An engine that succeeds another one has the same values.
    pub shared_values: SharedValues,
}

impl<'a> EngineParts<'a> {
    /// The parts of a run on the host, without a trace or a listener.
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
            stopper: None,
            shared_values: SharedValues::default(),
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
    /// After a failure: the reason under which queued frames are dropped.
    failed: Option<DropReason>,
    /// True if the run was stopped because its time limit had passed. Such a stop counts as intended.
    time_is_up: bool,
    signals: Arc<[WakeSignal]>,
    /// The start of the run, if another engine began it.
    begun: Option<Instant>,
    handles: Handles,
    driver: Driver,
    marks: Vec<Arc<SourceMark>>,
    #[cfg(not(target_arch = "wasm32"))]
    changer: Changer,
}

impl Engine {
    /// Makes handlers, compiles kernels and connects everything.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn build(parts: EngineParts<'_>) -> Result<Engine, PrepareError> {
        vramp_gpu::now(Engine::build_async(parts))
    }

    /// [`Engine::build`] for callers that must not block.
    pub async fn build_async(parts: EngineParts<'_>) -> Result<Engine, PrepareError> {
        build::build(parts).await
    }

    /// Number of threads that compute rows on the host.
    pub fn threads(&self) -> usize {
        self.threads
    }

    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Announces that [`Engine::run`] will be called, so that other threads may wait for frames.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn announce_run(&self) {
        self.driver.run_on_threads();
    }

    /// The handles that handlers have published.
    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    pub fn watch(&self) -> Watch {
        Watch::new(&self.watched)
    }

    /// Changes settings while the engine runs.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn changer(&self) -> Changer {
        self.changer.clone()
    }

    /// Starts every handler on the caller's thread, which then steps the engine. Must be called before the first step.
    /// Later calls do nothing.
    pub fn start(&mut self) -> Result<(), HandlerFailure> {
        self.driver.step_here();
        let started = self.lanes.iter_mut().try_for_each(Lane::start);
        if let Err(failure) = &started {
            self.failed = Some(failure.drops());
        }
        started
    }

    /// Lets every lane take one step on the caller's thread. For callers with their own loop, such as the web and
    /// tests. `now` returns the time since the start. Returns [`Stepped::Over`] after a failure or [`Stopper::stop`].
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
        // No lane moved in a whole round, so nodes no longer need to leave memory for other nodes.
        self.watched.pool.press(true);
        let stepped = self.step_once(now);
        let shortage = self.lanes.iter().find_map(Lane::shortage).filter(|_| self.starves(&stepped)).cloned();
        let Some(shortage) = shortage else { return stepped };
        let failure = shortage.failure(&self.watched.pool, self.watched.device_history.current().as_ref());
        self.failed = Some(failure.drops());
        Stepped::Failed(failure)
    }

    /// Whether a lane can move only if memory is returned, and no running work will return any.
    fn starves(&self, stepped: &Stepped) -> bool {
        let waits = matches!(stepped, Stepped::Stuck) && self.lanes.iter().any(|lane| lane.shortage().is_some());
        waits && !self.lanes.iter().any(Lane::is_at_work)
    }

    fn step_once(&mut self, now: &dyn Fn() -> Duration) -> Stepped {
        let (mut moved, mut over, mut wait) = (false, true, None::<Duration>);
        self.watched.look_at_run(now, false);
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

    /// Waits for the device, but no longer than `most`, if only the device can let a lane move. Returns false if no
    /// lane waits for the device. For callers of [`Engine::step`] that are idle.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn wait_for_device(&mut self, most: Duration) -> bool {
        self.lanes.iter_mut().any(|lane| lane.wait_for_device(most))
    }

    /// Stops every handler. Returns the report, and the failure of the first handler that could not be stopped.
    /// `elapsed` is the duration of the run.
    pub fn finish(&mut self, elapsed: Duration) -> (Report, Option<HandlerFailure>) {
        #[cfg(not(target_arch = "wasm32"))]
        self.changer.end();
        self.watched.look_at_run(&|| elapsed, true);
        let reason = self.failed.unwrap_or(DropReason::Stopped);
        let intended = self.failed.is_none() && (self.time_is_up || self.stop.is_intended());
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
        report.ends = self.handles.uses();
        (report, first)
    }
}
