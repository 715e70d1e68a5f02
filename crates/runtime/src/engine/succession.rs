//! Replaces an engine by another between two frames, for a graph that changes while it runs.
//!
//! The next engine is built while this engine runs, so that a graph that cannot be built disturbs nothing. Then this
//! engine comes to a rest ([`super::barrier`]) and its lanes return. Nothing is ended or stopped. The next engine takes
//! over the handlers that are in both graphs, with their state and the frames that they hold, the positions of the
//! sources, and for each link that is in both graphs the frame that its consumer uses and the frames that wait. All other
//! handlers of this engine are stopped.
//!
//! Invariants: no frame is lost. The numbers and times of a source continue. A handler is started once and stopped once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use vramp_plan::{Content, Plan, Policy, Space};

use crate::device::history::DeviceHistory;
use crate::failure::HandlerFailure;
use crate::lane::Lane;
use crate::node::Node;
use crate::node::succession::{KeptHandler, KeptInput, KeptSource};
use crate::observe::monitor::RunProgress;
use crate::observe::report::Report;

use super::{Engine, Stopper};

/// What an engine leaves to its successor.
pub struct Kept {
    handlers: BTreeMap<String, KeptHandler>,
    /// By label: what the inputs of nodes held.
    inputs: Vec<(InputLabel, KeptInput)>,
    sources: BTreeMap<String, KeptSource>,
    begun: Option<Instant>,
    progress: RunProgress,
    device_history: Arc<DeviceHistory>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("handlers", &self.handlers.keys()).finish_non_exhaustive()
    }
}

/// Identifies an input of a node in two engines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InputLabel {
    from: String,
    /// The consumer, or the direction of the transfer that the input belongs to.
    to: String,
    space: Space,
    content: Content,
}

impl InputLabel {
    /// Whether both are the same link, perhaps in different spaces.
    pub(crate) fn is_same_link(&self, other: &InputLabel) -> bool {
        (&self.from, &self.to, &self.content) == (&other.from, &other.to, &other.content)
    }
}

/// Gives every input of every node its label.
pub(super) fn label_inputs(plan: &Plan, nodes: &mut [Node]) {
    for link in &plan.links {
        let from = plan.port_name(link.from);
        for (at, ring) in link.rings.iter().map(|ring| &plan.rings[*ring]).enumerate() {
            // The first of two rings leads to the transfer, which several links may share.
            let is_last = at + 1 == link.rings.len();
            let to = if is_last { plan.port_name(link.to) } else { "transfer".to_owned() };
            let space = if is_last { link.space } else { link.from_space };
            let label = InputLabel { from: from.clone(), to, space, content: link.content.clone() };
            nodes[ring.to].label_input(ring.input, label);
        }
    }
}

/// Puts sources whose frames meet over lossless links into one company. Such sources cannot be far apart, because their
/// consumer waits for each of them.
pub(super) fn form_companies(plan: &Plan, nodes: &[Node]) {
    let mut company: Vec<usize> = (0..nodes.len()).collect();
    let lossless = || plan.rings.iter().filter(|ring| ring.link_policy == Policy::Lossless);
    // The smaller number spreads along the rings until nothing changes.
    while lossless().fold(false, |changed, ring| {
        let least = company[ring.from].min(company[ring.to]);
        let differs = company[ring.from] != company[ring.to];
        (company[ring.from], company[ring.to]) = (least, least);
        changed || differs
    }) {}
    for (node, company) in nodes.iter().zip(company) {
        node.join_company(u32::try_from(company).unwrap_or(u32::MAX));
    }
}

impl Stopper {
    /// Asks the engine to come to a rest between two frames, so that its successor can continue. The outcome of the run
    /// then has [`Kept`]. If the engine does not come to a rest, it continues ([`Stopper::gave_up`]).
    #[doc(hidden)]
    pub fn hand_over(&self) {
        self.begin_hand_over();
    }
}

impl Kept {
    /// Stops the handlers that the successor has not taken. The frames that they held count as filtered in `report`, and
    /// frames that waited on links of the old graph alone count as stopped.
    pub fn stop_rest(self, report: &mut Report) -> Result<(), HandlerFailure> {
        let mut first = Ok(());
        report.dropped.stopped += self.inputs.iter().map(|(_, input)| input.waiting_frames()).sum::<u64>();
        for (name, kept) in self.handlers {
            report.drop_held(&name, kept.held_frames());
            let stopped = kept.stop(&name);
            if first.is_ok() {
                first = stopped;
            }
        }
        first
    }
}

impl Engine {
    /// Takes out what a successor continues with, if the engine has ended for that.
    pub(super) fn hand_over(&mut self, failed: bool) -> Option<Kept> {
        // An engine whose streams have all ended needs no rest.
        let is_over = || self.stop.is_handing_over() && !self.stop.is_ending();
        if failed || self.stop.is_stopped() || !(self.stop.is_switching() || is_over()) {
            return None;
        }
        let elapsed = self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        let progress = self.watched.progress(elapsed);
        let device_history = Arc::clone(&self.watched.device_history);
        let (handlers, sources, inputs) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut kept = Kept { handlers, inputs, sources, begun: self.begun, progress, device_history };
        for node in self.lanes.iter_mut().flat_map(Lane::nodes_mut) {
            let name = node.first_name().to_owned();
            if let Some(position) = node.position() {
                kept.sources.insert(name.clone(), position);
            }
            kept.inputs.extend(node.take_inputs());
            if let Some(handler) = node.take_handler() {
                kept.handlers.insert(name, handler);
            }
        }
        self.changer.leave_to(kept.sources.values().map(KeptSource::next).max().unwrap_or(0));
        Some(kept)
    }

    /// Continues the run of another engine. `same` names the handlers that are the same in both graphs; `sources` names
    /// the sources that continue their streams. The other sources continue the numbers and times of the source that has
    /// come furthest, so that numbered files go on. Returns how many handlers were taken over.
    pub fn succeed(&mut self, kept: &mut Kept, same: &[String], sources: &[String]) -> usize {
        self.begun = kept.begun;
        let mut taken = 0;
        let is_in = |names: &[String], node: &Node| names.iter().any(|name| name == node.first_name());
        let furthest = kept.sources.values().max_by_key(|source| source.next()).cloned();
        for (device, node) in self.lanes.iter_mut().flat_map(Lane::nodes_with_device) {
            let own = kept.sources.get(node.first_name()).filter(|_| is_in(sources, node));
            if let Some(position) = own.or(furthest.as_ref()).filter(|_| node.is_source()) {
                node.continue_from(position);
            }
            if is_in(same, node)
                && node.is_plain()
                && let Some(handler) = kept.handlers.remove(node.first_name())
            {
                node.put_handler(handler, &self.watched.pool, device.as_ref());
                taken += 1;
            }
            node.put_inputs(&mut kept.inputs);
        }
        if let Some(watched) = Arc::get_mut(&mut self.watched) {
            // Work of the earlier engine on the same device is in the report of that engine.
            watched.begun = watched.sink_counter.read();
            watched.before = kept.progress;
            watched.device_history.continue_from(&kept.device_history);
            watched.counted_before = watched.device_history.counters();
        }
        self.stop.serve(Arc::clone(&self.signals));
        taken
    }

    /// Starts the handlers that the engine will not take over, on this thread.
    pub fn start_new(&mut self, same: &[String]) -> Result<(), HandlerFailure> {
        let is_kept = |node: &Node| node.is_plain() && same.iter().any(|name| name == node.first_name());
        self.lanes.iter_mut().try_for_each(|lane| lane.start_some(|node| !is_kept(node)))
    }
}
