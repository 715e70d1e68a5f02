//! Replaces the graph of a running pipeline: for a pipeline's file that is edited during the run.
//!
//! [`Controls::apply`] compares a new graph with the current one. If only settings differ that can change during a run,
//! they are set. Otherwise the new graph is planned and its engine is built while the old engine runs; then the run
//! continues with the new engine between two frames. Handlers of whole frames that have the same name, kind, space and
//! settings in both graphs keep their state, and sources of the same name and kind continue their streams.
//!
//! Invariants: a graph that cannot be planned or built disturbs nothing. No frame is lost. Only one replacement is under
//! way at a time.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_plan::catalog::{Liveness, Value};
use vramp_plan::{Graph, Handler, Plan};
use vramp_runtime::engine::Engine;
use vramp_runtime::{PrepareError, Report, RunError, RunEvent, RunOutcome, Stopper, Watch};

use crate::pipeline::BuiltEngine;
use crate::{Change, Error, PipelineBuilder, SetError};

use super::Controls;
use super::follow::{FollowedFile, Follower};

/// What [`Controls::apply`] did.
#[derive(Debug)]
pub enum Applied {
    /// The graph is the current one.
    Nothing,
    /// Only settings differed, and they were set.
    Set(Change),
    /// The run continues with the new graph.
    Replaced,
}

/// Why a new graph was not applied. The run continues as before.
#[derive(thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Set(Box<SetError>),
    #[error(transparent)]
    Graph(Box<Error>),
    #[error("another graph is being put in place; try again")]
    Busy,
    #[error("{handler} hands frames to the program, so the graph stays as it is; stop the run and build it again")]
    HasEnds { handler: String },
    #[error("the graph of a pipeline can be replaced only while it runs on threads (`run`, `spawn`)")]
    NotRunning,
}

vramp_plan::debug_as_display!(ApplyError);

impl From<SetError> for ApplyError {
    fn from(error: SetError) -> ApplyError {
        ApplyError::Set(Box::new(error))
    }
}

impl From<Error> for ApplyError {
    fn from(error: Error) -> ApplyError {
        ApplyError::Graph(Box::new(error))
    }
}

/// The parts of a pipeline that building and starting a successor takes.
#[derive(Clone)]
pub(crate) struct Replacing {
    builder: Arc<PipelineBuilder>,
    plan: Arc<Plan>,
    /// The [`Successor`] that is to continue the run. Its type is hidden from proofs that controls may be shared.
    next: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
    /// What a run on threads publishes; `None` if the pipeline does not run on threads.
    running: Arc<Mutex<Option<(Stopper, Watch)>>>,
}

/// An engine that is built and waits for its predecessor to end.
struct Successor {
    built: BuiltEngine,
    /// Handlers that keep their state.
    same: Vec<String>,
    /// Sources that continue their streams.
    sources: Vec<String>,
}

impl Replacing {
    pub(crate) fn new(builder: &PipelineBuilder, plan: &Plan) -> Replacing {
        Replacing {
            builder: Arc::new(builder.clone()),
            plan: Arc::new(plan.clone()),
            next: Arc::default(),
            running: Arc::default(),
        }
    }
}

impl Controls {
    /// Makes the run continue with this graph, which must have been checked with the registry of the pipeline. Waits
    /// until the new graph is in place.
    pub fn apply(&self, graph: &Graph) -> Result<Applied, ApplyError> {
        let state = self.state();
        let current = state.graph().clone();
        if let Some(changes) = setting_changes(&current, graph) {
            if changes.is_empty() {
                return Ok(Applied::Nothing);
            }
            return Ok(Applied::Set(self.set_all(changes)?));
        }
        self.replace(&current, graph)?;
        Ok(Applied::Replaced)
    }

    fn replace(&self, current: &Graph, graph: &Graph) -> Result<(), ApplyError> {
        let state = self.state();
        let _turn = state.turn();
        let Replacing { builder, plan, next, running } = &state.replacing;
        let (stopper, watch) =
            running.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(ApplyError::NotRunning)?;
        let app = |handler: &&Handler| handler.entry.name == vramp_handlers::source::app::ENTRY.name;
        if let Some(handler) = graph.handlers().iter().chain(current.handlers()).find(app) {
            return Err(ApplyError::HasEnds { handler: handler.name.clone() });
        }
        let (new_plan, mut built) = builder.successor(graph, watch.device(), &stopper)?;
        let is_same_kind = |handler: &&Handler| {
            current.handlers().iter().any(|own| own.name == handler.name && own.entry == handler.entry)
        };
        let space = |plan: &Plan, name: &str| plan.handlers.iter().find(|own| own.name == name).map(|own| own.space);
        let is_same = |handler: &&Handler| {
            let same = |own: &Handler| own.name == handler.name && own.settings == handler.settings;
            current.handlers().iter().any(same) && space(plan, &handler.name) == space(&new_plan, &handler.name)
        };
        let named = |handler: &Handler| handler.name.clone();
        let same_kind = || graph.handlers().iter().filter(is_same_kind);
        let sources = same_kind().filter(|handler| handler.entry.inputs.is_empty()).map(named).collect();
        let same = same_kind().filter(is_same).map(named).collect();
        built.controls.share_run(&state.replacing);
        let successor = Box::new(Successor { built, same, sources });
        *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
        stopper.hand_over();
        self.wait_for(&state, &stopper)
    }

    /// Waits until the successor has taken over or the run has ended.
    fn wait_for(&self, before: &Arc<super::ControlState>, stopper: &Stopper) -> Result<(), ApplyError> {
        const LOOK: Duration = Duration::from_millis(2);
        loop {
            if !Arc::ptr_eq(&self.state(), before) || stopper.is_ending() {
                return Ok(());
            }
            let running = before.replacing.running.lock().unwrap_or_else(PoisonError::into_inner).is_some();
            if !running {
                return Err(ApplyError::NotRunning);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Continues the run state of a predecessor.
    fn share_run(&mut self, before: &Replacing) {
        let state = self.state();
        let replacing = Replacing {
            next: Arc::clone(&before.next),
            running: Arc::clone(&before.running),
            ..state.replacing.clone()
        };
        let own = super::ControlState {
            changing: Mutex::default(),
            graph: Arc::clone(&state.graph),
            planner: state.planner.clone(),
            registry: state.registry.clone(),
            changer: state.changer.clone(),
            listener: state.listener.clone(),
            writes: state.writes,
            replacing,
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(own);
    }
}

/// The settings that differ, if the graphs differ in nothing else and each of them can change during a run.
fn setting_changes(current: &Graph, graph: &Graph) -> Option<Vec<(String, String)>> {
    let same = |one: &Handler, two: &Handler| {
        let rest = |own: &Handler| (own.on_error, own.lead, own.until);
        one.name == two.name && one.entry == two.entry && rest(one) == rest(two)
    };
    let handlers = || current.handlers().iter().zip(graph.handlers());
    let same_graph = current.handlers().len() == graph.handlers().len()
        && handlers().all(|(one, two)| same(one, two))
        && current.links() == graph.links();
    if !same_graph {
        return None;
    }
    let mut changes = Vec::new();
    for (one, two) in handlers() {
        if one.settings.iter().any(|(key, _)| two.settings.get(key).is_none()) {
            return None;
        }
        for (key, value) in two.settings.iter().filter(|(key, value)| one.settings.get(key) != Some(*value)) {
            let is_fixed = one.entry.setting(key).is_some_and(|setting| setting.liveness == Liveness::Fixed);
            if is_fixed {
                return None;
            }
            changes.push((format!("{}.{key}", two.name), Value::to_string(value)));
        }
    }
    Some(changes)
}

/// Runs an engine, and its successors.
pub(crate) fn run(
    mut engine: Engine,
    mut followed: Vec<FollowedFile>,
    controls: &Controls,
    watch: &Watch,
    longest: Option<Duration>,
) -> Result<RunOutcome, PrepareError> {
    let Replacing { next, running, .. } = controls.state().replacing.clone();
    let publish = |run: Option<(Stopper, Watch)>| *running.lock().unwrap_or_else(PoisonError::into_inner) = run;
    publish(Some((engine.stopper(), watch.clone())));
    let mut so_far: Option<Report> = None;
    loop {
        let follower = Follower::begin(followed, controls);
        let ran = engine.run(longest);
        drop(follower);
        let mut outcome = ran.inspect_err(|_| publish(None))?;
        if let Some(before) = so_far.take() {
            outcome.report = before.joined(outcome.report);
        }
        let successor = next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let successor = successor.and_then(|successor| successor.downcast::<Successor>().ok());
        let (Some(mut kept), Some(successor)) = (outcome.kept.take(), successor) else {
            publish(None);
            return Ok(outcome);
        };
        let Successor {
            built: BuiltEngine { engine: mut new, controls: new_controls, followed: files },
            same,
            sources,
        } = *successor;
        new.succeed(&mut kept, &same, &sources);
        if let Err(failure) = kept.stop_rest() {
            outcome.error = Some(RunError::Failed(failure));
            publish(None);
            return Ok(outcome);
        }
        watch.follow(&new.watch());
        let (handlers, frames) = (new_controls.state().graph().handlers().len(), outcome.report.frames_in);
        controls.succeed(&new_controls);
        controls.report(&RunEvent::GraphReplaced { handlers, kept: same.len(), frames });
        so_far = Some(outcome.report);
        (engine, followed) = (new, files);
    }
}
