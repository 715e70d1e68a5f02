//! The synchronization types that `held.rs` uses. `tests/store_loom.rs` compiles the same `held.rs` with the types of
//! loom.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
