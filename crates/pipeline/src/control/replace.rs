//! Replaces the graph of a running pipeline: for a pipeline's file that is edited during the run.
//!
//! [`Controls::apply`] compares a new graph with the graph that was applied last. Settings that are the same in both keep
//! the values that were set during the run. If only settings differ that can change during a run, they are set.
//! Otherwise the new graph is planned and its engine is built while the old engine runs; then the run continues with the
//! new engine between two frames. Handlers of whole frames that have the same name, kind, space, settings and inputs in
//! both graphs keep their state and the frames that they hold, and so do links. Sources of the same name and kind
//! continue their streams, and other sources continue the numbers and times; a setting such as `frames` of `pattern`
//! counts from the first frame of the run.
//!
//! Invariants: a graph that cannot be planned or built disturbs nothing, and neither does a graph whose turn does not
//! come because a source waits for its input. No frame is lost, except what a delay that leaves the graph holds. Only one
//! change of settings or of the graph is under way at a time.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vramp_handlers::files::WrittenFiles;
use vramp_plan::catalog::{Liveness, Value};
use vramp_plan::{Content, Graph, Handler, Plan, Space};
use vramp_runtime::engine::{Engine, Unrest};
use vramp_runtime::{PrepareError, Report, RunError, RunEvent, RunOutcome, SharedValues, Stopper, Watch};

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
    #[error("{handler} waits for its input, so the graph cannot be replaced now; save again when frames come")]
    Waits { handler: String },
    #[error("frames in flight did not arrive in time, so the graph cannot be replaced now; save again later")]
    Unsettled,
    #[error("the run is ending")]
    Ending,
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
    pub(super) plan: Arc<Plan>,
    run: ReplacedRun,
}

/// What all graphs of a run share.
#[derive(Clone, Default)]
pub(crate) struct ReplacedRun {
    /// The graph as it was applied last, without the values that were set since then.
    applied: Arc<Mutex<Option<Graph>>>,
    /// The files that sinks of all graphs have written.
    written: Arc<Mutex<WrittenFiles>>,
    /// The [`Successor`] that is to continue the run. Its type is hidden from proofs that controls may be shared.
    next: Arc<Mutex<Option<Box<dyn Any + Send>>>>,
    /// What a run on threads publishes; `None` if the pipeline does not run on threads.
    running: Arc<Mutex<Option<(Stopper, Watch)>>>,
    pub(crate) shared_values: SharedValues,
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
    pub(crate) fn new(builder: &PipelineBuilder, plan: &Plan, graph: &Graph, run: ReplacedRun) -> Replacing {
        run.applied().get_or_insert_with(|| graph.clone());
        Replacing { builder: Arc::new(builder.clone()), plan: Arc::new(plan.clone()), run }
    }
}

impl Controls {
    /// Makes the run continue with this graph, which must have been checked with the registry of the pipeline. Waits
    /// until the new graph is in place.
    pub fn apply(&self, graph: &Graph) -> Result<Applied, ApplyError> {
        let state = self.state();
        let current = state.graph().clone();
        let applied = state.replacing.run.applied().clone();
        let wanted = with_set_values(graph, applied.as_ref().unwrap_or(&current), &current);
        let outcome = match setting_changes(&current, &wanted) {
            Some(changes) if changes.is_empty() => Applied::Nothing,
            Some(changes) => Applied::Set(self.set_all(changes)?),
            None => {
                self.replace(graph)?;
                Applied::Replaced
            }
        };
        *state.replacing.run.applied() = Some(graph.clone());
        Ok(outcome)
    }

    fn replace(&self, graph: &Graph) -> Result<(), ApplyError> {
        self.at_turn(|state| {
            let Replacing { builder, plan, run } = &state.replacing;
            let running = run.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (stopper, watch) = running.ok_or(ApplyError::NotRunning)?;
            let current = state.graph().clone();
            let graph = with_set_values(graph, run.applied().as_ref().unwrap_or(&current), &current);
            let app = |handler: &&Handler| handler.entry.name == vramp_handlers::source::app::ENTRY.name;
            if let Some(handler) = graph.handlers().iter().chain(current.handlers()).find(app) {
                return Err(ApplyError::HasEnds { handler: handler.name.clone() });
            }
            let (new_plan, mut built) = builder.successor(&graph, watch.device(), &stopper, run)?;
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
            run.refuse_overwriting(&current, &graph, &same)?;
            // A handler that cannot start, for example for lack of a folder, leaves the run as it is.
            built.engine.start_new(&same).map_err(Error::from)?;
            *run.next() = Some(Box::new(Successor { built, same, sources }));
            stopper.hand_over();
            self.wait_for(state, &stopper)
        })
    }

    /// Waits until the successor has taken over, the engine has given up, or the run has ended.
    fn wait_for(&self, before: &Arc<super::ControlState>, stopper: &Stopper) -> Result<(), ApplyError> {
        const LOOK: Duration = Duration::from_millis(2);
        let run = &before.replacing.run;
        loop {
            if !Arc::ptr_eq(&self.state(), before) {
                return Ok(());
            }
            if let Some(why) = stopper.gave_up() {
                drop(run.next().take());
                return Err(match why {
                    Unrest::Source(handler) => ApplyError::Waits { handler },
                    Unrest::Frames => ApplyError::Unsettled,
                });
            }
            if run.running.lock().unwrap_or_else(PoisonError::into_inner).is_none() {
                return Err(ApplyError::Ending);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// From now on, controls the pipeline of other controls, which continues the run.
    fn succeed(&self, other: &Controls) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = other.state();
    }
}

impl ReplacedRun {
    fn applied(&self) -> MutexGuard<'_, Option<Graph>> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a new sink that would write a file which this run has already written.
    fn refuse_overwriting(&self, current: &Graph, graph: &Graph, same: &[String]) -> Result<(), ApplyError> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.add(current);
        for handler in graph.handlers().iter().filter(|handler| !same.contains(&handler.name)) {
            if let Some(path) = written.would_lose(handler) {
                return Err(ApplyError::Overwrites { handler: handler.name.clone(), path });
            }
        }
        Ok(())
    }
}

/// The graph with the values that were set during the run, for settings that are the same in this graph as in the graph
/// that was applied last.
fn with_set_values(graph: &Graph, applied: &Graph, current: &Graph) -> Graph {
    let mut merged = graph.clone();
    for handler in graph.handlers() {
        let is_it = |own: &&Handler| own.name == handler.name && own.entry == handler.entry;
        let (Some(before), Some(now)) = (applied.handlers().iter().find(is_it), current.handlers().iter().find(is_it))
        else {
            continue;
        };
        // With another shader, values of the old shader's settings may mean something else.
        let shader = |own: &Handler| ["path", "code"].map(|key| own.settings.get(key).cloned());
        if handler.declared.is_some() && shader(handler) != shader(before) {
            continue;
        }
        let is_fixed = |key: &str| handler.entry.setting(key).is_some_and(|own| own.liveness == Liveness::Fixed);
        let mut own = handler.clone();
        for (key, value) in now.settings.iter().filter(|(key, _)| !is_fixed(key)) {
            if handler.settings.get(key) == before.settings.get(key) && handler.settings.get(key) != Some(value) {
                own.settings.set(key, value.clone());
            }
        }
        own.declared.clone_from(&now.declared);
        merged = merged.with_handler(own);
    }
    merged
}

/// Where a handler runs, and the content of its inputs.
fn surroundings(plan: &Plan, handler: &Handler) -> Option<(Space, Vec<(&'static str, Content)>)> {
    let at = plan.handlers.iter().position(|own| own.name == handler.name)?;
    let inputs = plan.links.iter().filter(|link| link.to.handler == at);
    Some((plan.handlers[at].space, inputs.map(|link| (link.to.port, link.content.clone())).collect()))
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

/// Announces that [`run`] will be called, so that other threads can apply a graph.
pub(crate) fn announce(controls: &Controls, engine: &Engine, watch: &Watch) {
    let run = controls.state().replacing.run.clone();
    *run.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((engine.stopper(), watch.clone()));
}

/// Runs an engine, and its successors.
pub(crate) fn run(
    mut engine: Engine,
    mut followed: Vec<FollowedFile>,
    controls: &Controls,
    watch: &Watch,
    longest: Option<Duration>,
) -> Result<RunOutcome, PrepareError> {
    let run = controls.state().replacing.run.clone();
    let end = || {
        // A successor that came too late is dropped: it holds controls, which hold this slot.
        drop(run.next().take());
        *run.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    };
    announce(controls, &engine, watch);
    let mut so_far: Option<Report> = None;
    loop {
        let follower = Follower::begin(followed, controls);
        let ran = engine.run(longest);
        drop(follower);
        let mut outcome = ran.inspect_err(|_| end())?;
        if let Some(before) = so_far.take() {
            outcome.report = before.joined(outcome.report);
        }
        let successor = run.next().take();
        let successor = successor.and_then(|successor| successor.downcast::<Successor>().ok());
        let (Some(mut kept), Some(successor)) = (outcome.kept.take(), successor) else {
            end();
            return Ok(outcome);
        };
        let Successor {
            built: BuiltEngine { engine: mut new, controls: new_controls, followed: files },
            same,
            sources,
        } = *successor;
        let taken = new.succeed(&mut kept, &same, &sources);
        if let Err(failure) = kept.stop_rest(&mut outcome.report) {
            outcome.error = Some(RunError::Failed(failure));
            end();
            return Ok(outcome);
        }
        watch.follow(&new.watch());
        let (handlers, frames) = (new_controls.state().graph().handlers().len(), outcome.report.frames_in);
        controls.succeed(&new_controls);
        controls.report(&RunEvent::GraphReplaced { handlers, kept: taken, frames });
        so_far = Some(outcome.report);
        (engine, followed) = (new, files);
    }
}
