//! The store itself: its context, its books behind one lock, and its disposal.
//!
//! The books are the innermost lock except for the slots of leases. Nothing is moved or computed while they are locked,
//! and no tensor is dropped, because that takes the tensor's own lock. The module header of `store` has the lock order.
//!
//! Invariants: a disposed store holds nothing and returns an error. The background thread ends with the store.

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

/// Named tensors that models own and share. Clones are the same store.
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

/// The parts of a store, behind one pointer. The proof that it is `Send` and `Sync` goes deep into the types of wgpu,
/// deeper than the default `recursion_limit`. With this trait it is proven once here, and not in every crate that sends
/// a store to a thread.
trait StoreParts: Send + Sync {
    fn parts(&self) -> &StoreInner;
}

impl StoreParts for StoreInner {
    fn parts(&self) -> &StoreInner {
        self
    }
}

pub(super) struct StoreInner {
    // First, so that the thread has ended before the other fields are dropped.
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
    /// What the folder has of each tensor.
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
    /// Settings of a new store, to end in `build`.
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

    /// The time for the ledger. Read before the books are locked.
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

/// A handle to a tensor in the books. Its lease ends at once and is never the last, because the owner in the books is
/// open.
pub(super) fn peek(held: &LeaseOwner<Tensor>) -> Tensor {
    Tensor::clone(&held.lease().expect("what is in the books is open"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
