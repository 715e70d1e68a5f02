//! What a handler tells the user besides its frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::lane::context::{LaneContext, Listener};
use crate::observe::monitor::{NodeStats, RunEvent};

/// Tells the user what a handler finds out during its work. A handler keeps it from [`StartContext::reporter`] on, and
/// may use it in any call, `stop` included.
///
/// [`StartContext::reporter`]: super::StartContext::reporter
#[derive(Clone)]
pub struct Reporter {
    name: Arc<str>,
    listener: Option<Listener>,
    stats: Arc<NodeStats>,
    alive: Arc<AtomicU64>,
}

impl Reporter {
    pub(crate) fn new(name: &str, stats: &Arc<NodeStats>, context: &LaneContext) -> Reporter {
        let (listener, alive) = (context.listener_of_run(), Arc::clone(context.alive()));
        Reporter { name: name.into(), listener, stats: Arc::clone(stats), alive }
    }

    /// The same for another member of a fused unit.
    pub(super) fn named(&self, name: &str) -> Reporter {
        Reporter { name: name.into(), ..self.clone() }
    }

    /// Tells that the work continues, but not as requested.
    pub fn warn(&self, words: impl Into<String>) {
        self.tell(words.into(), true);
    }

    /// Tells something that is useful to know and not a problem.
    pub fn note(&self, words: impl Into<String>) {
        self.tell(words.into(), false);
    }

    /// Counts problems that did not cost a frame, such as errors of a decoder. The report has their sum.
    pub fn count_problems(&self, count: u64) {
        self.stats.count_problems(count);
    }

    /// Tells that a long call makes progress. A run that is stopped waits for a handler that does; see
    /// [`Engine::run`](crate::engine::Engine::run).
    pub fn progress(&self) {
        self.alive.fetch_add(1, Ordering::Relaxed);
    }

    fn tell(&self, words: String, is_warning: bool) {
        if let Some(listener) = &self.listener {
            listener(&RunEvent::Told { handler: self.name.to_string(), words, is_warning });
        }
    }
}

impl std::fmt::Debug for Reporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reporter").field("name", &self.name).finish_non_exhaustive()
    }
}
