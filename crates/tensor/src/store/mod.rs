//! The store that models share their tensors in.
//!
//! Owns the books (who made a tensor, who may use it, who uses it now) and the leases that keep memory alive meanwhile.
//! Does not compute, and does not know files.
//!
//! Always: a name is one tensor; what somebody uses is not freed.

mod advice;
mod entry;
mod held;
mod ledger;
mod refusal;
mod sums;
mod sync;

pub use advice::Opportunity;
pub use entry::{Entry, Freed, Memory};
pub use held::{Closed, Held, Lease, Watch};
pub use ledger::{Due, Ledger, ModelReleased};
pub use refusal::{LedgerError, MAX_NAME_BYTES};
pub use sums::Saving;
