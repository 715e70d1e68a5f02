//! Handles that handlers publish for the program that runs the pipeline.
//!
//! While a handler is made it may publish one value under its own name ([`Setup::publish`](crate::Setup::publish)). The
//! program then asks the pipeline for that value by name and type. `app` publishes its two ends in this way, and a
//! program's own handler may publish whatever the program needs to reach. A handler may also count the frames that it
//! exchanges with the program ([`Setup::count_frames`](crate::Setup::count_frames)); the counts are part of the report.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::observe::report::{EndCounts, EndUse};

/// The published handles of one engine, by the name of the handler.
#[derive(Clone, Default)]
pub struct Handles {
    all: Arc<Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>>,
    counts: Arc<Mutex<BTreeMap<String, ReadCounts>>>,
}

type ReadCounts = Arc<dyn Fn() -> EndCounts + Send + Sync>;

impl Handles {
    pub(crate) fn publish(&self, name: &str, handle: impl Any + Send + Sync) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::new(handle));
    }

    pub(crate) fn count_frames(&self, name: &str, counts: impl Fn() -> EndCounts + Send + Sync + 'static) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::new(counts));
    }

    /// The frames that handlers exchanged with the program so far, by the name of the handler.
    pub(crate) fn uses(&self) -> Vec<EndUse> {
        let all = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.into_iter().map(|(name, counts)| EndUse { name, counts: counts() }).collect()
    }

    /// The handle of this type that the handler of this name has published.
    pub fn get<T: Any + Send + Sync + Clone>(&self, name: &str) -> Option<T> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name)?.downcast_ref::<T>().cloned()
    }

    /// The names of all handlers that have published a handle of this type.
    pub fn names<T: Any + Send + Sync>(&self) -> Vec<String> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, handle)| handle.is::<T>()).map(|(name, _)| name.clone()).collect()
    }
}

impl std::fmt::Debug for Handles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_set().entries(all.keys()).finish()
    }
}
