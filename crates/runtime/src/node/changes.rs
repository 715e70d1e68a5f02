//! Changed settings of a node's handlers, queued until the first frame that has them.
//!
//! Changes are numbered over the whole run. A source stamps each frame with the number of changes that are in force
//! ([`Birth::settings`]). Before a node processes a frame, the node applies its queued changes up to that number, in
//! order. So a change takes effect with the same frame in every lane and in both spaces, and frames in flight keep the
//! settings that they were sent with.
//!
//! A change is queued at all of its nodes before its number is published, so that a frame with that number finds the
//! change in the queue. Without a change, a frame costs one comparison.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::catch;
use crate::frame::Birth;
#[cfg(not(target_arch = "wasm32"))]
use crate::fused::UnitSwap;
use crate::handler::{HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::observe::monitor::RunEvent;
use crate::registry::OwnedSetup;

use super::Node;

/// The changes of a node, and the number of changes that the node has considered.
#[derive(Default)]
pub(super) struct NodeChanges {
    /// Number of changes in force, shared by the whole engine.
    published: Arc<AtomicU32>,
    seen: u32,
    queue: Arc<ChangeQueue>,
}

impl NodeChanges {
    /// Adds the number of changes in force to the birth of a source's frame.
    pub(super) fn stamp(&self, birth: Birth) -> Birth {
        // Acquire: the changes up to this number are in the queues of their nodes.
        Birth { settings: self.published.load(Ordering::Acquire), ..birth }
    }
}

/// The changes that wait for a node's next frames, oldest first.
#[derive(Default)]
pub(crate) struct ChangeQueue {
    waiting: Mutex<VecDeque<QueuedChange>>,
}

/// A change of the settings of a node's handlers.
pub(crate) struct QueuedChange {
    /// The change counts from the first frame with at least this many changes.
    pub(crate) number: u32,
    pub(crate) work: ChangeWork,
    pub(crate) handlers: Vec<ChangedHandler>,
    pub(crate) record: Arc<ChangeRecord>,
}

/// What a change does to a node's handler.
pub(crate) enum ChangeWork {
    /// Passes the changed settings to a frame handler.
    Setup(Box<OwnedSetup>),
    /// Replaces members of a fused unit.
    #[cfg(not(target_arch = "wasm32"))]
    Swap(Box<UnitSwap>),
}

/// A handler with its changed settings, in text form.
#[derive(Debug, Clone)]
pub(crate) struct ChangedHandler {
    pub(crate) name: String,
    pub(crate) settings: Vec<(String, String)>,
}

impl ChangeQueue {
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn push(&self, change: QueuedChange) {
        self.lock().push_back(change);
    }

    /// Takes the oldest change up to this number.
    fn take(&self, number: u32) -> Option<QueuedChange> {
        let mut waiting = self.lock();
        let is_due = waiting.front().is_some_and(|change| change.number <= number);
        if is_due { waiting.pop_front() } else { None }
    }

    /// Leaves the changes that wait to another engine, which has them from this frame on.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn leave_to(&self, frame: u64) {
        self.lock().drain(..).for_each(|change| change.record.applied(frame));
    }

    fn put_back(&self, change: QueuedChange) {
        self.lock().push_front(change);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<QueuedChange>> {
        // No holder panics halfway through a change of the queue.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has become of a change.
#[derive(Debug, Default)]
pub(crate) struct ChangeRecord {
    state: Mutex<ChangeState>,
    news: Condvar,
    /// Set when the run has ended.
    ended: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct ChangeState {
    frame: Option<u64>,
    problem: Option<String>,
}

impl ChangeRecord {
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn new(ended: Arc<AtomicBool>) -> ChangeRecord {
        ChangeRecord { ended, ..ChangeRecord::default() }
    }

    /// The number of the first frame that a changed handler processed with the change. Waits at most this long, and no
    /// longer than until the end of the run or the failure of the change.
    pub(crate) fn frame(&self, timeout: Duration) -> Option<u64> {
        /// The end of a run notifies no record, so a waiting thread looks for it.
        const LOOK: Duration = Duration::from_millis(20);
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            let rest = until.saturating_duration_since(Instant::now());
            let ended = self.ended.load(Ordering::Acquire);
            if state.frame.is_some() || state.problem.is_some() || rest.is_zero() || ended {
                return state.frame;
            }
            state = self.news.wait_timeout(state, rest.min(LOOK)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Why a handler did not take the change.
    pub(crate) fn problem(&self) -> Option<String> {
        let state = self.lock();
        let is_lost = state.frame.is_none() && self.ended.load(Ordering::Acquire);
        let lost = || "the run ended before the change took effect".to_owned();
        state.problem.clone().or_else(|| is_lost.then(lost))
    }

    fn applied(&self, frame: u64) {
        let mut state = self.lock();
        state.frame = Some(state.frame.map_or(frame, |first| first.min(frame)));
        self.news.notify_all();
    }

    fn failed(&self, problem: String) {
        self.lock().problem = Some(problem);
        self.news.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ChangeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Lets the node follow the changes of an engine, whose number is `published`. Returns the node's queue.
    pub(crate) fn follow_changes(&mut self, published: &Arc<AtomicU32>) -> Arc<ChangeQueue> {
        self.changes.published = Arc::clone(published);
        Arc::clone(&self.changes.queue)
    }

    /// Applies the changes that this frame is the first to have. Fails only if the device is lost.
    #[inline]
    pub(super) fn take_changes(&mut self, now: Now, context: &mut LaneContext) -> Result<(), HandlerError> {
        if now.birth.settings == self.changes.seen { Ok(()) } else { self.apply_changes(now, context) }
    }

    #[cold]
    fn apply_changes(&mut self, now: Now, context: &mut LaneContext) -> Result<(), HandlerError> {
        let queue = Arc::clone(&self.changes.queue);
        while let Some(mut change) = queue.take(now.birth.settings) {
            let applied = match &mut change.work {
                ChangeWork::Setup(setup) => catch(|| self.handler.change(&setup.setup())).map(|()| false),
                #[cfg(not(target_arch = "wasm32"))]
                ChangeWork::Swap(swap) => {
                    self.with_services(context, |handler, context| catch(|| handler.swap(swap, context)))
                }
            };
            match applied {
                // The frame is lost with the device. The change applies to the next frame, on another device or on the
                // host.
                Err(error) if error.trouble().is_some() => {
                    queue.put_back(change);
                    self.given.fill(None);
                    return Err(error);
                }
                Err(error) => {
                    let problem = error.to_string();
                    for ChangedHandler { name, .. } in change.handlers {
                        let (handler, problem) = (name, problem.clone());
                        context.report(&RunEvent::NotChanged { handler, frame: now.number, problem });
                    }
                    change.record.failed(problem);
                }
                Ok(swapped) => {
                    context.count_change(swapped);
                    for ChangedHandler { name, settings } in change.handlers {
                        context.report(&RunEvent::Changed { handler: name, settings, frame: now.number });
                    }
                    change.record.applied(now.number);
                }
            }
        }
        self.changes.seen = now.birth.settings;
        Ok(())
    }
}
