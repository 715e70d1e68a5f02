//! The store itself: its context, its books behind one lock, and its disposal.
//!
//! While a thread has the lock of the books, the only other locks that the thread may take are those of the slots of
//! leases. Nothing is moved or computed while the books are locked, and no tensor is dropped, because dropping takes
//! the tensor's own lock. The module header of `store` has the lock order.
//!
//! Invariants: a disposed store holds no tensors, and all of its functions that can fail return an error. The
//! background thread ends with the store.

#[cfg(not(target_arch = "wasm32"))]
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

#[cfg(not(target_arch = "wasm32"))]
use super::background::Background;
use super::builder::{StoreBuilder, StoreSettings};
use super::error::StoreError;
#[cfg(not(target_arch = "wasm32"))]
use super::filed::FiledValues;
use super::held::{Closed, LeaseOwner};
use super::ledger::Ledger;
use crate::ops::context::Context;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::own::CompiledShader;
use crate::ops::tensor::Tensor;
#[cfg(not(target_arch = "wasm32"))]
use crate::store::files::TensorFolder;

/// Named tensors that models own and share. Clones refer to the same store.
///
/// ```
/// use vramp_tensor::{Context, Store};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Store::builder().context(&Context::on_host()).build()?;
/// store.register("text", &[1, 2], &[3.0_f32, 4.0], "bert", &[])?;
/// store.share("text", "bert", &["clip"])?;
/// store.register("projection", &[2, 1], &[0.5_f32, -1.0], "clip", &[])?;
/// let out = store.matmul(("text", "clip"), ("projection", "clip"), ("embedding", "clip"), (false, false))?;
/// assert_eq!(store.tensor(&out, "clip")?.read::<f32>()?, [-2.5]);
/// store.release_model("clip")?;
/// assert_eq!(store.names(), ["text"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store {
    inner: Arc<dyn StoreParts>,
}

/// The parts of a store, behind one pointer. To prove that a store is `Send` and `Sync`, the compiler goes deeper into
/// the types of wgpu than the default `recursion_limit` allows. With this trait, the proof is done once in this crate
/// and not in every crate that sends a store to a thread.
trait StoreParts: Send + Sync {
    fn parts(&self) -> &StoreInner;
}

impl StoreParts for StoreInner {
    fn parts(&self) -> &StoreInner {
        self
    }
}

pub(super) struct StoreInner {
    // This field is first, so that the thread has ended before the other fields are dropped.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) background: Mutex<Option<Background>>,
    pub(super) context: OnceLock<Context>,
    pub(super) settings: StoreSettings,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) folder: Option<TensorFolder>,
    pub(super) books: Mutex<StoreBooks>,
}

/// The data behind the lock.
pub(super) struct StoreBooks {
    pub(super) ledger: Ledger<LeaseOwner<Tensor>>,
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) shaders: BTreeMap<String, CompiledShader>,
    /// For each tensor, the values that the folder has.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) filed: BTreeMap<String, FiledValues>,
    pub(super) is_disposed: bool,
}

/// A store that may have been dropped.
#[derive(Clone)]
pub(super) struct WeakStore(Weak<dyn StoreParts>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("names", &self.names()).finish_non_exhaustive()
    }
}

impl Store {
    /// Starts the settings of a new store. [`StoreBuilder::build`] makes the store.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    /// Opens the device now instead of on first use. Returns whether a usable device is open. May be called repeatedly.
    pub fn initialize(&self) -> Result<bool, StoreError> {
        let context = self.context()?;
        #[cfg(not(target_arch = "wasm32"))]
        return Ok(context.device().is_some_and(|device| device.check().is_ok()));
        #[cfg(target_arch = "wasm32")]
        {
            let _ = context;
            Ok(false)
        }
    }

    /// The context that the tensors belong to.
    pub fn context(&self) -> Result<Context, StoreError> {
        drop(self.books()?);
        let mut opened = None;
        let context = self.parts().context.get_or_init(|| {
            #[cfg(not(target_arch = "wasm32"))]
            let (context, why) = Context::open();
            #[cfg(target_arch = "wasm32")]
            let (context, why) = (Context::on_host(), "this platform has no device".to_owned());
            opened = Some(why);
            context
        });
        if let Some(why) = opened {
            self.say(|| format!("opened: {why}"));
        }
        Ok(context.clone())
    }

    /// Removes every tensor, held or not, and ends the background thread. Leased tensors are dropped with their last
    /// lease, and handles that were given out stay valid. Later calls return [`StoreError::Disposed`]; disposing again
    /// has no effect.
    pub fn dispose(&self) {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let background = lock(&self.parts().background).take();
            drop(background);
        }
        let all = {
            let mut books = lock(&self.parts().books);
            books.is_disposed = true;
            #[cfg(not(target_arch = "wasm32"))]
            {
                books.shaders.clear();
                books.filed.clear();
            }
            books.ledger.take_all()
        };
        let (mut ended, mut later) = (0, 0);
        for freed in all {
            match freed.payload.close() {
                Closed::Later(_) => later += 1,
                Closed::Now(_) | Closed::Already => ended += 1,
            }
        }
        self.say(|| format!("disposed of {ended} tensors, and of {later} when their leases end"));
    }

    pub(super) fn over(inner: StoreInner) -> Store {
        Store { inner: Arc::new(inner) }
    }

    fn parts(&self) -> &StoreInner {
        self.inner.parts()
    }

    pub(super) fn downgrade(&self) -> WeakStore {
        WeakStore(Arc::downgrade(&self.inner))
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn work_in_background(&self, background: Background) {
        *lock(&self.parts().background) = Some(background);
    }

    pub(super) fn settings(&self) -> &StoreSettings {
        &self.parts().settings
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn folder(&self, op: &'static str) -> Result<&TensorFolder, StoreError> {
        self.parts().folder.as_ref().ok_or(StoreError::NoFolder { op })
    }

    /// The time for the ledger. Callers read the time before they lock the books.
    pub(super) fn now(&self) -> Duration {
        (self.parts().settings.clock)()
    }

    /// Locks the books. Fails if the store was disposed of.
    pub(super) fn books(&self) -> Result<MutexGuard<'_, StoreBooks>, StoreError> {
        let books = lock(&self.parts().books);
        if books.is_disposed { Err(StoreError::Disposed) } else { Ok(books) }
    }

    /// Reports a line to the debug callback. Never called with the books locked.
    pub(super) fn say(&self, words: impl FnOnce() -> String) {
        if let Some(debug) = &self.parts().settings.debug {
            debug(&words());
        }
    }
}

impl WeakStore {
    pub(super) fn store(&self) -> Option<Store> {
        Some(Store { inner: self.0.upgrade()? })
    }
}

/// A handle to a tensor in the books. The handle is cloned through a lease that ends at once. The end of that lease
/// never drops the tensor, because the owner in the books is still open.
pub(super) fn peek(held: &LeaseOwner<Tensor>) -> Tensor {
    Tensor::clone(&held.lease().expect("an owner in the books is open"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
