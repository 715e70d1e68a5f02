//! The store that models share their tensors in.
//!
//! Owns the books (who made a tensor, who may use it, who uses it now), the leases that keep memory where it is meanwhile,
//! and the store itself: named tensors, ops on them, their memory, their files, and their way to another device.
//! Does not compute: tensors do. Does not write files: the folder does.
//!
//! Always: a name is one tensor; what somebody uses is not freed; no value is lost while either side has it.

mod advice;
mod alike;
#[cfg(not(target_arch = "wasm32"))]
mod background;
mod builder;
mod entry;
mod error;
#[cfg(not(target_arch = "wasm32"))]
mod filed;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod files;
mod held;
#[cfg(not(target_arch = "wasm32"))]
mod layers;
mod lease;
mod ledger;
mod named_ops;
mod names;
mod optimise;
#[cfg(not(target_arch = "wasm32"))]
mod persisted;
#[cfg(not(target_arch = "wasm32"))]
mod recover;
mod refusal;
mod report;
#[cfg(not(target_arch = "wasm32"))]
mod shaders;
mod shared;
mod sums;
mod sync;
mod synced;

pub use advice::Opportunity;
pub use alike::Search;
pub use builder::{Priority, StoreBuilder};
pub use entry::{Freed, MemoryTag, TensorEntry};
pub use error::StoreError;
pub use held::{Closed, Lease, LeaseOwner};
pub use lease::TensorLease;
pub use ledger::{Due, Ledger, ModelReleased};
pub use names::Named;
pub use optimise::Optimised;
#[cfg(not(target_arch = "wasm32"))]
pub use persisted::{Persisted, Restored};
#[cfg(not(target_arch = "wasm32"))]
pub use recover::{StoreRecovery, TensorRecovery};
pub use refusal::{LedgerError, MAX_NAME_BYTES};
pub use report::{BothSides, StoreReport, TensorReport};
#[cfg(not(target_arch = "wasm32"))]
pub use shaders::ShaderRun;
pub use shared::Store;
pub use sums::MemorySaving;
pub use synced::{SyncDirection, Synced};
