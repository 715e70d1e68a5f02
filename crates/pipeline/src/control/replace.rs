//! Replaces the graph of a running pipeline: for a pipeline's file that is edited during the run.
//!
//! [`Controls::apply`] compares a new graph with the current one. If only settings differ that can change during a run,
//! they are set. Otherwise the new graph is planned and its engine is built while the old engine runs; then the run
//! continues with the new engine between two frames. Handlers of whole frames that have the same name, kind, space,
//! settings and inputs in both graphs keep their state and the frames that they hold. Sources of the same name and kind
//! continue their streams, and other sources continue the numbers and times. Values that were set before the new graph
//! came are those of the new graph afterwards; values that are set while it is being put in place are set in it too.
//!
//! Invariants: a graph that cannot be planned or built disturbs nothing. No frame is lost. Only one replacement is under
//! way at a time.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_plan::catalog::{Liveness, PathUse, Value, ValueType};
use vramp_plan::{Content, Graph, Handler, Plan, Space};
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
    #[error("{handler} would replace `{path}`, which this run has written; give it another path")]
    Overwrites { handler: String, path: String },
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
    run: ReplacedRun,
}

/// What all graphs of a run share.
#[derive(Clone, Default)]
pub(crate) struct ReplacedRun {
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
    /// The graph with which the successor was compared. What has been set since then is set in the successor too.
    replaces: Graph,
}

impl Replacing {
    pub(crate) fn new(builder: &PipelineBuilder, plan: &Plan, run: ReplacedRun) -> Replacing {
        Replacing { builder: Arc::new(builder.clone()), plan: Arc::new(plan.clone()), run }
    }
}

impl Controls {
    /// Makes the run continue with this graph, which must have been checked with the registry of the pipeline. Waits
    /// until the new graph is in place.
    pub fn apply(&self, graph: &Graph) -> Result<Applied, ApplyError> {
        let current = self.state().graph().clone();
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
        let turn = state.turn();
        let Replacing { builder, plan, run } = &state.replacing;
        let ReplacedRun { next, running } = run;
        let (stopper, watch) =
            running.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(ApplyError::NotRunning)?;
        let app = |handler: &&Handler| handler.entry.name == vramp_handlers::source::app::ENTRY.name;
        if let Some(handler) = graph.handlers().iter().chain(current.handlers()).find(app) {
            return Err(ApplyError::HasEnds { handler: handler.name.clone() });
        }
        if next.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Err(ApplyError::Busy);
        }
        let (new_plan, mut built) = builder.successor(graph, watch.device(), &stopper, run)?;
        let is_same_kind = |handler: &&Handler| {
            current.handlers().iter().any(|own| own.name == handler.name && own.entry == handler.entry)
        };
        let is_same = |handler: &&Handler| {
            let same = |own: &Handler| own.name == handler.name && own.settings == handler.settings;
            current.handlers().iter().any(same) && surroundings(plan, handler) == surroundings(&new_plan, handler)
        };
        let named = |handler: &Handler| handler.name.clone();
        let same_kind = || graph.handlers().iter().filter(is_same_kind);
        let sources = same_kind().filter(|handler| handler.entry.inputs.is_empty()).map(named).collect();
        let same: Vec<String> = same_kind().filter(is_same).map(named).collect();
        refuse_overwriting(current, graph, &same)?;
        // A handler that cannot start, for example for lack of a folder, leaves the run as it is.
        built.engine.start_new(&same).map_err(Error::from)?;
        let successor = Box::new(Successor { built, same, sources, replaces: current.clone() });
        *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
        stopper.hand_over();
        drop(turn);
        self.wait_for(&state, &stopper)
    }

    /// Waits until the successor has taken over or the run has ended.
    fn wait_for(&self, before: &Arc<super::ControlState>, stopper: &Stopper) -> Result<(), ApplyError> {
        const LOOK: Duration = Duration::from_millis(2);
        loop {
            if !Arc::ptr_eq(&self.state(), before) {
                return Ok(());
            }
            let ReplacedRun { next, running } = &before.replacing.run;
            if stopper.is_ending() || running.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
                drop(next.lock().unwrap_or_else(PoisonError::into_inner).take());
                return Err(ApplyError::NotRunning);
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Controls {
    /// From now on, controls the pipeline of other controls, which continues the run at this frame. What was set since
    /// the graph was as in `before` is set there too, unless the new graph has no such setting.
    fn succeed(&self, other: &Controls, before: &Graph, frame: u64) {
        let state = self.state();
        // A change that waits for its turn is made in the new pipeline.
        let turn = state.turn();
        let changes = setting_changes(before, &state.graph()).unwrap_or_default();
        for (name, value) in changes {
            match other.set(&name, value) {
                Ok(_) | Err(SetError::NoHandler { .. } | SetError::NoSetting { .. }) => {}
                Err(problem) => {
                    let handler = name.split('.').next().unwrap_or(&name).to_owned();
                    self.report(&RunEvent::NotChanged { handler, frame, problem: problem.to_string() });
                }
            }
        }
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = other.state();
        drop(turn);
    }
}

/// Where a handler runs, and the content of its inputs.
fn surroundings(plan: &Plan, handler: &Handler) -> Option<(Space, Vec<(&'static str, Content)>)> {
    let at = plan.handlers.iter().position(|own| own.name == handler.name)?;
    let inputs = plan.links.iter().filter(|link| link.to.handler == at);
    Some((plan.handlers[at].space, inputs.map(|link| (link.to.port, link.content.clone())).collect()))
}

/// Refuses a new sink that would write a file which this run has already written.
fn refuse_overwriting(current: &Graph, graph: &Graph, same: &[String]) -> Result<(), ApplyError> {
    let written = |handler: &Handler| {
        let paths = handler.entry.settings.iter().filter(|own| own.value == ValueType::Path(PathUse::Write));
        paths.filter_map(|own| handler.settings.text(own.name).map(str::to_owned)).collect::<Vec<_>>()
    };
    let before: Vec<String> = current.handlers().iter().flat_map(written).collect();
    for handler in graph.handlers().iter().filter(|handler| !same.contains(&handler.name)) {
        if let Some(path) = written(handler).into_iter().find(|path| path != "-" && before.contains(path)) {
            return Err(ApplyError::Overwrites { handler: handler.name.clone(), path });
        }
    }
    Ok(())
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
    let ReplacedRun { next, running } = controls.state().replacing.run.clone();
    let publish = |run: Option<(Stopper, Watch)>| {
        *running.lock().unwrap_or_else(PoisonError::into_inner) = run;
        // A successor that came too late is dropped: it holds controls, which hold this slot.
        drop(next.lock().unwrap_or_else(PoisonError::into_inner).take());
    };
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
            replaces,
        } = *successor;
        let taken = new.succeed(&mut kept, &same, &sources);
        if let Err(failure) = kept.stop_rest(&mut outcome.report) {
            outcome.error = Some(RunError::Failed(failure));
            publish(None);
            return Ok(outcome);
        }
        watch.follow(&new.watch());
        let (handlers, frames) = (new_controls.state().graph().handlers().len(), outcome.report.frames_in);
        controls.succeed(&new_controls, &replaces, frames);
        controls.report(&RunEvent::GraphReplaced { handlers, kept: taken, frames });
        so_far = Some(outcome.report);
        (engine, followed) = (new, files);
    }
}
