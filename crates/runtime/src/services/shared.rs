//! Values that several handlers of a run share, for example memory that all of them need only once.
//!
//! Invariants: a value belongs to one side, the host or one device. It lives as long as a handler holds it. A graph that
//! replaces another one in the same run has the same values.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use vramp_gpu::Device;

use crate::handler::HandlerError;

/// The shared values of a run. Clones are the same values.
#[derive(Clone, Default)]
pub struct SharedValues(Arc<Mutex<Vec<SharedValue>>>);

struct SharedValue {
    /// The device on which the value is; `None` on the host.
    device: Option<Device>,
    value: Weak<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for SharedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedValues").finish_non_exhaustive()
    }
}

impl SharedValues {
    /// The value of this type on this side, made if no handler holds one.
    pub(super) fn get<T: Send + Sync + 'static>(
        &self,
        device: Option<&Device>,
        make: impl FnOnce() -> Result<T, HandlerError>,
    ) -> Result<Arc<T>, HandlerError> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.retain(|value| value.value.strong_count() > 0);
        let is_here = |value: &&SharedValue| match (&value.device, device) {
            (None, None) => true,
            (Some(own), Some(device)) => own.is_same(device),
            _ => false,
        };
        let held = |value: &SharedValue| value.value.upgrade().and_then(|value| value.downcast::<T>().ok());
        if let Some(found) = values.iter().filter(is_here).find_map(held) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        let whole: Arc<dyn Any + Send + Sync> = Arc::clone(&made) as _;
        values.push(SharedValue { device: device.cloned(), value: Arc::downgrade(&whole) });
        Ok(made)
    }
}
