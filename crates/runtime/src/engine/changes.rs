//! Changes settings of a running engine: makes new handlers, compiles new kernels, and queues both at their nodes.
//!
//! Everything that can fail happens on the caller's thread, before a node learns of the change: a maker that refuses
//! the settings, a file that cannot be read, a kernel that does not compile. Then the change is queued at all of its
//! nodes, and published with the next number. `node/changes.rs` explains when a node applies it.
//!
//! Checking settings against entries and planning the graph again is left to the caller.
//!
//! Invariant: a refused change changes nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp_plan::catalog::{DeclaredShader, SettingValues};
use vramp_plan::{PlannedMemory, Variants};

use crate::device::history::DeviceHistory;
use crate::failure::catch;
use crate::fused::swap::{NewMember, UnitSwap, can_replace, prepare};
use crate::handler::{DeviceError, HandlerError, Part};
use crate::node::Node;
use crate::node::changes::{ChangeQueue, ChangeRecord, ChangeWork, ChangedHandler, QueuedChange};
use crate::registry::{Make, OwnedSetup, Worker};

use super::build::BuildContext;
use super::nodes::setup;
use super::pool_target::PoolTarget;

/// Changes settings of a running engine, from any thread. Clones change the same engine.
#[derive(Clone)]
pub struct Changer {
    shared: Arc<ChangerState>,
}

struct ChangerState {
    units: Mutex<Vec<ChangeableUnit>>,
    /// Number of changes in force.
    published: Arc<AtomicU32>,
    ended: Arc<AtomicBool>,
    device_history: Arc<DeviceHistory>,
    variants: Variants,
    needed: Arc<Mutex<PlannedMemory>>,
    target: PoolTarget,
}

/// A unit of the plan whose handlers can change, as it will be after all queued changes.
struct ChangeableUnit {
    name: String,
    members: Vec<ChangeableMember>,
    /// The parts of each member; `None` if the unit is a frame handler.
    parts: Option<Vec<Vec<Part>>>,
    on_device: bool,
    queue: Arc<ChangeQueue>,
}

struct ChangeableMember {
    setup: OwnedSetup,
    make: Make,
    small_bytes: u64,
}

/// New settings of one handler.
#[derive(Debug, Clone)]
pub struct HandlerChange {
    pub handler: String,
    /// All settings of the handler, checked.
    pub settings: SettingValues,
    /// The declaration in the user's shader text, if the handler is made from such a text.
    pub declared: Option<DeclaredShader>,
    /// Planned bytes of small data.
    pub small_bytes: u64,
    /// The settings that change, in text form, for the event.
    pub changed: Vec<(String, String)>,
}

/// Why a change was refused. The run continues with its previous settings.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("{handler}: {error}")]
    Make {
        handler: String,
        #[source]
        error: HandlerError,
    },
    #[error("{handler}: {error}")]
    Compile {
        /// The handlers of the fused unit, joined by `+`.
        handler: String,
        #[source]
        error: DeviceError,
    },
    #[error(
        "{handler} cannot have these settings in {unit}: it would read other images or formats than planned; restart the \
         run with these settings"
    )]
    OtherPlan { handler: String, unit: String },
    #[error("the run has ended")]
    Ended,
    #[error("there is no handler `{handler}` that can change")]
    NoHandler { handler: String },
}

/// A change that was accepted.
#[derive(Debug, Clone)]
pub struct AcceptedChange {
    record: Arc<ChangeRecord>,
}

impl AcceptedChange {
    /// The number of the first frame that a changed handler processed with the change. Waits at most this long for such
    /// a frame; returns `None` if none came.
    pub fn frame(&self, timeout: Duration) -> Option<u64> {
        self.record.frame(timeout)
    }

    /// Why a handler refused the change when it took effect; see [`FrameHandler::change`](crate::FrameHandler::change).
    pub fn problem(&self) -> Option<String> {
        self.record.problem()
    }
}

impl Changer {
    pub(super) fn new(shared: &BuildContext<'_>, nodes: &mut [Node]) -> Changer {
        let (parts, plan) = (shared.parts, shared.parts.plan);
        let published = Arc::new(AtomicU32::new(0));
        let mut units = Vec::new();
        for (unit, node) in plan.units.iter().zip(nodes) {
            let queue = node.follow_changes(&published);
            let member = |at: &usize| {
                let handler = shared.planned[*at].handler;
                let make = parts.registry.maker(handler.entry)?.clone();
                Some(ChangeableMember { setup: setup(shared, *at), make, small_bytes: handler.small_bytes })
            };
            if let Some(members) = unit.handlers.iter().map(member).collect::<Option<Vec<_>>>() {
                let on_device = plan.lanes[unit.lane].device;
                units.push(ChangeableUnit { name: node.name(), members, parts: node.parts(), on_device, queue });
            }
        }
        let (needed, target) = (Arc::clone(&shared.needed), shared.target.clone());
        let (device_history, variants) = (Arc::clone(&shared.device_history), parts.variants);
        let ended = Arc::default();
        let units = Mutex::new(units);
        Changer { shared: Arc::new(ChangerState { units, published, ended, device_history, variants, needed, target }) }
    }

    /// Leaves the changes that wait to a succeeding engine, whose graph has the changed settings.
    pub(super) fn leave_to(&self, frame: u64) {
        let units = self.shared.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.iter().for_each(|unit| unit.queue.leave_to(frame));
    }

    /// Refuses later changes.
    pub(super) fn end(&self) {
        self.shared.ended.store(true, Ordering::Release);
    }

    /// Changes the settings of one or several handlers, all with the same frame. `memory` is what the graph needs with
    /// the new settings. Makes the handlers and compiles their kernels on this thread.
    pub fn change(&self, changes: Vec<HandlerChange>, memory: &PlannedMemory) -> Result<AcceptedChange, ChangeError> {
        let ChangerState { published, ended, .. } = &*self.shared;
        if ended.load(Ordering::Acquire) {
            return Err(ChangeError::Ended);
        }
        // A panic leaves no unit half changed: units change only after everything has succeeded.
        let mut units = self.shared.units.lock().unwrap_or_else(PoisonError::into_inner);
        let mut by_unit: Vec<(usize, Vec<(usize, HandlerChange)>)> = Vec::new();
        for change in changes {
            let place = units.iter().enumerate().find_map(|(unit, own)| {
                Some((unit, own.members.iter().position(|member| member.setup.name == change.handler)?))
            });
            let Some((unit, member)) = place else { return Err(ChangeError::NoHandler { handler: change.handler }) };
            match by_unit.iter_mut().find(|(own, _)| *own == unit) {
                Some((_, members)) => members.push((member, change)),
                None => by_unit.push((unit, vec![(member, change)])),
            }
        }
        let mut ready = Vec::new();
        for (unit, changes) in by_unit {
            ready.push((unit, self.prepare(&units[unit], changes)?));
        }
        self.grow(memory);
        let record = Arc::new(ChangeRecord::new(Arc::clone(ended)));
        let number = published.load(Ordering::Relaxed) + 1;
        for (unit, ReadyChange { work, handlers, setups, parts }) in ready {
            let unit = &mut units[unit];
            for (member, setup, small_bytes) in setups {
                (unit.members[member].setup, unit.members[member].small_bytes) = (setup, small_bytes);
            }
            unit.parts = parts;
            unit.queue.push(QueuedChange { number, work, handlers, record: Arc::clone(&record) });
        }
        // Release: a source that reads this number stamps it on a frame, whose nodes must find the change.
        published.store(number, Ordering::Release);
        Ok(AcceptedChange { record })
    }

    /// Makes a unit's new handlers and compiles its new kernels.
    fn prepare(&self, unit: &ChangeableUnit, changes: Vec<(usize, HandlerChange)>) -> Result<ReadyChange, ChangeError> {
        let (mut setups, mut handlers, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (at, HandlerChange { handler, settings, declared, small_bytes, changed }) in changes {
            let member = &unit.members[at];
            let setup = OwnedSetup { settings, declared, ..member.setup.clone() };
            if unit.parts.is_some() {
                let made = catch(|| (member.make)(&setup.setup()));
                match made.map_err(|error| ChangeError::Make { handler: handler.clone(), error })? {
                    Worker::Pixels(made) => {
                        let parts = made.parts();
                        new.push(NewMember { at, handler: made, parts });
                    }
                    Worker::Frames(_) => {
                        return Err(ChangeError::OtherPlan { handler, unit: unit.name.clone() });
                    }
                }
            }
            setups.push((at, setup, small_bytes));
            handlers.push(ChangedHandler { name: handler, settings: changed });
        }
        let Some(old) = &unit.parts else {
            // The unit is a single frame handler, which takes the new setup in place.
            let setup = setups[0].1.clone();
            return Ok(ReadyChange { work: ChangeWork::Setup(Box::new(setup)), handlers, setups, parts: None });
        };
        let mut parts = old.clone();
        for member in &new {
            parts[member.at].clone_from(&member.parts);
        }
        let replaced = if can_replace(old, &parts) { prepare(old, &parts, &self.shared.variants) } else { None };
        let Some(mut prepared) = replaced else {
            return Err(ChangeError::OtherPlan { handler: handlers[0].name.clone(), unit: unit.name.clone() });
        };
        // If the device is lost already, the unit compiles its kernels for the device on which the run continues.
        let device = self.shared.device_history.current().filter(|device| unit.on_device && device.check().is_ok());
        if let Some(device) = device {
            let compiled = prepared.iter_mut().try_for_each(|stage| stage.compile(&unit.name, &device));
            compiled.map_err(|error| ChangeError::Compile { handler: unit.name.clone(), error })?;
        }
        let small_bytes = |(at, member): (usize, &ChangeableMember)| {
            setups.iter().find(|(own, ..)| *own == at).map_or(member.small_bytes, |(.., bytes)| *bytes)
        };
        let small_bytes = unit.members.iter().enumerate().map(small_bytes).fold(0, u64::saturating_add);
        let swap = UnitSwap { members: new, prepared, small_bytes };
        Ok(ReadyChange { work: ChangeWork::Swap(Box::new(swap)), handlers, setups, parts: Some(parts) })
    }

    /// Raises the targets of the pools to what the graph needs with its new settings.
    fn grow(&self, memory: &PlannedMemory) {
        let mut most = self.shared.needed.lock().unwrap_or_else(PoisonError::into_inner);
        most.gpu_bytes = most.gpu_bytes.max(memory.gpu_bytes);
        most.cpu_bytes = most.cpu_bytes.max(memory.cpu_bytes);
        most.cpu_held_bytes = most.cpu_held_bytes.max(memory.cpu_held_bytes);
        self.shared.target.at(&most);
    }
}

/// A change of one unit that can be queued.
struct ReadyChange {
    work: ChangeWork,
    handlers: Vec<ChangedHandler>,
    /// By member: the new setup and the planned bytes of small data.
    setups: Vec<(usize, OwnedSetup, u64)>,
    /// The unit's parts after the change.
    parts: Option<Vec<Vec<Part>>>,
}
