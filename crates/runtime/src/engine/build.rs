//! Builds an engine from a plan, in this order: pools, nodes, links, lanes, observers.
//!
//! Each unit of the plan (a handler, a fusion group or a transfer) becomes one node. The node's inputs are the ports
//! that are linked from outside the unit. Before the first frame, the host frames that the plan requires are allocated,
//! kernels are compiled, and each kernel runs once on scratch memory, because drivers finish compiling at the first
//! dispatch.
//!
//! Invariants: equal plans give equal engines. Nodes are made in the order of the plan's units. A handler that cannot
//! run is reported before any file or device is opened.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_plan::Space;

use crate::device::history::DeviceHistory;
use crate::frame::pool::FramePool;
use crate::handles::Handles;
use crate::link::wake_signal::WakeSignal;
use crate::memory::heap::HeapTally;
use crate::observe::monitor::RunProgress;
use crate::observe::sink_counter::SinkCounter;
use crate::services::SharedValues;
use crate::waker::Driver;

use super::barrier::SourceMark;
#[cfg(not(target_arch = "wasm32"))]
use super::changes::Changer;
use super::lanes::BuiltLanes;
use super::nodes::{Planned, check_all_run, enters_device, make_node, planned};
use super::pool_target::{PoolTarget, left_behind};
use super::watch::{WatchedEngine, WatchedLink};
use super::wiring::connect;
use super::{Engine, EngineParts, PrepareError, Stopper};

/// Bytes by which the host pool's budget exceeds the planned memory, because nodes still hold frames for a short time
/// after links have passed them on.
const SPARE_BYTES: u64 = 1 << 30;

/// What the parts of an engine share while the engine is built.
pub(super) struct BuildContext<'a> {
    pub(super) parts: &'a EngineParts<'a>,
    pub(super) planned: &'a [Planned<'a>],
    pub(super) stop: Stopper,
    /// The wake signals of the lanes.
    pub(super) signals: Arc<[WakeSignal]>,
    pub(super) threads: usize,
    pub(super) pool: FramePool,
    pub(super) device_history: Arc<DeviceHistory>,
    pub(super) tally: Arc<HeapTally>,
    pub(super) sink_counter: Arc<SinkCounter>,
    /// The largest memory that a plan of this graph has needed so far.
    pub(super) needed: Arc<Mutex<vramp_plan::PlannedMemory>>,
    pub(super) target: PoolTarget,
    pub(super) handles: Handles,
    pub(super) driver: Driver,
    pub(super) shared_values: SharedValues,
    /// The marks of the sources.
    pub(super) marks: RefCell<Vec<Arc<SourceMark>>>,
}

pub(super) async fn build(parts: EngineParts<'_>) -> Result<Engine, PrepareError> {
    let plan = parts.plan;
    let planned = planned(&parts);
    check_all_run(&parts)?;
    if let Some(on_device) = plan.handlers.iter().find(|h| h.space == Space::Gpu)
        && parts.device.is_none()
    {
        return Err(PrepareError::NoDevice { handler: on_device.name.clone() });
    }
    let lent_before = parts.device.as_ref().map(|device| device.pool().leaks()).unwrap_or_default();
    let shared = BuildContext::new(&parts, &planned);
    let mut nodes = Vec::with_capacity(plan.units.len());
    for at in 0..plan.units.len() {
        let node = make_node(&shared, &plan.units[at]).await?;
        let owner = shared.pool.enter(&node.name());
        let node = node.remembered_as(owner, left_behind(plan, &planned, at));
        nodes.push(node.entering_device(enters_device(plan, at)));
    }
    #[cfg(not(target_arch = "wasm32"))]
    let changer = Changer::new(&shared, &mut nodes);
    let rings = connect(plan, &mut nodes, &shared.signals);
    #[cfg(not(target_arch = "wasm32"))]
    {
        super::succession::label_inputs(plan, &mut nodes);
        super::succession::form_companies(plan, &nodes);
    }
    let lanes = BuiltLanes::of(&shared, nodes)?;
    let links: Vec<WatchedLink> = plan
        .links
        .iter()
        .filter(|link| !link.rings.is_empty())
        .map(|link| WatchedLink {
            from: plan.port_name(link.from),
            to: plan.port_name(link.to),
            to_node: lanes.watched_at[plan.rings[link.rings[link.rings.len() - 1]].to],
            leads: planned[link.to.handler].leads_with(link.to.port),
            transfer: plan.inserted_transfer(link).map(|unit| lanes.watched_at[unit]),
            rings: link.rings.iter().map(|ring| rings[*ring].clone()).collect(),
        })
        .collect();
    let names = || links.iter().map(|link| format!("{} -> {}", link.from, link.to)).collect();
    let first_traced = parts.trace.as_ref().map_or(0, |trace| trace.watch(names()));
    let watched = WatchedEngine {
        nodes: lanes.watched,
        links,
        begun: shared.sink_counter.read(),
        before: RunProgress::default(),
        counted_before: shared.device_history.counters(),
        pool: shared.pool,
        device_history: shared.device_history,
        tally: shared.tally,
        sink_counter: shared.sink_counter,
        lent_before: lent_before.into_iter().map(|row| row.tag).collect(),
        planned: shared.needed,
        latency: parts.plan.latency.clone(),
        trace: parts.trace.clone(),
        first_traced,
        segments: lanes.timed,
    };
    Ok(Engine {
        lanes: lanes.all,
        watched: Arc::new(watched),
        stop: shared.stop,
        threads: shared.threads,
        listener: parts.listener.clone(),
        failed: None,
        time_is_up: false,
        signals: shared.signals,
        begun: None,
        handles: shared.handles,
        driver: shared.driver,
        marks: shared.marks.into_inner(),
        #[cfg(not(target_arch = "wasm32"))]
        changer,
    })
}

impl<'a> BuildContext<'a> {
    fn new(parts: &'a EngineParts<'a>, planned: &'a [Planned<'a>]) -> BuildContext<'a> {
        let (plan, options) = (parts.plan, parts.options);
        let signals: Arc<[WakeSignal]> = plan.lanes.iter().map(|_| WakeSignal::new()).collect();
        let stop = parts.stopper.clone().unwrap_or_else(|| {
            let stop = Stopper::default();
            stop.serve(Arc::clone(&signals));
            stop
        });
        if let (Some(device), Some(limit_ms)) = (&parts.device, options.time_limit_ms) {
            device.set_time_limit(Duration::from_millis(limit_ms));
        }
        let uses_device = plan.lanes.iter().any(|lane| lane.device);
        let device_history = Arc::new(DeviceHistory::new(parts.device.clone().filter(|_| uses_device)));
        // If the device is lost, later frames need host memory instead of device memory.
        let planned_bytes = plan.memory.cpu_bytes.saturating_add(plan.memory.gpu_bytes);
        let budget = match options.cpu_memory_bytes {
            Some(bytes) => bytes.saturating_sub(plan.memory.cpu_held_bytes),
            None => planned_bytes.saturating_add(SPARE_BYTES),
        };
        let pool = FramePool::new(budget);
        for frames in &plan.memory.host_frames {
            pool.reserve(frames.bytes, usize::try_from(frames.count).unwrap_or(usize::MAX));
        }
        let target = PoolTarget { pool: pool.clone(), device_history: Arc::clone(&device_history) };
        target.at(&plan.memory);
        if let Some(device) = &parts.device {
            device.pool().restart_peak();
        }
        let tally = Arc::new(HeapTally::default());
        let sink_counter = Arc::new(SinkCounter::new(Arc::clone(&tally), pool.clone(), Arc::clone(&device_history)));
        let needed = Arc::new(Mutex::new(plan.memory.clone()));
        let threads = options.threads.map_or_else(threads_there_are, |threads| threads.max(1) as usize);
        let (handles, driver) = (Handles::default(), Driver::default());
        BuildContext {
            parts,
            planned,
            stop,
            signals,
            threads,
            pool,
            device_history,
            tally,
            sink_counter,
            needed,
            target,
            handles,
            driver,
            shared_values: parts.shared_values.clone(),
            marks: RefCell::default(),
        }
    }
}

fn threads_there_are() -> usize {
    #[cfg(target_arch = "wasm32")]
    return 1;
    #[cfg(not(target_arch = "wasm32"))]
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
