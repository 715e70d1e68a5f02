//! The wishes for a store.
//!
//! Owns the settings: those until a store is made of them, and those that it keeps.
//! Does not act on them.

#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

#[cfg(not(target_arch = "wasm32"))]
use super::background::Background;
use super::error::StoreError;
use super::ledger::Ledger;
use super::shared::{Store, StoreBooks, StoreInner};
use crate::ops::context::{Context, Debug};
#[cfg(not(target_arch = "wasm32"))]
use crate::store::files::TensorFolder;

/// How often a store that optimises in the background does, unless told.
#[cfg(not(target_arch = "wasm32"))]
const USUAL_PERIOD: Duration = Duration::from_secs(30);

/// What `optimise` is to care for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// What is on the device stays there, unless all of it takes more than the budget.
    Speed,
    /// What is idle and large goes to the host.
    #[default]
    Balanced,
    /// All that is idle goes to the host, spare copies on the host go, and so does memory that lies free. What is on the
    /// device alone is lost with it, unless it is persisted.
    Memory,
}

/// The wishes for a store; [`StoreBuilder::build`] ends them.
pub struct StoreBuilder {
    context: Option<Context>,
    kept: StoreSettings,
    #[cfg(not(target_arch = "wasm32"))]
    folder: Option<(PathBuf, u64)>,
    #[cfg(not(target_arch = "wasm32"))]
    period: Option<Duration>,
}

/// What a store keeps of its wishes.
pub(super) struct StoreSettings {
    pub(super) priority: Priority,
    pub(super) grace: Duration,
    pub(super) idle_after: Duration,
    pub(super) large_bytes: u64,
    pub(super) budget_bytes: u64,
    pub(super) debug: Option<Box<Debug>>,
    pub(super) clock: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl Default for StoreBuilder {
    fn default() -> Self {
        let kept = StoreSettings {
            priority: Priority::default(),
            grace: Duration::ZERO,
            idle_after: Duration::from_secs(30),
            large_bytes: 1 << 20,
            budget_bytes: u64::MAX,
            debug: None,
            clock: usual_clock(),
        };
        StoreBuilder {
            context: None,
            kept,
            #[cfg(not(target_arch = "wasm32"))]
            folder: None,
            #[cfg(not(target_arch = "wasm32"))]
            period: None,
        }
    }
}

impl std::fmt::Debug for StoreBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreBuilder").field("priority", &self.kept.priority).finish_non_exhaustive()
    }
}

impl StoreBuilder {
    /// Where its tensors live. Without one it opens the best device there is when it is first used, or the host.
    #[must_use]
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// What `optimise` is to care for; [`Priority::Balanced`] unless told.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.kept.priority = priority;
        self
    }

    /// How long a tensor is kept after nobody holds it any more; not at all unless told.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.kept.grace = grace;
        self
    }

    /// How long a tensor has to be unused before `optimise` moves it; 30 s unless told.
    #[must_use]
    pub fn idle_after(mut self, idle: Duration) -> Self {
        self.kept.idle_after = idle;
        self
    }

    /// From how many bytes on memory is large, which is what [`Priority::Balanced`] moves; 1 MiB unless told.
    #[must_use]
    pub fn large_bytes(mut self, bytes: u64) -> Self {
        self.kept.large_bytes = bytes;
        self
    }

    /// What its tensors should take on the device at most. `optimise` moves the least recently used ones until they do,
    /// whatever the priority.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.kept.budget_bytes = bytes;
        self
    }

    /// Keeps persisted tensors in this folder, in files of so many bytes altogether.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn folder(mut self, path: impl Into<PathBuf>, quota_bytes: u64) -> Self {
        self.folder = Some((path.into(), quota_bytes));
        self
    }

    /// Optimises in the background, each time that this much time has passed.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn optimise_every(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// Optimises in the background every 30 s.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn optimise_in_background(self) -> Self {
        self.optimise_every(USUAL_PERIOD)
    }

    /// Tells somebody what is done, in words: the device, names, ops and memory. What is compiled the context tells.
    #[must_use]
    pub fn debug(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.kept.debug = Some(Box::new(tell));
        self
    }

    /// Tells the time by something else than the system's clock, which only ever goes forward; where there is none, as on
    /// wasm32, nothing becomes idle without this.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.kept.clock = Box::new(now);
        self
    }

    /// Makes the store. The folder is opened and the thread in the background begins; a device waits for the first use.
    pub fn build(self) -> Result<Store, StoreError> {
        let context = self.context.map_or_else(OnceLock::new, OnceLock::from);
        let books = StoreBooks {
            ledger: Ledger::new(self.kept.grace),
            #[cfg(not(target_arch = "wasm32"))]
            shaders: std::collections::BTreeMap::new(),
            #[cfg(not(target_arch = "wasm32"))]
            filed: std::collections::BTreeMap::new(),
            is_disposed: false,
        };
        let inner = StoreInner {
            #[cfg(not(target_arch = "wasm32"))]
            background: Mutex::default(),
            context,
            settings: self.kept,
            #[cfg(not(target_arch = "wasm32"))]
            folder: self.folder.map(|(path, quota)| TensorFolder::open(path, quota)).transpose()?,
            books: Mutex::new(books),
        };
        let store = Store::over(inner);
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(period) = self.period {
            store.work_in_background(Background::begin(&store, period)?);
        }
        Ok(store)
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn usual_clock() -> Box<dyn Fn() -> Duration + Send + Sync> {
    let begin = std::time::Instant::now();
    Box::new(move || begin.elapsed())
}

#[cfg(target_arch = "wasm32")]
fn usual_clock() -> Box<dyn Fn() -> Duration + Send + Sync> {
    Box::new(|| Duration::ZERO)
}
