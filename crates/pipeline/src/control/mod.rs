//! Live settings: changes settings of a pipeline while it runs.
//!
//! [`Controls::set`] checks a change completely before anything happens: names, types and ranges, the combination of
//! the handler's settings, and a plan of the whole graph with every handler where it is. Then the engine makes the new
//! handlers and compiles their kernels on the caller's thread. The change takes effect between two frames, with the
//! same frame in all handlers. Frames in flight keep the old settings.
//!
//! Invariants: several changes in one call are made all or not at all. A change never alters the size, format or rate
//! of a stream.

mod check;
mod error;
pub(crate) mod follow;
pub(crate) mod replace;
mod value;

pub use error::SetError;
pub use replace::{Applied, ApplyError};
pub use value::SettingInput;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vramp_plan::catalog::{DeclaredSetting, Liveness, Setting, ValueType};
use vramp_plan::{Graph, Handler, NoPlan, Plan, Profile, RunOptions};
use vramp_runtime::engine::{AcceptedChange, Changer};
use vramp_runtime::{Listener, Registry, RunEvent};

use check::WantedChanges;
use replace::Replacing;

/// Changes and reads the settings of a pipeline, before and during its run, from any thread. Clones control the same
/// pipeline.
///
/// ```
/// use vramp::prelude::*;
///
/// let mut pipeline = Pipeline::parse("pattern size=64x48 frames=3 ! blur ! null").build()?;
/// let controls = pipeline.controls();
/// controls.set("blur0.sigma", 3.5)?;
/// controls.set_all([("pattern0.kind", "bars"), ("blur0.sigma", "1.5")])?;
/// assert_eq!(controls.get("blur0.sigma")?, "1.5");
/// assert_eq!(controls.set("blur0.sigma", -1.0).unwrap_err().to_string(),
///     "blur0: `-1` is not a valid sigma; expected a number from 0.01 to 100");
/// pipeline.run()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Controls {
    /// Replaced when another graph continues the run.
    current: Arc<Mutex<Arc<ControlState>>>,
}

struct ControlState {
    /// Held during a change, so that changes are made one after another.
    changing: Mutex<()>,
    graph: SharedGraph,
    planner: PinnedPlanner,
    registry: Registry,
    changer: Changer,
    listener: Option<Listener>,
    /// Whether the files that sinks write are checked.
    writes: bool,
    replacing: Replacing,
}

/// The graph with its current settings and source sizes.
pub(crate) type SharedGraph = Arc<Mutex<Graph>>;

/// Plans a graph with every handler in the space where it runs.
#[derive(Clone)]
pub(crate) struct PinnedPlanner {
    pub(crate) profile: Profile,
    pub(crate) options: RunOptions,
}

impl PinnedPlanner {
    pub(crate) fn decide(&self, graph: &Graph) -> Result<Plan, NoPlan> {
        Plan::decide(graph, &self.profile, &self.options)
    }
}

/// A setting of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingState {
    pub handler: String,
    pub key: String,
    /// The current value in its text form; `None` if the setting has no value.
    pub value: Option<String>,
    pub liveness: Liveness,
    /// What values are valid, in words.
    pub expects: String,
}

/// A change that was accepted. It takes effect with the next frame that the sources send.
#[derive(Debug, Clone)]
pub struct Change {
    accepted: AcceptedChange,
}

impl Change {
    /// The number of the first frame that has the change. Waits at most this long for that frame. Returns `None` if no
    /// changed handler has processed such a frame yet.
    pub fn frame(&self, timeout: Duration) -> Option<u64> {
        self.accepted.frame(timeout)
    }

    /// Why a handler could not take the change when the change was to take effect. Only a handler of whole frames that
    /// implements `FrameHandler::change` can refuse a change so late.
    pub fn problem(&self) -> Option<String> {
        self.accepted.problem()
    }
}

impl Controls {
    pub(crate) fn new(
        graph: SharedGraph,
        planner: PinnedPlanner,
        registry: Registry,
        changer: Changer,
        listener: Option<Listener>,
        writes: bool,
        replacing: Replacing,
    ) -> Controls {
        let changing = Mutex::default();
        let state = ControlState { changing, graph, planner, registry, changer, listener, writes, replacing };
        Controls { current: Arc::new(Mutex::new(Arc::new(state))) }
    }

    /// Changes a setting, such as `blur0.sigma`. The value is text as written in a pipeline, or a number, a flag, a
    /// size, a colour.
    ///
    /// The change takes effect between two frames, with the next frame that the sources send; before the run, with the
    /// first frame. A change of a `rebuild` setting compiles new kernels first, on this thread.
    pub fn set(&self, name: &str, value: impl Into<SettingInput>) -> Result<Change, SetError> {
        self.set_all([(name, value)])
    }

    /// The plan of the graph that runs. Another graph that continues the run has its own plan; changed settings are not
    /// in it.
    pub fn plan(&self) -> Plan {
        Plan::clone(&self.state().replacing.plan)
    }

    /// Changes several settings with the same frame. If any of them is refused, none changes.
    pub fn set_all<N: AsRef<str>, V: Into<SettingInput>>(
        &self,
        changes: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Change, SetError> {
        let changes: Vec<(N, SettingInput)> = changes.into_iter().map(|(name, value)| (name, value.into())).collect();
        self.at_turn(|state| {
            let before = state.graph().clone();
            let mut wanted = WantedChanges::of(&before);
            for (name, value) in changes {
                wanted.add(name.as_ref(), value)?;
            }
            let checked = wanted.check(&state.registry, &state.planner, state.writes)?;
            let accepted = state.changer.change(checked.changes, &checked.memory)?;
            // A source may have changed its size meanwhile, so only the changed handlers are replaced.
            let mut graph = state.graph();
            *graph = checked.handlers.into_iter().fold(graph.clone(), |graph, handler| graph.with_handler(handler));
            Ok(Change { accepted })
        })
    }

    /// Calls `work` when no other change is being made, with the graph that then continues the run.
    fn at_turn<R>(&self, work: impl FnOnce(&Arc<ControlState>) -> R) -> R {
        let mut state = self.state();
        loop {
            let turn = state.turn();
            let now = self.state();
            if Arc::ptr_eq(&state, &now) {
                let result = work(&state);
                drop(turn);
                return result;
            }
            drop(turn);
            state = now;
        }
    }

    /// The value of a setting in its text form, as [`Controls::set`] takes it.
    pub fn get(&self, name: &str) -> Result<String, SetError> {
        let state = self.state();
        let graph = state.graph();
        let (handler, key) = check::named(&graph, name)?;
        check::declaration(handler, key)?;
        let value = handler.settings.get(key).map(ToString::to_string);
        value.ok_or_else(|| SetError::Unset { name: name.to_owned() })
    }

    /// All settings of all handlers, in the order of the pipeline.
    pub fn settings(&self) -> Vec<SettingState> {
        self.state().graph().handlers().iter().flat_map(states).collect()
    }

    /// The type of a setting, as its handler or its handler's shader declares it.
    pub(crate) fn type_of(&self, handler: &str, key: &str) -> Option<ValueType> {
        let state = self.state();
        let graph = state.graph();
        let handler = graph.handlers().iter().find(|known| known.name == handler)?;
        let own = handler.entry.settings.iter().find(|setting| setting.name == key).map(|setting| setting.value);
        let declared = || handler.declared.iter().flat_map(|shader| &shader.settings);
        own.or_else(|| declared().find(|setting| setting.name == key).map(|setting| setting.value))
    }

    /// Reports an event of the run.
    fn report(&self, event: &RunEvent) {
        if let Some(listener) = &self.state().listener {
            listener(event);
        }
    }

    fn state(&self) -> Arc<ControlState> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ControlState {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        // A graph is replaced as a whole.
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other change is being made.
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn states(handler: &Handler) -> Vec<SettingState> {
    let state = |key: &str, liveness: Liveness, expects: String| SettingState {
        handler: handler.name.clone(),
        key: key.to_owned(),
        value: handler.settings.get(key).map(ToString::to_string),
        liveness,
        expects,
    };
    let own = |setting: &Setting| state(setting.name, setting.liveness, setting.value.expects());
    let declared = |setting: &DeclaredSetting| state(&setting.name, Liveness::Live, setting.value.expects());
    let by_shader = handler.declared.iter().flat_map(|shader| &shader.settings).map(declared);
    handler.entry.settings.iter().map(own).chain(by_shader).collect()
}

impl std::fmt::Debug for Controls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.settings();
        let settings = settings.iter().map(|state| (format!("{}.{}", state.handler, state.key), &state.value));
        f.debug_map().entries(settings).finish()
    }
}
