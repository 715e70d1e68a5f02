//! What a handler is given when it starts ([`StartContext`]): the device, the content of its ports, and services that it
//! may keep for later calls.
//!
//! - [`HandlerPool`] lends memory by shape and element type.
//! - [`KeptValues`] are values of the handler's own that are needed where its frames are. They are uploaded once, with the
//!   first frame that needs them.
//! - [`StartContext::share`] and [`StartContext::share_on_host`] make a value once for all handlers of the run.
//! - [`Reporter`] tells the user what the handler finds out.
//! - [`WorkQueue`] collects work for the device. The work is submitted together with the handler's next frame.
//!
//! Invariants: a service follows its handler. If the device is lost, pools lend and values are kept on the new side, and
//! work for the lost device is dropped. No service submits anything by itself: uploads and queued work are part of a
//! frame's submit.

mod kept;
mod pool;
mod reporter;
mod shared;
mod start;
mod work;

pub use kept::KeptValues;
pub use pool::HandlerPool;
pub use reporter::Reporter;
pub use shared::SharedValues;
pub use start::StartContext;
pub use work::WorkQueue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_gpu::{Buffer, Device, Recording};

use crate::frame::pool::{FramePool, Owner};
use crate::lane::context::{LaneContext, UploadSource};

/// The services of one node. Clones are the same services.
#[derive(Clone)]
pub(crate) struct Services(Arc<dyn ServicesParts>);

/// The contents of [`Services`]. A trait object, because a proof that a handler is `Send` would otherwise go through all
/// of wgpu's types, deeper than the compiler's default recursion limit.
trait ServicesParts: Send + Sync {
    fn all(&self) -> &ServicesShared;
}

impl ServicesParts for ServicesShared {
    fn all(&self) -> &ServicesShared {
        self
    }
}

struct ServicesShared {
    /// The owner of device memory in the ledger.
    owner: Arc<str>,
    /// Whether `here` has work that waits for a frame.
    has_work: AtomicBool,
    here: Mutex<Here>,
    shared: SharedValues,
}

/// Where the handler's frames are.
struct Here {
    device: Option<Device>,
    /// How often the handler has changed sides or devices.
    moves: u64,
    pool: FramePool,
    work: Recording<Buffer, UploadSource>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").field("owner", &self.all().owner).finish_non_exhaustive()
    }
}

impl Services {
    /// The services of a node with this name, which is `owner` in the ledger of the lane's pool.
    pub(crate) fn new(name: &str, owner: Owner, context: &mut LaneContext) -> Services {
        let mut pool = context.pool().clone();
        pool.serve(owner, 0);
        let device = context.device_context().map(|device_context| device_context.device().clone());
        let here = Here { device, moves: 0, pool, work: Recording::default() };
        let (here, shared) = (here.into(), context.shared_values().clone());
        Services(Arc::new(ServicesShared { owner: name.into(), has_work: AtomicBool::new(false), here, shared }))
    }

    /// Whether the handler has kept a service.
    pub(crate) fn are_kept(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Continues on another device, or on the host. Work for the old device is dropped.
    pub(crate) fn move_to(&self, device: Option<&Device>) {
        let mut here = self.here();
        (here.device, here.moves) = (device.cloned(), here.moves + 1);
        here.work.clear();
        self.all().has_work.store(false, Ordering::Relaxed);
    }

    /// Continues in another engine: lends from its pool as this owner, and on its device.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn continue_in(&self, pool: &FramePool, owner: Owner, device: Option<&Device>) {
        let mut pool = pool.clone();
        pool.serve(owner, 0);
        let is_same = {
            let mut here = self.here();
            here.pool = pool;
            match (&here.device, device) {
                (None, None) => true,
                (Some(own), Some(device)) => own.is_same(device),
                _ => false,
            }
        };
        if !is_same {
            self.move_to(device);
        }
    }

    /// Appends the queued work to the lane's recording.
    pub(crate) fn play_queued(&self, context: &mut LaneContext) {
        // Acquire: the work that was queued before is visible.
        if self.all().has_work.swap(false, Ordering::Acquire) {
            let mut here = self.here();
            match context.device_context() {
                Some(device_context) => device_context.recording.append(&mut here.work, |source| source),
                None => here.work.clear(),
            }
        }
    }

    /// The owner of the handler's device memory in the ledger.
    fn owner(&self) -> &Arc<str> {
        &self.all().owner
    }

    /// What the handlers of the run share.
    fn shared_values(&self) -> &SharedValues {
        &self.all().shared
    }

    fn all(&self) -> &ServicesShared {
        self.0.all()
    }

    fn here(&self) -> MutexGuard<'_, Here> {
        // No holder panics halfway through a change.
        self.all().here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
