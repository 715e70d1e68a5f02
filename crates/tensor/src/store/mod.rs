//! Named tensors that models share: registration, leases, memory, files, and recovery from a lost device.
//!
//! The [`Ledger`] records which model made a tensor, which models may use the tensor, and which models hold it now. A
//! [`TensorLease`] keeps the memory of a tensor in place as long as the lease exists. The store only names tensors:
//! `ops` computes with them, and `files` reads and writes files of tensors.
//!
//! A *memory* is the block of values that a tensor and all of its views are in.
//!
//! Invariants: a name refers to one tensor. A tensor in use is not freed. No value is lost as long as the host or the
//! device has that value.
//!
//! Locking: the ledger, the users' shaders and the notes about files are behind one lock, the *books*. Lock order: the
//! values of a tensor, then the books, then the slot of a lease. While the books are locked, no thread waits for a
//! device or a file, and no tensor is dropped, because dropping takes the tensor's own lock. `optimise` therefore
//! consults the books while it holds the lock of the values that it wants to move. If any tensor in the same memory is
//! leased by then, the values stay in place.

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
