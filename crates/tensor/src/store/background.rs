//! The thread that periodically optimises a store.
//!
//! Between two rounds the thread holds only a weak reference, so it does not keep the store alive. When signalled, the
//! thread ends: at once between two rounds, otherwise after the current round.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::StoreError;
use super::shared::{Store, WeakStore, lock};

pub(super) struct Background {
    bell: Arc<FinishSignal>,
    thread: Option<JoinHandle<()>>,
}

/// Signals the thread to end.
#[derive(Default)]
struct FinishSignal {
    is_over: Mutex<bool>,
    rings: Condvar,
}

impl Background {
    pub(super) fn begin(store: &Store, period: Duration) -> Result<Background, StoreError> {
        let bell = Arc::new(FinishSignal::default());
        let (signal, weak) = (Arc::clone(&bell), store.downgrade());
        let work = move || work(&signal, &weak, period);
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(work);
        let thread = thread.map_err(|problem| StoreError::NoThread { problem: problem.to_string() })?;
        Ok(Background { bell, thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        *lock(&self.bell.is_over) = true;
        self.bell.rings.notify_all();
        let Some(thread) = self.thread.take() else { return };
        // If all other references to the store were dropped during a round, this code runs on the background thread,
        // and a thread cannot join itself.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

fn work(bell: &FinishSignal, weak: &WeakStore, period: Duration) {
    loop {
        let is_over = lock(&bell.is_over);
        let waited = bell.rings.wait_timeout_while(is_over, period, |is_over| !*is_over);
        if *waited.unwrap_or_else(std::sync::PoisonError::into_inner).0 {
            return;
        }
        let Some(store) = weak.store() else { return };
        if store.optimise().is_err() {
            return; // The store was disposed of.
        }
    }
}
