//! The synchronization types of this module. `tests/store_loom.rs` compiles the same `held.rs` against those of loom.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
