//! Frames that handlers in Python keep after their calls, counted by handler, so that a run that has no memory left can say
//! which handler keeps it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A handler, and how many frames Python has of it.
#[derive(Debug)]
pub(crate) struct Keeper {
    name: String,
    frames: AtomicUsize,
}

/// Counts a frame as long as it lives.
#[derive(Debug)]
pub(crate) struct Kept(Arc<Keeper>);

static ALL: Mutex<Vec<Weak<Keeper>>> = Mutex::new(Vec::new());

impl Keeper {
    pub(super) fn new(name: &str) -> Arc<Keeper> {
        let keeper = Arc::new(Keeper { name: name.to_owned(), frames: AtomicUsize::new(0) });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&keeper));
        keeper
    }

    pub(super) fn keep(self: &Arc<Self>) -> Kept {
        self.frames.fetch_add(1, Ordering::Relaxed);
        Kept(Arc::clone(self))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.frames.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The handlers of this process that keep frames, with the number of their frames.
pub(crate) fn keepers() -> Vec<(String, usize)> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let keeping = all.iter().filter_map(Weak::upgrade);
    let counted = keeping.map(|keeper| (keeper.name.clone(), keeper.frames.load(Ordering::Relaxed)));
    counted.filter(|(_, frames)| *frames > 0).collect()
}
