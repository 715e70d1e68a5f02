//! Replaces an engine by another between two frames, for a graph that changes while it runs.
//!
//! The next engine is built while this engine runs, so that a graph that cannot be built disturbs nothing. Then the
//! sources pause, the frames in flight arrive, and this engine ends without stopping its handlers. The next engine takes
//! over the handlers that are in both graphs, with their state and the frames that they hold, and the positions of the
//! sources. All other handlers of this engine are stopped.
//!
//! Invariants: no frame is lost. The numbers and times of a source continue. A handler is started once and stopped once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::device::history::DeviceHistory;
use crate::failure::HandlerFailure;
use crate::lane::Lane;
use crate::node::Node;
use crate::node::succession::{KeptHandler, KeptSource};
use crate::observe::monitor::RunProgress;
use crate::observe::report::Report;

use super::{Engine, Stopper};

/// What an engine leaves to its successor.
pub struct Kept {
    handlers: BTreeMap<String, KeptHandler>,
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

impl Stopper {
    /// Ends the engine between two frames, so that its successor can continue. The outcome of the run then has
    /// [`Kept`].
    #[doc(hidden)]
    pub fn hand_over(&self) {
        self.begin_hand_over();
    }
}

impl Kept {
    /// Stops the handlers that the successor has not taken. The frames that they held count as filtered in `report`, as at
    /// the end of a run.
    pub fn stop_rest(self, report: &mut Report) -> Result<(), HandlerFailure> {
        let mut first = Ok(());
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
        if failed || !self.stop.is_handing_over() || self.stop.is_ending() {
            return None;
        }
        let elapsed = self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
        let progress = self.watched.progress(elapsed);
        let device_history = Arc::clone(&self.watched.device_history);
        let (handlers, sources) = (BTreeMap::new(), BTreeMap::new());
        let mut kept = Kept { handlers, sources, begun: self.begun, progress, device_history };
        for node in self.lanes.iter_mut().flat_map(Lane::nodes_mut) {
            let name = node.first_name().to_owned();
            if let Some(position) = node.position() {
                kept.sources.insert(name.clone(), position);
            }
            if let Some(handler) = node.take_handler() {
                kept.handlers.insert(name, handler);
            }
        }
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
        for node in self.lanes.iter_mut().flat_map(Lane::nodes_mut) {
            let own = kept.sources.get(node.first_name()).filter(|_| is_in(sources, node));
            if let Some(position) = own.or(furthest.as_ref()).filter(|_| node.is_source()) {
                node.continue_from(position);
            }
            if is_in(same, node)
                && node.is_plain()
                && let Some(handler) = kept.handlers.remove(node.first_name())
            {
                node.put_handler(handler);
                taken += 1;
            }
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
        let mut nodes = self.lanes.iter_mut().flat_map(Lane::nodes_mut).filter(|node| !is_kept(node));
        nodes.try_for_each(Node::start)
    }
}
