//! The process-wide instances of the classic API. There is at most one instance of each type at a time; after the
//! `cleanup` of an instance, a new instance can be created.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Compute, DeviceSelector, Monitor};

/// The process-wide instance already exists, or does not exist yet.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClassicError {
    #[error("there is already a {what} in this process; use `{what}::get()`, or `cleanup()` it first")]
    Exists { what: &'static str },
    #[error("there is no {what} in this process; create it with `{what}::initialize`")]
    Missing { what: &'static str },
}

vramp_plan::debug_as_display!(ClassicError);

struct ProcessWide<T> {
    what: &'static str,
    place: Mutex<Option<Arc<T>>>,
}

impl<T> ProcessWide<T> {
    const fn new(what: &'static str) -> ProcessWide<T> {
        ProcessWide { what, place: Mutex::new(None) }
    }

    fn put(&self, new: T) -> Result<Arc<T>, ClassicError> {
        let mut place = self.place();
        if place.is_some() {
            return Err(ClassicError::Exists { what: self.what });
        }
        let new = Arc::new(new);
        *place = Some(Arc::clone(&new));
        Ok(new)
    }

    fn get(&self) -> Result<Arc<T>, ClassicError> {
        self.place().clone().ok_or(ClassicError::Missing { what: self.what })
    }

    /// Clears the slot if it holds this instance and not a newer one.
    fn leave(&self, old: &Arc<T>) {
        let mut place = self.place();
        if place.as_ref().is_some_and(|held| Arc::ptr_eq(held, old)) {
            *place = None;
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Arc<T>>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

macro_rules! of_the_process {
    ($($(#[$doc:meta])* $name:ident of $inner:ident in $place:ident;)*) => {$(
        static $place: ProcessWide<$inner> = ProcessWide::new(stringify!($name));

        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(Arc<$inner>);

        impl $name {
            /// Makes this the instance of the process. Fails if the process already has an instance.
            pub fn initialize(one: $inner) -> Result<$name, ClassicError> {
                $place.put(one).map($name)
            }

            /// The instance of the process.
            pub fn get() -> Result<$name, ClassicError> {
                $place.get().map($name)
            }

            /// Releases everything that the instance holds, and makes room for another instance. Repeating the call has
            /// no effect.
            pub fn cleanup(&self) {
                $place.leave(&self.0);
                self.0.release();
            }
        }

        impl Deref for $name {
            type Target = $inner;

            fn deref(&self) -> &$inner {
                &self.0
            }
        }
    )*};
}

of_the_process! {
    /// The compute of the process. Clones refer to the same instance.
    GpuCompute of Compute in COMPUTE;
    /// The device manager of the process. Clones refer to the same instance.
    DeviceManager of DeviceSelector in DEVICES;
    /// The monitor of the process. Clones refer to the same instance.
    PerformanceMonitor of Monitor in MONITOR;
}
