//! The thread that optimises a store from time to time.
//!
//! Owns the thread and its end.
//! Does not keep the store alive: between two times it only knows where the store was.
//!
//! Always: told to end, it does so at once, or after what it is doing just now.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::error::StoreError;
use super::shared::{Store, WeakStore, lock};

pub(super) struct Background {
    bell: Arc<FinishSignal>,
    thread: Option<JoinHandle<()>>,
}

/// Rings when it is over.
#[derive(Default)]
struct FinishSignal {
    is_over: Mutex<bool>,
    rings: Condvar,
}

impl Background {
    pub(super) fn begin(store: &Store, period: Duration) -> Result<Background, StoreError> {
        let bell = Arc::new(FinishSignal::default());
        let (heard, somewhere) = (Arc::clone(&bell), store.somewhere());
        let work = move || work(&heard, &somewhere, period);
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
        // The last user may have left while the thread was at work: then this is the thread, and it ends by itself.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

fn work(bell: &FinishSignal, somewhere: &WeakStore, period: Duration) {
    loop {
        let is_over = lock(&bell.is_over);
        let waited = bell.rings.wait_timeout_while(is_over, period, |is_over| !*is_over);
        if *waited.unwrap_or_else(std::sync::PoisonError::into_inner).0 {
            return;
        }
        let Some(store) = somewhere.store() else { return };
        if store.optimise().is_err() {
            return; // It was disposed of.
        }
    }
}
