//! The settings of a store, and the builder that collects them.

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

/// The default period of optimising in the background.
#[cfg(not(target_arch = "wasm32"))]
const USUAL_PERIOD: Duration = Duration::from_secs(30);

/// What [`Store::optimise`] favours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// Tensors stay on the device, unless all of them together exceed the budget.
    Speed,
    /// Large idle tensors move to the host.
    #[default]
    Balanced,
    /// All idle tensors move to the host; spare copies on the host and pooled memory are freed. If the device is lost,
    /// values that only the device has are lost too, unless they are persisted.
    Memory,
}

/// Collects the settings of a store. [`StoreBuilder::build`] makes the store.
pub struct StoreBuilder {
    context: Option<Context>,
    kept: StoreSettings,
    #[cfg(not(target_arch = "wasm32"))]
    folder: Option<(PathBuf, u64)>,
    #[cfg(not(target_arch = "wasm32"))]
    period: Option<Duration>,
}

/// The settings that a store keeps.
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
    /// The context that the tensors belong to. By default, the first use of the store opens the best device, or
    /// chooses the host if there is no usable device.
    #[must_use]
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// What `optimise` favours. Defaults to [`Priority::Balanced`].
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.kept.priority = priority;
        self
    }

    /// How long a tensor is kept after its last hold was released. Defaults to zero.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.kept.grace = grace;
        self
    }

    /// How long a tensor must be unused before `optimise` moves it. Defaults to 30 s.
    #[must_use]
    pub fn idle_after(mut self, idle: Duration) -> Self {
        self.kept.idle_after = idle;
        self
    }

    /// The minimum size of a memory that [`Priority::Balanced`] moves. Defaults to 1 MiB.
    #[must_use]
    pub fn large_bytes(mut self, bytes: u64) -> Self {
        self.kept.large_bytes = bytes;
        self
    }

    /// The maximum number of bytes that the tensors should use on the device. Above this budget, `optimise` moves the
    /// least recently used tensors to the host, whatever the priority.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.kept.budget_bytes = bytes;
        self
    }

    /// Keeps persisted tensors in this folder. The quota limits the bytes of all files together.
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub fn folder(mut self, path: impl Into<PathBuf>, quota_bytes: u64) -> Self {
        self.folder = Some((path.into(), quota_bytes));
        self
    }

    /// Optimises in the background, once per period.
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

    /// Calls `tell` with a line of text for each action on devices, names, ops and memory. Compilation is reported by
    /// the context instead.
    #[must_use]
    pub fn debug(mut self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.kept.debug = Some(Box::new(tell));
        self
    }

    /// Replaces the system's monotonic clock. wasm32 has no clock, so no tensor becomes idle there unless a clock is
    /// set here.
    #[must_use]
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.kept.clock = Box::new(now);
        self
    }

    /// Builds the store. Opens the folder and starts the background thread if they are set. The device is opened on
    /// first use.
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
