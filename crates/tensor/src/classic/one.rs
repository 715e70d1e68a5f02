//! One of each for the whole process.
//!
//! Owns the three places, and who may put something there.
//! Does not know what stands in them.
//!
//! Always: a place that is taken stays so until what stands there is cleaned up; then another may be made.

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Compute, DeviceSelector, Monitor};

/// Why there is no such thing for the process.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClassicError {
    /// There is one already.
    #[error("there is a {what} already, and a process has one; use `{what}::get()`, or `cleanup()` it first")]
    Exists {
        /// What.
        what: &'static str,
    },
    /// There is none.
    #[error("there is no {what}; make it with `{what}::initialize`")]
    Missing {
        /// What.
        what: &'static str,
    },
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

    /// Frees the place where it is this one's, and not already another's.
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
            /// Makes this the one of the process. Refused where there is one.
            pub fn initialize(one: $inner) -> Result<$name, ClassicError> {
                $place.put(one).map($name)
            }

            /// The one of the process.
            pub fn get() -> Result<$name, ClassicError> {
                $place.get().map($name)
            }

            /// Releases what it holds, and makes way for another. Doing it again does nothing.
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
    /// The compute of the process. Clones are the same one.
    GpuCompute of Compute in COMPUTE;
    /// The device manager of the process. Clones are the same one.
    DeviceManager of DeviceSelector in DEVICES;
    /// The monitor of the process. Clones are the same one.
    PerformanceMonitor of Monitor in MONITOR;
}
